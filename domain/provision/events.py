"""The events of an Event's infrastructure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from domain.kernel.event import DomainEvent, FirstEvent
from domain.kernel.named_callback import NamedCallback
from domain.provision.values import ProvisionPlan


class Opened(FirstEvent):
    """The infrastructure of the Event was requested, ended or reset for the first time."""

    TOPIC: ClassVar[str] = "provision.opened"

    event_id: UUID
    infrastructure_key: str
    opened_at: datetime


class ProvisionRequested(DomainEvent):
    """Infrastructure was requested. `run` numbers the work for this Event: only the end of the last run counts. `client`
    requested it, and `callbacks` are notified of the ends."""

    TOPIC: ClassVar[str] = "provision.requested"

    run: int
    plan: ProvisionPlan
    allow_updates: bool
    client: str
    requested_at: datetime
    callbacks: tuple[NamedCallback, ...] = ()


class Provisioned(DomainEvent):
    """`resources` are up. Resources of the plan that are missing were not made, for the `reason`."""

    TOPIC: ClassVar[str] = "provision.provisioned"

    run: int
    resources: tuple[dict[str, Any], ...]
    partial: bool
    provisioned_at: datetime
    reason: str = ""


class ProvisionFailed(DomainEvent):
    """The provisioning failed, and none of the resources is up. `left` says that some of them may exist."""

    TOPIC: ClassVar[str] = "provision.failed"

    run: int
    reason: str
    left: bool
    provisioned_at: datetime


class TerminationRequested(DomainEvent):
    """All resources are to be terminated; with `select` only those of these types, because the Event entered a state that does
    not need them."""

    TOPIC: ClassVar[str] = "provision.termination_requested"

    run: int
    select: tuple[str, ...] = ()


class PartlyTerminated(DomainEvent):
    """The resources of the selected types are terminated; `resources` are still up."""

    TOPIC: ClassVar[str] = "provision.partly_terminated"

    run: int
    resources: tuple[dict[str, Any], ...]


class Terminated(DomainEvent):
    """The infrastructure was terminated, or only other Events still use it. A run with nothing to terminate ends immediately."""

    TOPIC: ClassVar[str] = "provision.terminated"

    run: int
    terminated_at: datetime


class TerminationFailed(DomainEvent):
    TOPIC: ClassVar[str] = "provision.termination_failed"

    run: int
    reason: str


class Reset(DomainEvent):
    """The Event counts as not provisioned. `release` says that existing infrastructure is terminated in the background."""

    TOPIC: ClassVar[str] = "provision.reset"

    run: int
    release: bool


class ReleaseEnded(DomainEvent):
    """The termination after a reset ended. `left` says that something may still exist."""

    TOPIC: ClassVar[str] = "provision.release_ended"

    run: int
    left: bool
    reason: str = ""

    @property
    def shown(self) -> bool:
        return False


EVENTS: tuple[type[DomainEvent], ...] = (
    Opened,
    ProvisionRequested,
    Provisioned,
    ProvisionFailed,
    TerminationRequested,
    PartlyTerminated,
    Terminated,
    TerminationFailed,
    Reset,
    ReleaseEnded,
)
