"""Aggregates that a consumer keeps as of the position to which it has read, so that it need not load one for every record.

A notification shows the aggregate right after the write, whatever has happened since. An aggregate is kept only while the consumer
sees all of its records: one that was loaded and had no record is not kept, because its records may be parked.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Generic, TypeVar

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import DomainEvent
from domain.kernel.stream_name import StreamName
from projections.log.streams import Streams

R = TypeVar("R", bound=AggregateRoot)


class AggregateCache(Generic[R]):
    """Aggregates of one kind by their keys; the most recently changed are kept."""

    def __init__(self, kind: type[R], streams: Streams, *, keep: int) -> None:
        self._kind = kind
        self._streams = streams
        self._keep = keep
        self._roots: OrderedDict[str, R] = OrderedDict()
        self._loaded: dict[str, R] = {}

    def get(self, key: str) -> R | None:
        return self._roots.get(key) or self._loaded.get(key)

    async def load(self, wanted: Mapping[str, bool], *, position: int) -> None:
        """Load those of these keys that are not in the cache, as of this position. True: the aggregate begins after it."""
        asked = [self._kind.stream(key) for key, begins in wanted.items() if not begins and key not in self._roots]
        found = await self._streams.as_of(asked, position)
        self._loaded = {root.key: root for root in found.values() if isinstance(root, self._kind)}

    def fold(self, event: DomainEvent) -> R:
        """Apply the next domain event of an aggregate."""
        key = StreamName.read(event.originator_id).key
        root: R = event.mutate(self.get(key))  # type: ignore[assignment]
        self._roots[key] = root
        self._roots.move_to_end(key)
        return root

    def forget(self, key: str) -> None:
        self._roots.pop(key, None)

    def clear(self) -> None:
        self._roots.clear()
        self._loaded.clear()

    def tidy(self) -> None:
        """After a batch: drop aggregates that were only loaded, and those without a record for the longest time."""
        self._loaded.clear()
        while len(self._roots) > self._keep:
            self._roots.popitem(last=False)
