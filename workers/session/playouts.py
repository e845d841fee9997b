"""The programmes that encoders play for an Event with a composition for encoders."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.composition.row import CompositionRow
from domain.composition.values import CompositionKind
from domain.kernel.clock import Clock
from domain.kernel.ports import ServiceNotes
from projections.session.store import Drawn, SessionStore
from workers.playout.programme import PlayoutProgramme
from workers.ports.playout import ItemFiles, Playlists, PlayoutCounts, PlayoutPlaylist


@dataclass(frozen=True)
class StoredPlaylists:
    """Playlists of stored compositions: implements `Playlists`. `read` returns the composition of an Event."""

    read: Callable[[UUID], Awaitable[CompositionRow | None]]

    async def of(self, event_id: UUID) -> PlayoutPlaylist | None:
        row = await self.read(event_id)
        if row is None or row.kind is not CompositionKind.ENCODER:
            return None
        return PlayoutPlaylist(row.seen, row.playlist.items, row.playlist.looped)


@dataclass(frozen=True)
class _Places:
    """The place of one encoder of a session: implements `Places`."""

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

    def programme(self, playlist: PlayoutPlaylist, *, event_id: UUID, channel: str, drawn: Drawn, encoder: int) -> PlayoutProgramme:
        """Return the programme of one encoder. It continues at the place of the previous session, if there was one under the same
        order."""
        last_place = drawn.place.get(str(encoder))
        return PlayoutProgramme(
            event_id,
            playlist,
            playlists=self.playlists,
            files=self.files,
            places=_Places(self.store, channel, drawn.number, encoder),
            notes=self.notes,
            clock=self.clock,
            counts=self.counts,
            last_place=last_place if isinstance(last_place, dict) else None,
        )
