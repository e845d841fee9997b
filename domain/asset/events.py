"""What can happen to an asset."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from domain.asset.values import AssetType, CaptionKind
from domain.kernel.event import DomainEvent, FirstEvent


class Requested(FirstEvent):
    """`path` is that of the file to be made, below the media root; `job` makes it."""

    TOPIC: ClassVar[str] = "asset.requested"

    event_id: UUID
    type: AssetType
    name: str
    path: str
    job: int


class CaptionRequested(FirstEvent):
    """`language` is a tag of BCP 47. `path` is that of the text to be made, below the media root; `job` makes it."""

    TOPIC: ClassVar[str] = "asset.caption_requested"

    event_id: UUID
    name: str
    path: str
    language: str
    kind: CaptionKind
    job: int


class CaptionReplaced(DomainEvent):
    """Another text of the same language, kind and name was sent; `job` puts it in the place of the one before."""

    TOPIC: ClassVar[str] = "asset.caption_replaced"

    job: int


class Discovered(FirstEvent):
    """A synchronisation has found a file that no client has requested."""

    TOPIC: ClassVar[str] = "asset.discovered"

    event_id: UUID
    name: str
    path: str
    size: int
    modified: datetime


class CaptionDiscovered(FirstEvent):
    """A synchronisation has found a text track that the step of a job found in the source of the film. `language` is a tag of
    BCP 47, `und` where the source does not tell it."""

    TOPIC: ClassVar[str] = "asset.caption_discovered"

    event_id: UUID
    name: str
    path: str
    language: str
    kind: CaptionKind
    size: int
    modified: datetime


class Completed(DomainEvent):
    """`job_version` is the version of the job at which it has ended: an earlier one is then no news."""

    TOPIC: ClassVar[str] = "asset.completed"

    job_version: int
    size: int


class Failed(DomainEvent):
    TOPIC: ClassVar[str] = "asset.failed"
    STANDS_EMPTY: ClassVar[bool] = True

    job_version: int
    reason: str


class Restarted(DomainEvent):
    """The job goes on after its end, or another job repeats it."""

    TOPIC: ClassVar[str] = "asset.restarted"

    job: int
    job_version: int


class Renamed(DomainEvent):
    TOPIC: ClassVar[str] = "asset.renamed"
    STANDS_EMPTY: ClassVar[bool] = True

    name: str


class FileChanged(DomainEvent):
    """A synchronisation has found the file with another size or time of its last change."""

    TOPIC: ClassVar[str] = "asset.file_changed"

    size: int
    modified: datetime


class Removed(DomainEvent):
    """`file_left`: its file, or one that its job may still publish, is yet to be deleted."""

    TOPIC: ClassVar[str] = "asset.removed"

    file_left: bool


class FileDeleted(DomainEvent):
    """After the removal: the path is free."""

    TOPIC: ClassVar[str] = "asset.file_deleted"


EVENTS: tuple[type[DomainEvent], ...] = (
    Requested,
    CaptionRequested,
    Discovered,
    CaptionDiscovered,
    CaptionReplaced,
    Completed,
    Failed,
    Restarted,
    Renamed,
    FileChanged,
    Removed,
    FileDeleted,
)
