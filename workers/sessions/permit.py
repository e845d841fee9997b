"""The permission to send, which a session checks before every write to another system.

A worker may send as long as no other worker can have begun a session of the same key, whatever happens to its clock, its process or
its database: see ADR 0053.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

MARGIN: Final = 1 / 6
"""The part of a lease before its end in which a session is already silent: a write that was permitted takes a moment."""
LONGEST_GAP: Final = 1 / 3
"""The part of a lease between two ticks after which the process counts as having been frozen."""
TICKS: Final = 24
"""The number of ticks in a lease."""


def _awake_or_asleep() -> float:
    """Return the seconds of a clock that cannot be set, and that continues while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SendPermit:
    """The permission of one worker for all its sessions. `tick` is called continuously by a separate task."""

    def __init__(self, lease: float, *, clock: Callable[[], float] = _awake_or_asleep) -> None:
        self._margin = lease * MARGIN
        self._longest_gap = lease * LONGEST_GAP
        self._clock = clock
        self._until = float("-inf")
        self._alone = False
        self._ticked = float("-inf")
        self._frozen = True

    def renew(self, seconds: float, *, alone: bool) -> None:
        """Extend the permission: the database has answered that for so many seconds no other worker can take a shard. `alone` is
        True if there was no other worker then."""
        self._ticked = self._clock()
        self._until, self._alone, self._frozen = self._ticked + seconds, alone, False

    def tick(self) -> None:
        now = self._clock()
        self._frozen = self._frozen or now - self._ticked > self._longest_gap
        self._ticked = now

    @property
    def valid(self) -> bool:
        """True within the lease. After its end it is True only while the database does not answer, if there was no other worker,
        and if the process was not frozen since: a worker that began meanwhile may have taken over its sessions."""
        now = self._clock()
        if now < self._until - self._margin:
            return True
        return self._alone and not self._frozen and now - self._ticked <= self._longest_gap
