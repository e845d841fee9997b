"""The rhythm of samples: decides which points are due. Each is due once in an interval, and the points are spread over it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

from projections.publishing_points.samples import PointKey

INTERVAL: Final = 5.0
"""Seconds between two samples of a point."""
_SOON: Final = 0.4
"""The part of an interval between the first two samples that got a state, since only two show if data arrive, and between the first
samples of a point without a state: its encoder starts at the same time."""
_FIRST: Final = 4
"""The number of first samples that are taken sooner."""
AT_ONCE: Final = 2000
"""The number of new points that take the whole interval to begin."""
_PATIENCE: Final = 2.0
"""Intervals between two samples of a point without a state: it may answer slowly, or have been asked by every strategy."""


@dataclass(slots=True)
class _Turn:
    due: float
    looks: int = 0
    answers: int = 0


class Rhythm:
    """The due times of points, by a monotonic clock. A point that is taken is not due again before it is put back."""

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
        """Set the points. The value of a new point is the number of seconds since it was last sampled; None if it never was, so it
        is due at once. A value below 0, since a clock was set back, counts as 0. If many points are new together, they are spread
        over the interval, and stay so."""
        for key in self._turns.keys() - points.keys():
            del self._turns[key]
        new = {key: age for key, age in points.items() if key not in self._turns}
        over = min(len(new) / AT_ONCE, 1.0) * self._interval
        for key, age in new.items():
            if age is None:
                self._add(key, _Turn(now + over * _phase(key)))
            else:
                self._add(key, _Turn(now + max(self._interval - max(age, 0.0), 0.0), looks=_FIRST, answers=2))
        if len(self._heap) > 2 * len(self._turns) + 100:
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapify(self._heap)

    def due_at(self) -> float | None:
        """Return the time at which the next point is due."""
        while self._heap and not self._is_current(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> tuple[PointKey, float] | None:
        """Return the point that has been due for longest, and its due time; None if none is due."""
        due = self.due_at()
        if due is None or due > now:
            return None
        _, key = heappop(self._heap)
        self._turns[key].due = float("inf")
        return key, due

    def put_back(self, key: PointKey, *, due: float, now: float, answered: bool = True, slow: bool = False) -> None:
        """Put back a point after a sample that was due at `due`. `answered` is True if it got a state; `slow` if the answer was
        slow. A late sample does not make the next one early."""
        turn = self._turns.get(key)
        if turn is None:
            return
        turn.looks += 1
        turn.answers += answered
        soon = turn.answers == 1 if answered else turn.answers == 0 and turn.looks < _FIRST and not slow
        interval = self._interval * (_SOON if soon else 1.0 if answered else _PATIENCE)
        turn.due = max(due + interval, now + interval / 2)
        heappush(self._heap, (turn.due, key))

    def put_off(self, key: PointKey, until: float) -> None:
        """Postpone a point that was taken and not sampled."""
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
