"""What encoders play for an Event that has a composition for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.composition.row import CompositionRow
from domain.composition.values import CompositionKind
from domain.kernel.clock import Clock
from domain.kernel.ports import ServiceNotes
from projections.sessions.store import Drawn, SessionStore
from workers.playout.programme import Programme
from workers.playout_ports import ItemFiles, Playlists, PlayoutCounts, PlayoutPlaylist


@dataclass(frozen=True)
class StoredPlaylists:
    """The port `Playlists`. `read` gives the composition of an Event."""

    read: Callable[[UUID], Awaitable[CompositionRow | None]]

    async def of(self, event_id: UUID) -> PlayoutPlaylist | None:
        found = await self.read(event_id)
        if found is None or found.kind is not CompositionKind.ENCODER:
            return None
        return PlayoutPlaylist(found.seen, found.playlist.items, found.playlist.looped)


@dataclass(frozen=True)
class _Places:
    """The port `Places`, of one encoder of a session."""

    store: SessionStore
    channel: str
    number: int
    encoder: int

    async def keep(self, place: Mapping[str, Any]) -> None:
        await self.store.keep_place(self.channel, self.number, part=str(self.encoder), place=place)


@dataclass(frozen=True)
class Playouts:
    """Makes the programmes of a session."""

    playlists: Playlists
    files: ItemFiles
    store: SessionStore
    notes: ServiceNotes
    clock: Clock
    counts: PlayoutCounts

    def programme(self, playlist: PlayoutPlaylist, *, event_id: UUID, channel: str, drawn: Drawn, encoder: int) -> Programme:
        """Of one encoder. It goes on where the session before was, if there was one under the same order."""
        kept = drawn.place.get(str(encoder))
        return Programme(
            event_id,
            playlist,
            playlists=self.playlists,
            files=self.files,
            places=_Places(self.store, channel, drawn.number, encoder),
            notes=self.notes,
            clock=self.clock,
            counts=self.counts,
            kept=kept if isinstance(kept, dict) else None,
        )
