"""The result of a look-up of a composition."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.composition.aggregate import Composition
from domain.composition.values import CompositionKind, CompositionState, Playlist


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositionRow:
    """A composition as a look-up returns it. `version` belongs to the last change that a GET shows, `seen` to the last change of
    all."""

    id: UUID
    version: int
    seen: int
    event_id: UUID
    kind: CompositionKind
    playlist: Playlist
    state: CompositionState
    live_stream_start: datetime | None
    private: bool
    client: str
    job: int | None
    generation: int
    reason: str
    awaits_sources: bool = False

    @classmethod
    def of(cls, composition: Composition) -> CompositionRow:
        return cls(
            id=UUID(composition.key),
            version=composition.shown_version,
            seen=composition.version,
            event_id=composition.event_id,
            kind=composition.kind,
            playlist=composition.playlist,
            state=composition.state,
            live_stream_start=composition.live_stream_start,
            private=composition.private,
            client=composition.client,
            job=composition.job,
            generation=composition.generation,
            reason=composition.reason,
            awaits_sources=composition.awaits_sources,
        )

    @property
    def running_job(self) -> int | None:
        """The job that must be cancelled when another playlist arrives."""
        return self.job if self.state is CompositionState.GENERATING else None
