"""Aggregates that a consumer keeps as of the position to which it has read, so that it need not load one for every record.

A notification shows the aggregate right after the write, whatever has happened since. An aggregate is kept only while the consumer
sees all of its records: one that was loaded and had no record is not kept, because its records may be parked.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Final, Generic, TypeVar

from cachetools import LRUCache
from pydantic_core import to_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import DomainEvent
from domain.kernel.stream_name import StreamName
from projections.log.streams import Streams

R = TypeVar("R", bound=AggregateRoot)

MIB: Final = 1024 * 1024
_OBJECT: Final = 2048
"""About the bytes of an aggregate without its content."""


class AggregateCache(Generic[R]):
    """Aggregates of one kind by their keys, up to `most` bytes; the most recently changed are kept.

    What a batch needs is held until its end, whatever it weighs. A weight is never too low: that of the state when it was loaded,
    and of each event since."""

    def __init__(self, kind: type[R], streams: Streams, *, most: int) -> None:
        self._kind = kind
        self._streams = streams
        self._kept = LRUCache[str, tuple[R, int]](most, getsizeof=itemgetter(1))
        self._loaded: dict[str, R] = {}
        self._changed: dict[str, tuple[R, int]] = {}

    def get(self, key: str) -> R | None:
        entry = self._changed.get(key) or self._kept.get(key)
        return entry[0] if entry is not None else self._loaded.get(key)

    async def load(self, wanted: Mapping[str, bool], *, position: int) -> None:
        """Load those of these keys that are not in the cache, as of this position. True: the aggregate begins after it."""
        missing = [key for key, begins in wanted.items() if not begins and key not in self._kept and key not in self._changed]
        found = await self._streams.as_of([self._kind.stream(key) for key in missing], position)
        self._loaded = {root.key: root for root in found.values() if isinstance(root, self._kind)}

    def fold(self, event: DomainEvent, *, size: int) -> R:
        """Apply the next domain event of an aggregate. `size` is that of the stored event, in bytes."""
        key = StreamName.read(event.originator_id).key
        entry = self._changed.get(key) or self._kept.get(key)
        if entry is not None:
            before, weight = entry
        else:
            before = self._loaded.get(key)  # type: ignore[assignment]
            weight = _OBJECT if before is None else _OBJECT + len(to_json(before.snapshot()))
        root: R = event.mutate(before)  # type: ignore[assignment]
        self._changed[key] = (root, weight + size)
        return root

    def forget(self, key: str) -> None:
        self._changed.pop(key, None)
        self._kept.pop(key, None)

    def clear(self) -> None:
        self._kept.clear()
        self._loaded.clear()
        self._changed.clear()

    def tidy(self) -> None:
        """After a batch: drop aggregates that were only loaded, and those without a record for the longest time."""
        self._loaded.clear()
        for key, entry in self._changed.items():
            if entry[1] <= self._kept.maxsize:
                self._kept[key] = entry
            else:
                self._kept.pop(key, None)
        self._changed.clear()
