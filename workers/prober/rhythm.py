"""The rhythm of the samples: which points are due, each once in an interval, spread over it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

from projections.publishing_points.samples import PointKey

INTERVAL: Final = 5.0
"""Seconds between two samples of a point."""
_SOON: Final = 0.4
"""Of an interval between the first two samples that told something, since only two tell whether data come, and between the first
ones of a point that tells nothing yet: its encoder starts at the same time as we do."""
_FIRST: Final = 4
"""So many are the first ones."""
AT_ONCE: Final = 2000
"""So many new points take the whole interval to begin."""
_PATIENCE: Final = 2.0
"""Intervals between two samples of a point that told nothing: it may keep us waiting, or have been asked in every way."""


@dataclass(slots=True)
class _Turn:
    due: float
    looks: int = 0
    told: int = 0


class Rhythm:
    """Times are those of a monotonic clock. A point that is taken is not due again before it is put back."""

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._turns: dict[PointKey, _Turn] = {}
        self._heap: list[tuple[float, PointKey]] = []

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def points(self) -> Collection[PointKey]:
        return self._turns.keys()

    def set(self, points: Mapping[PointKey, float | None], *, now: float) -> None:
        """These points and no others. With each new one how many seconds ago somebody sampled it; None: nobody, it is due at once;
        below 0, since a clock was set back, counts as 0. Many that are new together are spread over the interval, and stay so."""
        for key in self._turns.keys() - points.keys():
            del self._turns[key]
        new = {key: age for key, age in points.items() if key not in self._turns}
        over = min(len(new) / AT_ONCE, 1.0) * self._interval
        for key, age in new.items():
            if age is None:
                self._add(key, _Turn(now + over * _phase(key)))
            else:
                self._add(key, _Turn(now + max(self._interval - max(age, 0.0), 0.0), looks=_FIRST, told=2))
        if len(self._heap) > 2 * len(self._turns) + 100:
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapify(self._heap)

    def due_at(self) -> float | None:
        """When the next point is due."""
        while self._heap and not self._is_current(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> tuple[PointKey, float] | None:
        """The point that has been due for longest, and since when; None: none is due."""
        due = self.due_at()
        if due is None or due > now:
            return None
        _, key = heappop(self._heap)
        self._turns[key].due = float("inf")
        return key, due

    def put_back(self, key: PointKey, *, due: float, now: float, told: bool = True, slow: bool = False) -> None:
        """After a sample that was due at `due`. `told`: whether it told a state; `slow`: it kept us waiting. What is late does not
        make the next one early."""
        turn = self._turns.get(key)
        if turn is None:
            return
        turn.looks += 1
        turn.told += told
        soon = turn.told == 1 if told else turn.told == 0 and turn.looks < _FIRST and not slow
        interval = self._interval * (_SOON if soon else 1.0 if told else _PATIENCE)
        turn.due = max(due + interval, now + interval / 2)
        heappush(self._heap, (turn.due, key))

    def put_off(self, key: PointKey, until: float) -> None:
        """A point that was taken and not sampled."""
        self._turns[key].due = until
        heappush(self._heap, (until, key))

    def _add(self, key: PointKey, turn: _Turn) -> None:
        self._turns[key] = turn
        heappush(self._heap, (turn.due, key))

    def _is_current(self, entry: tuple[float, PointKey]) -> bool:
        turn = self._turns.get(entry[1])
        return turn is not None and turn.due == entry[0]


def _phase(key: PointKey) -> float:
    return (hash(key) % 1000) / 1000
