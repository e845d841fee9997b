"""The times at which endpoints need attention: one time for each of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

SPARE: Final = 64


class Timed(Protocol):
    def time_came(self, now: float) -> None: ...


class Timer:
    """The next time of each owner. `on_sooner` is called when the earliest time of all becomes earlier.

    A changed time leaves its entry in the heap. The heap is rebuilt when most of its entries are obsolete.
    """

    def __init__(self, on_sooner: Callable[[], None]) -> None:
        self._on_sooner = on_sooner
        self._due: dict[Timed, float] = {}
        self._heap: list[tuple[float, int, Timed]] = []
        self._numbers = count()

    @property
    def entries(self) -> int:
        """The number of times in memory, of owners and some that are no longer valid."""
        return len(self._heap)

    def set(self, owner: Timed, due: float | None) -> None:
        """Set the time of an owner; None if it needs no attention."""
        if self._due.get(owner) == due:
            return
        if due is None:
            self._due.pop(owner, None)
            return
        self._due[owner] = due
        entry = (due, next(self._numbers), owner)
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._due) + SPARE:
            self._heap = [(time, next(self._numbers), timed) for timed, time in self._due.items()]
            heapq.heapify(self._heap)
        if self._heap[0][2] is owner:
            self._on_sooner()

    @property
    def next_due(self) -> float | None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run(self, now: float) -> None:
        """Call all owners whose time has come."""
        while (due := self.next_due) is not None and due <= now:
            owner = heapq.heappop(self._heap)[2]
            del self._due[owner]
            owner.time_came(now)
