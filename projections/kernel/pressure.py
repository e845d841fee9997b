"""Pressure: the state in which the event loop works, or waits for a processor, for most of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

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
