"""The readers of one process: the senders of requests, and the time that their lists and large bodies take.

All readers share the time of a process and its database. So while there are other readers and too little time, a reader that has
used up its budget rests before its next list or large body.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

_LEVEL: Final = 0.5
"""The fraction of busy time from which there is pressure."""
_WINDOW: Final = 0.25
_LASTING: Final = 5.0
"""The number of seconds for which pressure lasts after the last busy window, so that the work held back is not released all at
once."""
_SCHEDSTAT: Final = Path("/proc/thread-self/schedstat")


def busy_seconds() -> float:
    """Return the time for which this thread has used a processor, and on Linux also waited for one."""
    with suppress(OSError, ValueError):
        used, waited, _ = _SCHEDSTAT.read_text().split()
        return (int(used) + int(waited)) / 1e9
    return time.thread_time()


class Pressure:
    """Measures pressure when it is called by the thread of the event loop, at most once in a quarter of a second."""

    def __init__(self, *, busy: Callable[[], float] = busy_seconds, clock: Callable[[], float] = time.monotonic) -> None:
        self._busy = busy
        self._clock = clock
        self._looked_at, self._busy_then = clock(), busy()
        self._until = float("-inf")

    def __call__(self) -> bool:
        now = self._clock()
        if (seconds := now - self._looked_at) >= _WINDOW:
            busy = self._busy()
            if busy - self._busy_then >= _LEVEL * seconds:
                self._until = now + _LASTING
            self._looked_at, self._busy_then = now, busy
        return now < self._until


_RECENT: Final = 1.0
"""The number of seconds for which a reader counts as active after a request."""
_KEPT: Final = 1000
"""The number of readers whose use is recorded before those with nothing to work off are forgotten."""


class ClientBudget(NamedTuple):
    """The budget of one reader while there are others: `part` of the time, and `burst` seconds of it at once. A reader never rests
    for longer than `rest` seconds."""

    part: float = 0.2
    burst: float = 0.1
    rest: float = 2.0


class ClientBudgets:
    """The use of all readers of a process. A reader works off the time that it has taken at the rate of its budget."""

    def __init__(
        self,
        budget: ClientBudget | None = None,
        *,
        pressure: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget = budget or ClientBudget()
        self._pressure = pressure or Pressure(clock=clock)
        self._clock = clock
        self._last, self._last_at = "", float("-inf")
        self._other_at = float("-inf")
        """The time of the last request of any reader other than the last one."""
        self._taken: dict[str, tuple[float, float]] = {}
        """The seconds that each reader owed, and the time at which it did."""

    def sent(self, name: str) -> Reader:
        """Return the reader of a request, and record that it has sent one."""
        if name != self._last:
            self._last, self._other_at = name, self._last_at
        self._last_at = self._clock()
        self._pressure()  # measured before a budget is looked up
        return Reader(name, self)

    def took(self, name: str, seconds: float) -> None:
        """Charge seconds to a reader. However long the reader was alone, no more is recorded than the longest rest works off."""
        budget, now = self._budget, self._clock()
        self._taken[name] = min(self._owed(name, now) + seconds, budget.burst + budget.rest * budget.part), now
        if len(self._taken) > _KEPT:
            self._taken = {reader_name: taken for reader_name, taken in self._taken.items() if self._owed(reader_name, now)}

    def rest(self, name: str) -> float:
        """Return the number of seconds until the reader may take more."""
        over = self._owed(name, self._clock()) - self._budget.burst if name in self._taken else 0.0
        return over / self._budget.part if over > 0 and self.has_others(name) and self._pressure() else 0.0

    def has_others(self, name: str) -> bool:
        """Return True if another reader has sent a request within the last second."""
        at = self._other_at if name == self._last else self._last_at
        return self._clock() - at < _RECENT

    def _owed(self, name: str, now: float) -> float:
        """Return the seconds that a reader has taken and not yet worked off."""
        seconds, since = self._taken.get(name, (0.0, now))
        return max(seconds - (now - since) * self._budget.part, 0.0)


@dataclass(frozen=True, slots=True)
class Reader:
    """A sender of requests, or the product itself, which has no budget."""

    name: str
    budgets: ClientBudgets | None = field(default=None, compare=False, repr=False)

    def took(self, seconds: float) -> None:
        if self.budgets is not None:
            self.budgets.took(self.name, seconds)

    @property
    def alone(self) -> bool:
        return self.budgets is not None and not self.budgets.has_others(self.name)

    @property
    def rest(self) -> float:
        return 0.0 if self.budgets is None else self.budgets.rest(self.name)


READER: Final[ContextVar[Reader]] = ContextVar("reader", default=Reader(""))  # noqa: B039 - it is frozen
"""The reader on whose behalf the current task runs."""
