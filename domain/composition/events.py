"""The events of a composition."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from domain.composition.values import CompositionKind, Playlist
from domain.kernel.event import DomainEvent, FirstEvent


class Composed(FirstEvent):
    """The Event got a playlist. `private` says that its film will be private too. `client` is the client whose jobs make the film.
    `generation` is the highest number of an earlier film of this Event. `cloned_from` is the Event whose playlist was copied."""

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
        """Version 2 added the loudness of the playlist. Without it a film has the usual loudness."""


class PlaylistReplaced(DomainEvent):
    TOPIC: ClassVar[str] = "composition.playlist_replaced"
    class_version: ClassVar[int] = 2

    playlist: Playlist
    client: str

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        """Version 2 added the loudness of the playlist. Without it a film has the usual loudness."""


class Cloned(DomainEvent):
    """The playlist of another Event replaced the present one. Its film does not wait for a scheduled time."""

    TOPIC: ClassVar[str] = "composition.cloned"
    class_version: ClassVar[int] = 2

    source_event_id: UUID
    playlist: Playlist
    client: str

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        """Version 2 added the loudness of the playlist. Without it a film has the usual loudness."""


class _Generation(DomainEvent):
    """An event about the film, which a GET of the playlist does not show."""

    @property
    def shown(self) -> bool:
        return False


class GenerationStarted(_Generation):
    """`job` makes the film of the present playlist from now on. `job_version` is the version of the job at this moment, 0 for a new
    one. `generation` increases with each playlist; a repeated or resumed job keeps its own."""

    TOPIC: ClassVar[str] = "composition.generation_started"

    job: int
    job_version: int = 0
    generation: int


class SourcesAwaited(_Generation):
    """An Event in the playlist does not have its film yet, and the composition waits for it."""

    TOPIC: ClassVar[str] = "composition.sources_awaited"


class Generated(_Generation):
    TOPIC: ClassVar[str] = "composition.generated"

    job_version: int


class GenerationFailed(_Generation):
    """The generation failed. `reason` is one sentence without secrets."""

    TOPIC: ClassVar[str] = "composition.generation_failed"

    reason: str
    job_version: int = 0


class CompositionRemoved(DomainEvent):
    """The playlist of the Event was removed. Its film stays."""

    TOPIC: ClassVar[str] = "composition.removed"


EVENTS: tuple[type[DomainEvent], ...] = (
    Composed,
    PlaylistReplaced,
    Cloned,
    GenerationStarted,
    SourcesAwaited,
    Generated,
    GenerationFailed,
    CompositionRemoved,
)
