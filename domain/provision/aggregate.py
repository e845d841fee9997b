"""ProvisionInfo: the infrastructure of one Event, from the first request to its end. Its key is derived from that of the Event."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Self
from uuid import UUID

from domain.kernel.aggregate import NO_CLAIMS, AggregateRoot, Claim
from domain.kernel.command import decision
from domain.kernel.errors import Refused
from domain.kernel.event import DomainEvent
from domain.kernel.ids import hashed
from domain.kernel.named_callback import NamedCallback, callback_scope
from domain.provision import events
from domain.provision.values import UP, ProvisionPlan, ProvisionState, ProvisionSummary, RunEnd, Work, name_of, type_of

_LONGEST_REASON: Final = 1000


def provision_key(event_id: UUID) -> UUID:
    """Return the id of the Provision Info of an Event."""
    return hashed("provision", str(event_id))


class ProvisionInfo(AggregateRoot):
    """The infrastructure of an Event. `run` numbers the orders to provisioners: an end counts only with the number of the last
    order. `request` is the run of the last request. `ended` are the types of resources that the Event no longer needs. `work` is
    the running work. `exists` says that there is infrastructure, or may be, since the time `since`."""

    KIND: ClassVar[str] = "provision"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS
    SNAPSHOT_VERSION: ClassVar[int] = 2

    event_id: UUID
    infrastructure_key: str
    provisioned_at: datetime

    def begin(self) -> None:
        self.state = ProvisionState.SCHEDULED
        self.run = 0
        self.request = 0
        self.plan: ProvisionPlan | None = None
        self.allow_updates = False
        self.client = ""
        self.callbacks: tuple[NamedCallback, ...] = ()
        self.requested_at: datetime | None = None
        self.since: datetime | None = None
        self.terminated_at: datetime | None = None
        self.work: Work | None = None
        self.ended: frozenset[str] = frozenset()
        self.resources: tuple[dict[str, Any], ...] = ()
        self.exists = False
        self.reason = ""

    @property
    def summary(self) -> ProvisionSummary:
        return ProvisionSummary(
            state=self.state,
            infrastructure_key=self.infrastructure_key,
            provisioned_at=self.provisioned_at,
            terminated_at=self.terminated_at,
        )

    @property
    def needed(self) -> Sequence[dict[str, Any]]:
        """The resources that the Event wants now. While one part of them is being terminated, the other part is still wanted."""
        wants = self.state in UP or self.state is ProvisionState.PROVISIONING
        partly = self.state in (ProvisionState.TERMINATING, ProvisionState.TERMINATING_FAILED) and self.ended
        if self.plan is None or not (wants or partly):
            return ()
        return [resource for resource in self.plan.resources if type_of(resource) not in self.ended]

    # --- decisions

    @classmethod
    def open(cls, event_id: UUID, at: datetime, /, *, infrastructure_key: str, moment: datetime) -> Self:
        key, facts = provision_key(event_id), {"infrastructure_key": infrastructure_key, "opened_at": moment}
        return cls._begin(events.Opened, key, at, event_id=event_id, **facts)

    @decision
    def provision(
        self,
        at: datetime,
        /,
        plan: ProvisionPlan,
        *,
        allow_updates: bool,
        client: str,
        callbacks: tuple[NamedCallback, ...] = (),
        moment: datetime,
    ) -> None:
        """Request the resources of the plan. Nothing new begins while provisioning is running."""
        if self.state is ProvisionState.PROVISIONING:
            return
        if self.state is ProvisionState.TERMINATING:
            raise Refused("the infrastructure is being terminated; provision it when that has ended")
        if self.exists and self.plan is not None and plan.made_by != self.plan.made_by:
            raise Refused(
                f"there is infrastructure of {self.plan.made_by}, and the profile now says {plan.made_by}; terminate it first"
            )
        self._trigger(
            events.ProvisionRequested,
            at=at,
            run=self.run + 1,
            plan=plan,
            allow_updates=allow_updates,
            client=client,
            requested_at=moment,
            **({"callbacks": callbacks} if callbacks else {}),
        )

    @decision
    def terminate(self, at: datetime, /, *, moment: datetime) -> None:
        """Request that nothing remains. This cancels running provisioning."""
        if self.state is ProvisionState.TERMINATED or (self.state is ProvisionState.TERMINATING and not self.ended):
            return
        if self.exists:
            self._trigger(events.TerminationRequested, at=at, run=self.run + 1)
        else:
            self._trigger(events.Terminated, at=at, run=self.run + 1, terminated_at=moment)

    @decision
    def end_selected(self, at: datetime, /, select: Collection[str], *, request: int) -> None:
        """End resources of these types, which the Event does not need in its new state. `request` is the request that was valid
        then."""
        if request != self.request:
            return
        going = {type_of(resource) for resource in self.needed} & set(select)
        if going:
            self._trigger(events.TerminationRequested, at=at, run=self.run + 1, select=tuple(sorted(self.ended | going)))

    @decision
    def reset(self, at: datetime, /) -> None:
        """Mark the infrastructure as not provisioned. Existing resources are terminated in the background."""
        if self.state in (ProvisionState.PROVISIONING, ProvisionState.TERMINATING):
            raise Refused(f"the infrastructure is {self.state.name}; reset it when that has ended")
        if self.state is not ProvisionState.SCHEDULED or (self.exists and self.work is None):
            self._trigger(events.Reset, at=at, run=self.run + 1, release=self.exists)

    @decision
    def end_run(self, at: datetime, /, run: int, end: RunEnd, *, moment: datetime) -> None:
        """Record the end of a run. The end of an earlier run, or a repeated report, changes nothing."""
        if run != self.run or self.work is None:
            return
        reason = end.reason[:_LONGEST_REASON]
        match self.work:
            case Work.PROVISION:
                self._end_provisioning(end, reason, at=at, moment=moment)
            case Work.RELEASE:
                self._trigger(events.ReleaseEnded, at=at, run=run, left=end.left, reason=reason)
            case Work.TERMINATE if end.left:
                self._trigger(events.TerminationFailed, at=at, run=run, reason=reason or "resources remain")
            case Work.TERMINATE if self.ended and self.needed:
                self._trigger(events.PartlyTerminated, at=at, run=run, resources=end.resources)
            case Work.TERMINATE:
                self._trigger(events.Terminated, at=at, run=run, terminated_at=moment)

    def _end_provisioning(self, end: RunEnd, reason: str, *, at: datetime, moment: datetime) -> None:
        if not end.resources:
            text = reason or "none of the resources is up"
            self._trigger(events.ProvisionFailed, at=at, run=self.run, reason=text, left=end.left, provisioned_at=moment)
            return
        up = {name_of(resource) for resource in end.resources}
        partial = any(name_of(resource) not in up for resource in self.needed)
        facts = {"resources": end.resources, "partial": partial, "provisioned_at": moment, "reason": reason}
        self._trigger(events.Provisioned, at=at, run=self.run, **facts)

    # --- state

    def _when_opened(self, event: events.Opened) -> None:
        self.event_id, self.infrastructure_key = event.event_id, event.infrastructure_key
        self.provisioned_at = event.opened_at

    def _when_requested(self, event: events.ProvisionRequested) -> None:
        self.since = self.since if self.exists else event.requested_at
        self.state, self.work, self.exists = ProvisionState.PROVISIONING, Work.PROVISION, True
        self.run = self.request = event.run
        self.plan, self.infrastructure_key = event.plan, event.plan.infrastructure_key
        self.allow_updates, self.client, self.callbacks = event.allow_updates, event.client, event.callbacks
        self.requested_at = self.provisioned_at = event.requested_at
        self.terminated_at, self.ended, self.reason = None, frozenset(), ""

    def _when_provisioned(self, event: events.Provisioned) -> None:
        self.state = ProvisionState.PROVISIONED_PARTIAL if event.partial else ProvisionState.PROVISIONED
        self.work, self.resources, self.provisioned_at, self.reason = None, event.resources, event.provisioned_at, event.reason

    def _when_failed(self, event: events.ProvisionFailed) -> None:
        self.state, self.work, self.resources = ProvisionState.PROVISIONING_FAILED, None, ()
        self.exists, self.provisioned_at, self.reason = event.left, event.provisioned_at, event.reason

    def _when_termination_requested(self, event: events.TerminationRequested) -> None:
        self.state, self.work, self.run, self.ended = ProvisionState.TERMINATING, Work.TERMINATE, event.run, frozenset(event.select)

    def _when_partly_terminated(self, event: events.PartlyTerminated) -> None:
        self.state, self.work, self.resources, self.reason = ProvisionState.PROVISIONED_PARTIAL, None, event.resources, ""

    def _when_terminated(self, event: events.Terminated) -> None:
        self.state, self.work, self.run, self.resources = ProvisionState.TERMINATED, None, event.run, ()
        self.exists, self.ended, self.terminated_at, self.reason = False, frozenset(), event.terminated_at, ""

    def _when_termination_failed(self, event: events.TerminationFailed) -> None:
        self.state, self.work, self.reason = ProvisionState.TERMINATING_FAILED, None, event.reason

    def _when_reset(self, event: events.Reset) -> None:
        self.state, self.run, self.resources = ProvisionState.SCHEDULED, event.run, ()
        self.work, self.ended, self.reason = Work.RELEASE if event.release else None, frozenset(), ""
        self.terminated_at = None

    def _when_release_ended(self, event: events.ReleaseEnded) -> None:
        self.work, self.exists, self.reason = None, event.left, event.reason

    # --- callbacks and secrets

    def claims(self) -> frozenset[Claim]:
        """Claim the callbacks as long as there may be an end to report to them."""
        if not self.exists:
            return NO_CLAIMS
        return frozenset(Claim(callback_scope(callback.id), self.key, self.id) for callback in self.callbacks)

    def secrets(self) -> frozenset[UUID]:
        return frozenset(callback.sealed_url.reference for callback in self.callbacks if callback.sealed_url is not None)

    # --- snapshots

    def _to_snapshot(self) -> dict[str, Any]:
        times = {name: getattr(self, name) for name in _TIMES}
        return {
            "event_id": str(self.event_id),
            "state": int(self.state),
            "work": self.work,
            "ended": sorted(self.ended),
            "callbacks": [callback.model_dump(mode="json") for callback in self.callbacks],
            "plan": self.plan and self.plan.model_dump(mode="json"),
            **{name: time and time.isoformat() for name, time in times.items()},
            **{name: getattr(self, name) for name in _PLAIN},
        }

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        for name in _PLAIN:
            setattr(self, name, details[name])
        for name in _TIMES:
            setattr(self, name, details[name] and datetime.fromisoformat(details[name]))
        self.event_id, self.resources = UUID(details["event_id"]), tuple(details["resources"])
        self.state, self.work = ProvisionState(details["state"]), details["work"] and Work(details["work"])
        self.ended = frozenset(details["ended"])
        self.callbacks = tuple(map(NamedCallback.model_validate, details.get("callbacks", ())))
        self.plan = details["plan"] and ProvisionPlan.model_validate(details["plan"])


_PLAIN: Final = ("infrastructure_key", "run", "request", "allow_updates", "client", "resources", "exists", "reason")
_TIMES: Final = ("provisioned_at", "requested_at", "since", "terminated_at")
events.Opened.AGGREGATE = ProvisionInfo
