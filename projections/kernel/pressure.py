"""Pressure: whether the event loop has work, or waits for a processor, for most of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_LEVEL: Final = 0.5
"""The part of the time from which on there is pressure."""
_WINDOW: Final = 0.25
_HELD: Final = 5.0
"""Seconds for which it lasts after the last window with pressure: what is held back then is not let go all at once."""
_SCHEDSTAT: Final = Path("/proc/thread-self/schedstat")


def busy_seconds() -> float:
    """For how long this thread has used a processor, and on Linux also waited for one."""
    with suppress(OSError, ValueError):
        used, waited, _ = _SCHEDSTAT.read_text().split()
        return (int(used) + int(waited)) / 1e9
    return time.thread_time()


class Pressure:
    """Asked by the thread of the event loop. It looks when it is asked, at most once in a quarter of a second."""

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
                self._until = now + _HELD
            self._looked_at, self._busy_then = now, busy
        return now < self._until
