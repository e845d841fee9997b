"""What can happen to a composition."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from domain.composition.values import CompositionKind, Playlist
from domain.kernel.event import DomainEvent, FirstEvent


class Composed(FirstEvent):
    """The Event has a playlist. `private`: so is the film when it is generated. `client`: whose jobs make the film. `generation` is
    the highest number of a film of this Event before. `cloned_from` is the Event whose playlist this is a copy of."""

    TOPIC: ClassVar[str] = "composition.composed"
    class_version: ClassVar[int] = 2

    event_id: UUID
    kind: CompositionKind
    playlist: Playlist
    private: bool = False
    live_stream_start: datetime | None = None
    client: str
    generation: int = 0
    cloned_from: UUID | None = None

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        """Version 2 added the loudness of the playlist. Without it a film has the usual one."""


class PlaylistReplaced(DomainEvent):
    TOPIC: ClassVar[str] = "composition.playlist_replaced"
    class_version: ClassVar[int] = 2

    playlist: Playlist
    client: str

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        """Version 2 added the loudness of the playlist. Without it a film has the usual one."""


class Cloned(DomainEvent):
    """The playlist of another Event took the place of the present one. Its film waits for no time."""

    TOPIC: ClassVar[str] = "composition.cloned"
    class_version: ClassVar[int] = 2

    source_event_id: UUID
    playlist: Playlist
    client: str

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        """Version 2 added the loudness of the playlist. Without it a film has the usual one."""


class _Generation(DomainEvent):
    """A GET of the playlist does not show its film."""

    @property
    def shown(self) -> bool:
        return False


class GenerationStarted(_Generation):
    """`job` makes the film of the present playlist from now on. `job_version` is that of the job at this moment, 0 for a new one.
    `generation` is a higher number for each playlist; a repeated or resumed job keeps its own."""

    TOPIC: ClassVar[str] = "composition.generation_started"

    job: int
    job_version: int = 0
    generation: int


class SourcesAwaited(_Generation):
    """An Event that the playlist shows is still to get its film: it waits for that."""

    TOPIC: ClassVar[str] = "composition.sources_awaited"


class Generated(_Generation):
    TOPIC: ClassVar[str] = "composition.generated"

    job_version: int


class GenerationFailed(_Generation):
    """`reason` is one sentence without secrets."""

    TOPIC: ClassVar[str] = "composition.generation_failed"

    reason: str
    job_version: int = 0


class Removed(DomainEvent):
    """The Event has no playlist any more. Its film stays."""

    TOPIC: ClassVar[str] = "composition.removed"


EVENTS: tuple[type[DomainEvent], ...] = (
    Composed,
    PlaylistReplaced,
    Cloned,
    GenerationStarted,
    SourcesAwaited,
    Generated,
    GenerationFailed,
    Removed,
)
