"""The readers of one process: who sends requests, and how much of its time their lists and large bodies take.

A process and its database have one time for all. So while there are others, and not enough time, a reader that has taken more than
its share rests before its next list or large body.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from projections.kernel.pressure import Pressure

_RECENT: Final = 1.0
"""Seconds for which a reader counts as one beside the others."""
_KEPT: Final = 1000
"""Readers of whom is known what they have taken, before those without any are forgotten."""


class Share(NamedTuple):
    """What one reader beside others gets: `part` of the time, and `burst` seconds of it at once. It never rests for longer than
    `rest` seconds."""

    part: float = 0.2
    burst: float = 0.1
    rest: float = 2.0


class Readers:
    """What a reader has taken is worked off at the rate of its share."""

    def __init__(
        self,
        share: Share | None = None,
        *,
        pressure: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share = share or Share()
        self._pressure = pressure or Pressure(clock=clock)
        self._clock = clock
        self._last, self._last_at = "", float("-inf")
        self._other_at = float("-inf")
        """When somebody else than the last one sent a request."""
        self._taken: dict[str, tuple[float, float]] = {}
        """Seconds, and when they were so many."""

    def sent(self, name: str) -> Reader:
        """The reader of a request."""
        if name != self._last:
            self._last, self._other_at = name, self._last_at
        self._last_at = self._clock()
        self._pressure()  # so that it is known before a share is asked for
        return Reader(name, self)

    def took(self, name: str, seconds: float) -> None:
        """No more is kept than the longest rest takes to work off, however long the reader was alone."""
        share, now = self._share, self._clock()
        self._taken[name] = min(self._left(name, now) + seconds, share.burst + share.rest * share.part), now
        if len(self._taken) > _KEPT:
            self._taken = {one: taken for one, taken in self._taken.items() if self._left(one, now)}

    def rest(self, name: str) -> float:
        """Seconds until it may take more."""
        over = self._left(name, self._clock()) - self._share.burst if name in self._taken else 0.0
        return over / self._share.part if over > 0 and self.has_others(name) and self._pressure() else 0.0

    def has_others(self, name: str) -> bool:
        """Whether somebody else has sent a request within a second."""
        at = self._other_at if name == self._last else self._last_at
        return self._clock() - at < _RECENT

    def _left(self, name: str, now: float) -> float:
        """What it has taken and not worked off."""
        seconds, since = self._taken.get(name, (0.0, now))
        return max(seconds - (now - since) * self._share.part, 0.0)


@dataclass(frozen=True, slots=True)
class Reader:
    """One of the readers, or the product itself, which has no share."""

    name: str
    readers: Readers | None = field(default=None, compare=False, repr=False)

    def took(self, seconds: float) -> None:
        if self.readers is not None:
            self.readers.took(self.name, seconds)

    @property
    def alone(self) -> bool:
        return self.readers is not None and not self.readers.has_others(self.name)

    @property
    def rest(self) -> float:
        return 0.0 if self.readers is None else self.readers.rest(self.name)


READER: Final[ContextVar[Reader]] = ContextVar("reader", default=Reader(""))  # noqa: B039 - it is frozen
"""For whom the present task reads."""
