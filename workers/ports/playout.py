"""The ports of a playout: the programme of an encoder, the current playlist of an Event, the files of its items, and the store of
the position on the air."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Protocol
from urllib.parse import urlsplit
from uuid import UUID

from domain.composition.values import Item, ItemType
from projections.kernel.sizes import GIB


class Unplayable(Exception):
    """Raised when an item cannot be played now. Its text is one sentence without secrets."""


@dataclass(frozen=True)
class PlayoutPlaylist:
    """The playlist of a composition that an encoder plays. `version` changes with every change of the playlist."""

    version: int
    items: tuple[Item, ...]
    looped: bool = False

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """A digest of each item, equal for items that play the same. It reveals no address of an item, so it can be stored."""
        return tuple(_mark(item) for item in self.items)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an item in its playlist: its index, and its mark."""

    index: int
    mark: str


@dataclass(frozen=True, slots=True)
class DueItem:
    """An item and the offset into it, in seconds. `over` is True if it was the last item and is over. `began` is the time at which
    its beginning was due; None if it begins now."""

    place: Place
    offset: float = 0.0
    over: bool = False
    began: float | None = None


class Playlists(Protocol):
    async def of(self, event_id: UUID) -> PlayoutPlaylist | None:
        """Return the playlist of the Event; None if it has no composition for encoders."""
        ...


@dataclass
class OpenedItem:
    """A file to decode from `start` to `end`, in seconds; `end` is None if the file is played to its end. The receiver closes
    `descriptor`."""

    descriptor: int
    start: float = 0.0
    end: float | None = None


@dataclass(frozen=True, slots=True)
class ItemLimits:
    """The limits of the files that are fetched for items: `size` of all together and `free` space to leave on the disk in bytes,
    and `age` in seconds since a file was fetched."""

    size: int = 20 * GIB
    age: float = 24 * 3600.0
    free: int = 1 * GIB


ITEM_LIMITS: Final = ItemLimits()


class ItemFiles(Protocol):
    """The files of items on this machine."""

    async def open(self, item: Item, *, within: float) -> OpenedItem:
        """Open the file of an item. Raise `Unplayable`, also if the file is not on this machine within so many seconds; fetching it
        then continues."""
        ...

    def expect(self, items: Sequence[Item]) -> None:
        """Start fetching the files of these items, which are played soon."""
        ...


class PlaceStore(Protocol):
    """The store for the position of a playout: the item that was on the air, and since when."""

    async def keep(self, place: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class PlayoutStatistics:
    """The state of a playlist on the air. `item` is the index of the current item, None if there is none; `value` has neither user
    info nor query. `position` in the item, its `length` and the delay `late` of the last frame are in seconds."""

    item: int | None = None
    value: str = ""
    position: float = 0.0
    length: float | None = None
    next: int | None = None
    version: int = 0
    """The version of the composition as last read."""
    skipped: int = 0
    repeated: int = 0
    """The number of frames that were shown again because the next one was late."""
    late: float = 0.0


class PlayoutCounts(Protocol):
    """Counters of what playouts do."""

    def played(self) -> None: ...

    def skipped(self) -> None: ...

    def repeated(self) -> None: ...

    def late(self, seconds: float) -> None: ...


class Programme(Protocol):
    """The source of an encoder: the playlist of an Event as it changes, and the place in it. Times are in seconds since 1970."""

    @property
    def playlist(self) -> PlayoutPlaylist: ...

    @property
    def counts(self) -> PlayoutCounts: ...

    @property
    def skipped(self) -> int: ...

    def due(self) -> DueItem | None:
        """Return what is to be on the air now, by the clock."""
        ...

    def successor(self, place: Place | None) -> Place | None: ...

    def item(self, place: Place) -> Item | None:
        """Return the item at this place; None if the playlist has changed meanwhile."""
        ...

    async def open(self, item: Item, *, place: Place, within: float) -> OpenedItem:
        """Open an item, and prefetch the items after it. Raise `Unplayable`."""
        ...

    def length(self, mark: str) -> float | None: ...

    def now(self) -> float: ...

    def began(self, place: Place, *, at: float) -> None:
        """Record that the item is on the air; its beginning was due `at`."""
        ...

    def over(self, place: Place) -> None:
        """Record that the playlist is over after this item."""
        ...

    def measured(self, mark: str, seconds: float) -> None:
        """Record the length of the items with this mark."""
        ...

    def skip(self, place: Place, *, item: Item, reason: str) -> None:
        """Record that an item is skipped. The caller does not wait for the note about it."""
        ...

    async def follow(self) -> None:
        """Read the playlist repeatedly, until the task is cancelled."""
        ...

    async def keep(self) -> None:
        """Write the place whenever it has changed, until the task is cancelled."""
        ...


def item_label(item: Item) -> str:
    """Return the value of an item without its possible secrets: user info and query of a URL."""
    if item.type is ItemType.EVENT:
        return f"the Event {item.value}"
    try:
        parts = urlsplit(item.value)
    except ValueError:
        return "a URL that cannot be read"
    if not parts.scheme:
        return parts.path
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _mark(item: Item) -> str:
    """Return a digest of the members of the item that decide what is played."""
    played = [item.type, item.value, item.start, item.end]
    return sha256(json.dumps(played).encode()).hexdigest()[:16]
