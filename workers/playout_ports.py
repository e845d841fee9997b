"""What a playout needs of the world: the playlist of an Event as it is now, the files of its items, and somewhere to note
what is on the air."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Protocol
from uuid import UUID

from domain.composition.values import Item
from projections.kernel.sizes import GIB


class Unplayable(Exception):
    """An item that cannot be played now. One sentence without secrets."""


@dataclass(frozen=True)
class PlayoutPlaylist:
    """The playlist of a composition that an encoder plays. `version` is another one after every change."""

    version: int
    items: tuple[Item, ...]
    looped: bool = False

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """Of each item, alike for items that play the same: what is noted of one holds no address of it."""
        return tuple(_mark(item) for item in self.items)


class Playlists(Protocol):
    async def of(self, event_id: UUID) -> PlayoutPlaylist | None:
        """None: the Event has no composition for encoders."""
        ...


@dataclass
class OpenedItem:
    """A file to be decoded from `start`, in seconds, to `end`, None where it ends by itself. Who takes it closes `descriptor`."""

    descriptor: int
    start: float = 0.0
    end: float | None = None


@dataclass(frozen=True, slots=True)
class ItemLimits:
    """Of the files that are fetched for items: all together, and what is left free of the disk, in bytes; `age` in seconds, since a
    file was fetched."""

    size: int = 20 * GIB
    age: float = 24 * 3600.0
    free: int = 1 * GIB


ITEM_LIMITS: Final = ItemLimits()


class ItemFiles(Protocol):
    """The files of items on this machine."""

    async def open(self, item: Item, *, within: float) -> OpenedItem:
        """Raises `Unplayable`, also where the file is not here in so many seconds; then it is fetched all the same."""
        ...

    def expect(self, items: Sequence[Item]) -> None:
        """These come soon: what must be fetched is fetched now."""
        ...


class Places(Protocol):
    """Where the place of a playout is kept: what was on the air, and since when."""

    async def keep(self, place: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class PlayoutStatistics:
    """What of a playlist is on the air. `item` is its index, None where there is none; `value` has neither user info nor query.
    `position` in the item, its `length` and how `late` the last frame was are in seconds."""

    item: int | None = None
    value: str = ""
    position: float = 0.0
    length: float | None = None
    next: int | None = None
    version: int = 0
    """Of the composition, as it was read last."""
    skipped: int = 0
    repeated: int = 0
    """Frames that were shown once more, because the next one did not come in time."""
    late: float = 0.0


class PlayoutCounts(Protocol):
    """What playouts do, counted."""

    def played(self) -> None: ...

    def skipped(self) -> None: ...

    def repeated(self) -> None: ...

    def late(self, seconds: float) -> None: ...


def _mark(item: Item) -> str:
    """What is played, without what means nothing here."""
    played = [item.type, item.value, item.start, item.end]
    return sha256(json.dumps(played).encode()).hexdigest()[:16]
