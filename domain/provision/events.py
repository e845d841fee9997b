"""What can happen to the infrastructure of an Event."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from domain.kernel.event import DomainEvent, FirstEvent
from domain.kernel.named_callback import NamedCallback
from domain.provision.values import ProvisionPlan


class Opened(FirstEvent):
    """Somebody asked for the infrastructure of the Event for the first time: to have it, to end it, or to reset it."""

    TOPIC: ClassVar[str] = "provision.opened"

    event_id: UUID
    infrastructure_key: str
    opened_at: datetime


class Requested(DomainEvent):
    """`run` numbers what is done for this Event: only the end of the last one counts. `client` asked for it, and
    `callbacks` are told of the ends."""

    TOPIC: ClassVar[str] = "provision.requested"

    run: int
    plan: ProvisionPlan
    allow_updates: bool
    client: str
    requested_at: datetime
    callbacks: tuple[NamedCallback, ...] = ()


class Provisioned(DomainEvent):
    """`resources` are up; those of the plan that are missing were not made, for the `reason`."""

    TOPIC: ClassVar[str] = "provision.provisioned"

    run: int
    resources: tuple[dict[str, Any], ...]
    partial: bool
    provisioned_at: datetime
    reason: str = ""


class Failed(DomainEvent):
    """None of the resources is up. `left`: something of them may be there."""

    TOPIC: ClassVar[str] = "provision.failed"

    run: int
    reason: str
    left: bool
    provisioned_at: datetime


class TerminationRequested(DomainEvent):
    """All resources are to go; with `select` those of these types, because the Event entered a state that does not need them."""

    TOPIC: ClassVar[str] = "provision.termination_requested"

    run: int
    select: tuple[str, ...] = ()


class PartlyTerminated(DomainEvent):
    """The resources of the selected types are gone; `resources` are those that are up."""

    TOPIC: ClassVar[str] = "provision.partly_terminated"

    run: int
    resources: tuple[dict[str, Any], ...]


class Terminated(DomainEvent):
    """Nothing is left of the infrastructure, or other Events use it further. A run that had nothing to end ends where it begins."""

    TOPIC: ClassVar[str] = "provision.terminated"

    run: int
    terminated_at: datetime


class TerminationFailed(DomainEvent):
    TOPIC: ClassVar[str] = "provision.termination_failed"

    run: int
    reason: str


class Reset(DomainEvent):
    """The Event counts as not provisioned. `release`: what there is of the infrastructure is to be terminated beside."""

    TOPIC: ClassVar[str] = "provision.reset"

    run: int
    release: bool


class ReleaseEnded(DomainEvent):
    """The termination after a reset ended. `left`: something may be there still."""

    TOPIC: ClassVar[str] = "provision.release_ended"

    run: int
    left: bool
    reason: str = ""

    @property
    def shown(self) -> bool:
        return False


EVENTS: tuple[type[DomainEvent], ...] = (
    Opened,
    Requested,
    Provisioned,
    Failed,
    TerminationRequested,
    PartlyTerminated,
    Terminated,
    TerminationFailed,
    Reset,
    ReleaseEnded,
)
