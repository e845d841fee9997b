"""The events of an asset."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from domain.asset.values import AssetType, CaptionKind
from domain.kernel.event import DomainEvent, FirstEvent


class AssetRequested(FirstEvent):
    """A client requested an asset. `path` is the path of the future file, below the media root; `job` makes it."""

    TOPIC: ClassVar[str] = "asset.requested"

    event_id: UUID
    type: AssetType
    name: str
    path: str
    job: int


class CaptionRequested(FirstEvent):
    """A client requested a caption. `language` is a tag of BCP 47. `path` is the path of the future text, below the media root;
    `job` makes it."""

    TOPIC: ClassVar[str] = "asset.caption_requested"

    event_id: UUID
    name: str
    path: str
    language: str
    kind: CaptionKind
    job: int


class CaptionReplaced(DomainEvent):
    """Another text of the same language, kind and name was sent. `job` replaces the previous one by it."""

    TOPIC: ClassVar[str] = "asset.caption_replaced"

    job: int


class Discovered(FirstEvent):
    """A synchronisation found a file that no client has requested."""

    TOPIC: ClassVar[str] = "asset.discovered"

    event_id: UUID
    name: str
    path: str
    size: int
    modified: datetime


class CaptionDiscovered(FirstEvent):
    """A synchronisation found a text track that a job's step took from the source of the film. `language` is a tag of BCP 47, `und`
    if the source does not tell it."""

    TOPIC: ClassVar[str] = "asset.caption_discovered"

    event_id: UUID
    name: str
    path: str
    language: str
    kind: CaptionKind
    size: int
    modified: datetime


class AssetCompleted(DomainEvent):
    """The job ended and published the file. `job_version` is the version of the job at its end; an outcome with an earlier version
    is outdated."""

    TOPIC: ClassVar[str] = "asset.completed"

    job_version: int
    size: int


class AssetFailed(DomainEvent):
    TOPIC: ClassVar[str] = "asset.failed"
    STANDS_EMPTY: ClassVar[bool] = True

    job_version: int
    reason: str


class Restarted(DomainEvent):
    """The job continues after its end, or another job repeats it."""

    TOPIC: ClassVar[str] = "asset.restarted"

    job: int
    job_version: int


class Renamed(DomainEvent):
    TOPIC: ClassVar[str] = "asset.renamed"
    STANDS_EMPTY: ClassVar[bool] = True

    name: str


class FileChanged(DomainEvent):
    """A synchronisation found the file with another size or modification time."""

    TOPIC: ClassVar[str] = "asset.file_changed"

    size: int
    modified: datetime


class AssetRemoved(DomainEvent):
    """The asset was removed. `file_left` says that its file, or one that its job may still publish, has yet to be deleted."""

    TOPIC: ClassVar[str] = "asset.removed"

    file_left: bool


class FileDeleted(DomainEvent):
    """The file of a removed asset was deleted, and its path is free."""

    TOPIC: ClassVar[str] = "asset.file_deleted"


EVENTS: tuple[type[DomainEvent], ...] = (
    AssetRequested,
    CaptionRequested,
    Discovered,
    CaptionDiscovered,
    CaptionReplaced,
    AssetCompleted,
    AssetFailed,
    Restarted,
    Renamed,
    FileChanged,
    AssetRemoved,
    FileDeleted,
)
