"""Aggregates that a consumer keeps as of the position to which it has read, so that it need not load one for every record.

architecture.md, §3: what is told of a write is how its aggregate was right after it, whatever has happened since. One is kept only
while every one of its records comes by: what was loaded and had no record is not, for its records may be parked.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Generic, TypeVar

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import DomainEvent
from projections.log.streams import Streams

R = TypeVar("R", bound=AggregateRoot)


class AtHand(Generic[R]):
    """Of one kind, by their keys; those that had records last."""

    def __init__(self, kind: type[R], streams: Streams, *, keep: int) -> None:
        self._kind = kind
        self._streams = streams
        self._keep = keep
        self._roots: OrderedDict[str, R] = OrderedDict()
        self._loaded: dict[str, R] = {}

    def get(self, key: str) -> R | None:
        return self._roots.get(key) or self._loaded.get(key)

    async def load(self, wanted: Mapping[str, bool], *, position: int) -> None:
        """As they were at this position, of these keys those that are not at hand. True: it only begins behind it."""
        asked = [self._kind.stream(key) for key, begins in wanted.items() if not begins and key not in self._roots]
        found = await self._streams.as_of(asked, position)
        self._loaded = {root.key: root for root in found.values() if isinstance(root, self._kind)}

    def fold(self, event: DomainEvent) -> R:
        """What comes of an aggregate by its next domain event."""
        key = event.originator_id.partition(":")[2]
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
        """After a batch: let go of what was only loaded, and of those that had no record for the longest time."""
        self._loaded.clear()
        while len(self._roots) > self._keep:
            self._roots.popitem(last=False)
