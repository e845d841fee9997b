"""The readers of one process: the senders of requests, and the time that their lists and large bodies take.

All readers share the time of a process and its database. So while there are other readers, a reader that has used up its budget,
and has taken more than the mean of the others, rests before its next list or large body.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import exp, log
from typing import Final, NamedTuple

_RECENT: Final = 1.0
"""The number of seconds for which a reader counts as active after a request."""
_KEPT: Final = 1000
"""The number of readers that are recorded before those that have sent nothing for some seconds are forgotten."""
_FORGOTTEN: Final = 10.0


class ClientBudget(NamedTuple):
    """The budget of one reader while there are others: `seconds` within about the last `window` seconds."""

    seconds: float = 0.3
    window: float = 2.0


@dataclass(slots=True)
class _Use:
    sent_at: float
    seconds: float = 0.0
    taken_at: float = 0.0


class ClientBudgets:
    """The use of all readers of a process. It decays: of what a reader took, a third counts after a window.

    On a slow machine everything takes long, so only readers that have taken more than the mean of the other active ones rest."""

    def __init__(self, budget: ClientBudget | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._budget = budget or ClientBudget()
        self._clock = clock
        self._uses: dict[str, _Use] = {}
        self._tidied_at = clock()

    def sent(self, name: str) -> Reader:
        """Return the reader of a request, and record that it has sent one."""
        now, use = self._clock(), self._uses.get(name)
        if use is None:
            if len(self._uses) >= _KEPT and now - self._tidied_at > _RECENT:
                self._uses = {each: use for each, use in self._uses.items() if now - use.sent_at < _FORGOTTEN}
                self._tidied_at = now
            self._uses[name] = _Use(now)
        else:
            use.sent_at = now
        return Reader(name, self)

    def took(self, name: str, seconds: float) -> None:
        """Charge seconds to a reader."""
        now = self._clock()
        use = self._uses.setdefault(name, _Use(now))
        use.seconds, use.taken_at = self._seconds(use, now) + seconds, now

    def rest(self, name: str) -> float:
        """Return the number of seconds until the reader may take more."""
        now, use = self._clock(), self._uses.get(name)
        seconds = 0.0 if use is None else self._seconds(use, now)
        if seconds <= self._budget.seconds:
            return 0.0
        others = [self._seconds(each, now) for each in self._uses.values() if each is not use and now - each.sent_at < _RECENT]
        if not others:
            return 0.0
        return max(self._budget.window * log(seconds / max(sum(others) / len(others), self._budget.seconds)), 0.0)

    def has_others(self, name: str) -> bool:
        """Return True if another reader has sent a request within the last second."""
        now = self._clock()
        return any(now - use.sent_at < _RECENT for other, use in self._uses.items() if other != name)

    def _seconds(self, use: _Use, now: float) -> float:
        return use.seconds * exp((use.taken_at - now) / self._budget.window)


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
