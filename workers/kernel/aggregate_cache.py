"""Aggregates that a consumer keeps as of the position to which it has read, so that it need not load one for every record.

A notification shows the aggregate right after the write, whatever has happened since. An aggregate is kept only while the consumer
sees all of its records: one that was loaded and had no record is not kept, because its records may be parked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import DomainEvent
from domain.kernel.stream_name import StreamName
from projections.log.streams import Streams
from projections.log.weighed import NOTHING, Weighed, WeighedCache, weigh

R = TypeVar("R", bound=AggregateRoot)


class AggregateCache(Generic[R]):
    """Aggregates of one kind by their keys, up to `most` bytes; the most recently changed are kept.

    What a batch needs is held until its end, whatever it weighs."""

    def __init__(self, kind: type[R], streams: Streams, *, most: int) -> None:
        self._kind = kind
        self._streams = streams
        self._kept = WeighedCache[R](most)
        self._loaded: dict[str, R] = {}
        self._changed: dict[str, Weighed[R]] = {}

    def get(self, key: str) -> R | None:
        entry = self._changed.get(key) or self._kept.get(key)
        return entry.root if entry is not None else self._loaded.get(key)

    async def load(self, wanted: Mapping[str, bool], *, position: int) -> None:
        """Load those of these keys that are not in the cache, as of this position. True: the aggregate begins after it."""
        missing = [key for key, begins in wanted.items() if not begins and key not in self._kept and key not in self._changed]
        found = await self._streams.as_of([self._kind.stream(key) for key in missing], position)
        self._loaded = {root.key: root for root in found.values() if isinstance(root, self._kind)}

    def fold(self, event: DomainEvent, *, size: int) -> R:
        """Apply the next domain event of an aggregate. `size` is about what the event takes in memory, in bytes."""
        key = StreamName.read(event.originator_id).key
        entry = self._changed.get(key) or self._kept.get(key)
        if entry is None and (loaded := self._loaded.get(key)) is not None:
            entry = weigh(loaded)
        root: R = event.mutate(None if entry is None else entry.root)  # type: ignore[assignment]
        self._changed[key] = Weighed(root, (NOTHING if entry is None else entry.weight) + size)
        return root

    def forget(self, key: str) -> None:
        self._changed.pop(key, None)
        self._kept.pop(key)

    def clear(self) -> None:
        self._kept.clear()
        self._loaded.clear()
        self._changed.clear()

    def tidy(self) -> None:
        """After a batch: drop aggregates that were only loaded, and those without a record for the longest time."""
        self._loaded.clear()
        for key, entry in self._changed.items():
            self._kept.keep(key, entry)
        self._changed.clear()
