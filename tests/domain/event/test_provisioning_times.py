"""autoProvisionInfrastructure and autoTerminateInfrastructure: when the schedule asks for infrastructure, and when it does not."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.values import EventDetails
from domain.kernel.errors import PlanOutdated
from domain.provision.values import ProvisionState, ProvisionSummary
from tests.domain.event.events_given import KEY, an_event
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact

PROVISION, TERMINATE = NOW - timedelta(minutes=1), NOW + timedelta(hours=2)
HOUR = timedelta(hours=1)
ASKED = ProvisionSummary(state=ProvisionState.PROVISIONING, infrastructure_key="k", provisioned_at=NOW)


def planned(*since: Fact, end: datetime | None = None, **changes: Any) -> Scenario[MediaEvent]:
    plan = {
        "scheduled_provision_at": PROVISION,
        "scheduled_terminate_at": TERMINATE,
        "auto_provision_infrastructure": True,
        "auto_terminate_infrastructure": True,
    }
    first = [fact(events.Rescheduled, scheduled_end=end)] if end is not None else []
    return an_event(*first, fact(events.ProvisioningPlanChanged, **{**plan, **changes}), *since)


def details(scenario: Scenario[MediaEvent]) -> EventDetails:
    assert scenario.root is not None
    return scenario.root.details


def provisioned(at: datetime = PROVISION) -> Fact:
    return fact(events.ProvisionTimeReached, provisioned_for=at)


def terminated(at: datetime = TERMINATE) -> Fact:
    return fact(events.TerminationTimeReached, terminated_for=at)


SHOWN = fact(events.ProvisionStateChanged, provision=ASKED)


def test_the_time_and_what_it_asked_for_are_kept_together() -> None:
    event = planned().when(MediaEvent.reach_provision_time.on(KEY, PROVISION, ASKED)).then(provisioned(), SHOWN)
    assert (event.details.auto_provision_at, event.details.auto_terminate_at) == (None, TERMINATE)
    event = planned().when(MediaEvent.reach_termination_time.on(KEY, TERMINATE, ASKED)).then(terminated(), SHOWN)
    assert (event.details.auto_provision_at, event.details.auto_terminate_at) == (PROVISION, None)


def test_a_time_at_which_nothing_is_to_be_done_is_kept_too() -> None:
    planned().when(MediaEvent.reach_provision_time.on(KEY, PROVISION)).then(provisioned())
    planned().when(MediaEvent.reach_termination_time.on(KEY, TERMINATE)).then(terminated())


def test_the_time_counts_and_not_its_offset() -> None:
    east = PROVISION.astimezone(timezone(timedelta(hours=9)))
    planned().when(MediaEvent.reach_provision_time.on(KEY, east)).then(provisioned(east))


def test_it_is_not_shown_as_a_change_of_the_event() -> None:
    before = details(planned())
    after = planned().when(MediaEvent.reach_provision_time.on(KEY, PROVISION)).then(provisioned())
    assert after.shown_version < after.version
    assert after.details.scheduled_provision_at == before.scheduled_provision_at


@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("it was moved", fact(events.ProvisioningPlanChanged, scheduled_provision_at=PROVISION + HOUR, scheduled_terminate_at=NOW)),
        ("it was taken away", fact(events.ProvisioningPlanChanged, scheduled_provision_at=None, scheduled_terminate_at=None)),
        (
            "the flags were taken away",
            fact(events.ProvisioningPlanChanged, auto_provision_infrastructure=False, auto_terminate_infrastructure=False),
        ),
        ("it is deleted", fact(events.EventDeleted)),
    ],
)
def test_what_has_changed_meanwhile_is_looked_at_again(name: str, since: Fact) -> None:
    """The commands of the append were made for the Event as it was before the change."""
    planned(since).when(MediaEvent.reach_provision_time.on(KEY, PROVISION, ASKED)).then_refused(PlanOutdated)
    planned(since).when(MediaEvent.reach_termination_time.on(KEY, TERMINATE, ASKED)).then_refused(PlanOutdated)


def test_once_for_each_time() -> None:
    done = planned(provisioned(), terminated())
    assert (details(done).auto_provision_at, details(done).auto_terminate_at) == (None, None)
    done.when(MediaEvent.reach_provision_time.on(KEY, PROVISION, ASKED)).then_refused(PlanOutdated)
    done.when(MediaEvent.reach_termination_time.on(KEY, TERMINATE, ASKED)).then_refused(PlanOutdated)
    moved = fact(events.ProvisioningPlanChanged, scheduled_provision_at=PROVISION + HOUR, scheduled_terminate_at=TERMINATE + HOUR)
    again = details(planned(provisioned(), terminated(), moved))
    assert (again.auto_provision_at, again.auto_terminate_at) == (PROVISION + HOUR, TERMINATE + HOUR)


def test_an_event_that_was_restored_is_provisioned_at_a_time_to_come_only() -> None:
    restored = (fact(events.EventDeleted), fact(events.EventRestored))
    planned(*restored).when(MediaEvent.reach_provision_time.on(KEY, PROVISION)).then(provisioned())
    passed = planned(*restored, scheduled_provision_at=THEN)
    assert (details(passed).auto_provision_at, details(passed).auto_terminate_at) == (None, TERMINATE)
    passed.when(MediaEvent.reach_provision_time.on(KEY, THEN, ASKED)).then_refused(PlanOutdated)
    again = fact(events.ProvisioningPlanChanged, scheduled_provision_at=PROVISION)
    planned(*restored, again, scheduled_provision_at=THEN).when(MediaEvent.reach_provision_time.on(KEY, PROVISION)).then(
        provisioned()
    )


@pytest.mark.parametrize(
    ("name", "end", "terminate", "until"),
    [
        ("for ever", None, None, None),
        ("until the termination", None, TERMINATE, TERMINATE),
        ("until the end of the Event", PROVISION + HOUR, None, PROVISION + HOUR),
        ("the earlier one", PROVISION + HOUR, TERMINATE, PROVISION + HOUR),
        ("the other earlier one", TERMINATE + HOUR, TERMINATE, TERMINATE),
        ("a termination before belongs to what was before", None, PROVISION - HOUR, None),
        ("infrastructure for after the Event", PROVISION - HOUR, TERMINATE, TERMINATE),
        ("an end at the same time is no end of it", PROVISION, None, None),
    ],
)
def test_how_late_it_may_be(name: str, end: datetime | None, terminate: datetime | None, until: datetime | None) -> None:
    assert details(planned(end=end, scheduled_terminate_at=terminate)).auto_provision_until == until, name


def test_without_a_time_to_wait_for_it_cannot_be_late() -> None:
    assert details(planned(provisioned())).auto_provision_until is None


def test_what_the_schedule_did_is_kept_in_a_snapshot() -> None:
    root = planned(provisioned(THEN), terminated(NOW)).root
    assert root is not None
    again = MediaEvent.from_snapshot(stream=root.id, version=root.version, state=root.snapshot())
    assert (again.details.provisioned_for, again.details.terminated_for) == (THEN, NOW)
