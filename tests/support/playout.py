"""The environment of a playout in memory: the playlist that a test changes, files of a folder, and the stored place."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from domain.composition.values import Item, ItemType
from domain.kernel.clock import Clock
from workers.kernel.metrics import PlayoutMetrics
from workers.playout.programme import PlayoutProgramme
from workers.ports.playout import OpenedItem, PlayoutPlaylist, Unplayable

EVENT = UUID(int=7)


def item(value: str, **properties: Any) -> Item:
    return Item(type=ItemType.DIRECT_FULL_MP4, value=value, properties=properties)


@dataclass
class Shelf:
    """An implementation of `Playlists`, `ItemFiles`, `Places` and `ServiceNotes`. Trims are in seconds here."""

    root: Path
    playlist: PlayoutPlaylist = field(default_factory=lambda: PlayoutPlaylist(0, ()))
    expected: list[str] = field(default_factory=list)
    place: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    reads: int = 0

    def put(self, *items: Item | str, looped: bool = False) -> None:
        taken = tuple(item(each) if isinstance(each, str) else each for each in items)
        self.playlist = PlayoutPlaylist(self.playlist.version + 1, taken, looped)

    async def of(self, event_id: UUID) -> PlayoutPlaylist | None:
        self.reads += 1
        return self.playlist

    async def open(self, item: Item, *, within: float) -> OpenedItem:
        try:
            descriptor = os.open(self.root / item.value, os.O_RDONLY)
        except OSError:
            raise Unplayable("There is no such file.") from None
        end = item.properties.get("end")
        return OpenedItem(descriptor, float(item.properties.get("start", 0)), None if end is None else float(end))

    def expect(self, items: Sequence[Item]) -> None:
        self.expected = [each.value for each in items]

    async def keep(self, place: Mapping[str, Any]) -> None:
        self.place = place

    async def warn(self, message: str, *, subject: str) -> None:
        assert subject == str(EVENT)
        self.notes.append(message)

    def programme(
        self, *, last_place: Mapping[str, Any] | None = None, look: float = 0.05, clock: Clock | None = None
    ) -> PlayoutProgramme:
        return PlayoutProgramme(
            EVENT,
            self.playlist,
            playlists=self,
            files=self,
            places=self,
            notes=self,
            clock=clock or (lambda: datetime.now(UTC)),
            counts=PlayoutMetrics(),
            last_place=last_place,
            look=look,
        )
