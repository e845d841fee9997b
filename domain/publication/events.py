"""The events of a publication."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from domain.destination.targets import Target
from domain.kernel.event import DomainEvent, FirstEvent
from domain.publication.values import PublicationKind, PublicationState, PublicationText


class PublicationScheduled(FirstEvent):
    """A publication was scheduled. `transaction_id` is shared by all publications of one request. `client` is notified of the
    changes. `audio_input_id` is the audio of a live stream; None stands for the first input."""

    TOPIC: ClassVar[str] = "publication.scheduled"

    kind: PublicationKind
    content_id: str
    destination_id: UUID
    target: Target
    transaction_id: UUID
    client: str
    text: PublicationText
    audio_input_id: str | None = None


class Processed(DomainEvent):
    """A job publishes the content from now on. `job_version` is the version of the job at this moment, 0 for a new one."""

    TOPIC: ClassVar[str] = "publication.processed"

    job: int
    job_version: int = 0


class PublicationCompleted(DomainEvent):
    """The content is at its target. `details` is the target's description of it."""

    TOPIC: ClassVar[str] = "publication.completed"
    STANDS_EMPTY: ClassVar[bool] = True

    job_version: int
    details: dict[str, Any]


class PublicationFailed(DomainEvent):
    """The publication failed. `state` says what is at fault; `reason` is one sentence without secrets."""

    TOPIC: ClassVar[str] = "publication.failed"
    STANDS_EMPTY: ClassVar[bool] = True

    state: PublicationState
    reason: str
    job_version: int = 0


class PublicationPublished(DomainEvent):
    """The content is public at its target."""

    TOPIC: ClassVar[str] = "publication.published"


class Unpublished(DomainEvent):
    TOPIC: ClassVar[str] = "publication.unpublished"


class Amended(DomainEvent):
    TOPIC: ClassVar[str] = "publication.amended"

    text: PublicationText


class Withdrawn(DomainEvent):
    """The publication is no longer shown. `target_left` says that media which is at the target, or may still arrive there, has
    yet to be removed; `open` says that the target has yet to be notified of the end of the live stream."""

    TOPIC: ClassVar[str] = "publication.withdrawn"

    hard: bool
    target_left: bool = False
    open: bool = False


class TargetCleared(DomainEvent):
    """After the withdrawal, nothing of the publication remains at its target."""

    TOPIC: ClassVar[str] = "publication.target_cleared"


class PublicationStarted(DomainEvent):
    """The live stream is pushed to its target from now on. `details` is the target's description of what it has made for the
    stream. `served_by` is the channel whose streaming server pushes it; None means that the product does."""

    TOPIC: ClassVar[str] = "publication.started"

    details: dict[str, Any] | None = None
    served_by: UUID | None = None


class Arrived(DomainEvent):
    """The target has the live stream: its first bytes were sent, and it is shown as far as the target does that."""

    TOPIC: ClassVar[str] = "publication.arrived"

    details: dict[str, Any]


class Stopped(DomainEvent):
    """The live stream is no longer pushed. `reason` is empty if a client stopped it."""

    TOPIC: ClassVar[str] = "publication.stopped"

    reason: str = ""


class StartAwaited(DomainEvent):
    """A client started the publication while its Event was not live. It starts when the Event goes live. If not `awaited`, it
    was stopped."""

    TOPIC: ClassVar[str] = "publication.start_awaited"

    awaited: bool = True


class Recreated(DomainEvent):
    """The publication starts over: nothing is known of its target, which makes a new stream when the publication is started."""

    TOPIC: ClassVar[str] = "publication.recreated"


class TargetClosed(DomainEvent):
    """The target knows that the live stream has ended. With a `fault` it does not, and notifying it was given up."""

    TOPIC: ClassVar[str] = "publication.target_closed"

    fault: str = ""


EVENTS: tuple[type[DomainEvent], ...] = (
    PublicationScheduled,
    Processed,
    PublicationCompleted,
    PublicationFailed,
    PublicationPublished,
    Unpublished,
    Amended,
    Withdrawn,
    TargetCleared,
    PublicationStarted,
    Arrived,
    Stopped,
    StartAwaited,
    Recreated,
    TargetClosed,
)
