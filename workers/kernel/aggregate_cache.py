"""Aggregates that a consumer caches as of the position to which it has read, so that it need not load an aggregate for every
record.

A notification shows the aggregate right after the write, whatever has happened since. An aggregate is cached only while the
consumer sees all of its records: one that was loaded and had no record is not cached, because its records may be parked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import DomainEvent
from domain.kernel.stream_name import StreamName
from projections.log.sized_cache import NOTHING, SizedCache, Weighed, weigh
from projections.log.streams import Streams

R = TypeVar("R", bound=AggregateRoot)


class AggregateCache(Generic[R]):
    """A cache of aggregates of one kind by their keys, up to `most` bytes; the most recently changed stay.

    Aggregates that a batch needs stay until its end, whatever they weigh.
    """

    def __init__(self, kind: type[R], streams: Streams, *, most: int) -> None:
        self._kind = kind
        self._streams = streams
        self._cache = SizedCache[R](most)
        self._loaded: dict[str, R] = {}
        self._changed: dict[str, Weighed[R]] = {}

    def get(self, key: str) -> R | None:
        entry = self._changed.get(key) or self._cache.get(key)
        return entry.root if entry is not None else self._loaded.get(key)

    async def load(self, begins_later: Mapping[str, bool], *, position: int) -> None:
        """Load the aggregates of these keys that are not in the cache, as of this position. A value of True means that the
        aggregate begins after the position."""
        missing = [
            key for key, begins in begins_later.items() if not begins and key not in self._cache and key not in self._changed
        ]
        loaded = await self._streams.as_of([self._kind.stream(key) for key in missing], position)
        self._loaded = {root.key: root for root in loaded.values() if isinstance(root, self._kind)}

    def fold(self, event: DomainEvent, *, size: int) -> R:
        """Apply the next domain event of an aggregate. `size` is the approximate size of the event in memory, in bytes."""
        key = StreamName.read(event.originator_id).key
        entry = self._changed.get(key) or self._cache.get(key)
        if entry is None and (loaded := self._loaded.get(key)) is not None:
            entry = weigh(loaded)
        root: R = event.mutate(None if entry is None else entry.root)  # type: ignore[assignment]
        self._changed[key] = Weighed(root, (NOTHING if entry is None else entry.weight) + size)
        return root

    def forget(self, key: str) -> None:
        self._changed.pop(key, None)
        self._cache.pop(key)

    def clear(self) -> None:
        self._cache.clear()
        self._loaded.clear()
        self._changed.clear()

    def tidy(self) -> None:
        """Drop aggregates that were only loaded for this batch, and those without a record for the longest time."""
        self._loaded.clear()
        for key, entry in self._changed.items():
            self._cache.keep(key, entry)
        self._changed.clear()
