"""Scenarios of one Provision Info."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from domain.provision import events
from domain.provision.aggregate import ProvisionInfo, provision_key
from domain.provision.values import Deployment, Ending, ProvisionPlan, ProvisionState
from tests.domain.scenario import THEN, Fact, Scenario, fact, given

EVENT, PROFILE = UUID(int=1), UUID(int=2)
KEY = provision_key(EVENT)
ORIGIN: dict[str, Any] = {"name": "origin-1", "type": "origin"}
ENCODER: dict[str, Any] = {"name": "encoder-1", "type": "encoder"}
UP_ORIGIN, UP_ENCODER = {**ORIGIN, "ipAddress": "198.51.100.7"}, {**ENCODER, "ipAddress": "198.51.100.8"}
PLAN = ProvisionPlan(
    infrastructure_key="k",
    profile_id=PROFILE,
    deployment=Deployment.TEMPLATE,
    template="default",
    resources=(ORIGIN, ENCODER),
    endings=(Ending(states=("instant_vod",), select=("origin",)),),
)


def opened() -> Fact:
    return fact(events.Opened, event_id=EVENT, infrastructure_key="k", opened_at=THEN)


def requested(run: int = 1, **more: Any) -> Fact:
    facts = {"run": run, "plan": PLAN, "allow_updates": False, "client": "me", "requested_at": THEN, **more}
    return fact(events.ProvisionRequested, **facts)


def provisioned(run: int = 1, *up: dict[str, Any], partial: bool = False) -> Fact:
    facts = {"resources": up or (UP_ORIGIN, UP_ENCODER), "partial": partial, "provisioned_at": THEN, "reason": ""}
    return fact(events.Provisioned, run=run, **facts)


def failed(run: int = 1, *, left: bool = False) -> Fact:
    return fact(events.ProvisionFailed, run=run, reason="no", left=left, provisioned_at=THEN)


def ending(run: int, *select: str) -> Fact:
    return fact(events.TerminationRequested, run=run, select=select) if select else fact(events.TerminationRequested, run=run)


def terminated(run: int) -> Fact:
    return fact(events.Terminated, run=run, terminated_at=THEN)


REQUEST, FULL = requested(), provisioned()
STATES: dict[ProvisionState, tuple[Fact, ...]] = {
    ProvisionState.SCHEDULED: (REQUEST, failed(), fact(events.Reset, run=2, release=False)),
    ProvisionState.PROVISIONING: (REQUEST,),
    ProvisionState.PROVISIONING_FAILED: (REQUEST, failed()),
    ProvisionState.PROVISIONED: (REQUEST, FULL),
    ProvisionState.PROVISIONED_PARTIAL: (REQUEST, provisioned(1, UP_ORIGIN, partial=True)),
    ProvisionState.TERMINATING: (REQUEST, FULL, ending(2)),
    ProvisionState.TERMINATING_FAILED: (REQUEST, FULL, ending(2), fact(events.TerminationFailed, run=2, reason="no")),
    ProvisionState.TERMINATED: (REQUEST, FULL, ending(2), terminated(2)),
}
"""The facts that lead to each state."""


def an_info(*since: Fact) -> Scenario[ProvisionInfo]:
    return given(ProvisionInfo, KEY, opened(), *since)


def in_state(state: ProvisionState) -> Scenario[ProvisionInfo]:
    scenario = an_info(*STATES[state])
    assert scenario.root is not None
    assert scenario.root.state is state
    return scenario
