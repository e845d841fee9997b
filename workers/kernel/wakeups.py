"""Wake-ups: workers that poll tables are woken when an event in the log may have made work for them.

A wake-up is only a hint. A missed wake-up does no harm: the workers also poll slowly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from workers.kernel.log_reader import LogReader, Page, Selection

POLL: Final = 1.0
"""Seconds between two polls of a worker that is not woken."""
SLOW_POLL: Final = 5.0
"""Seconds between two polls of a worker that has nothing in progress, and that the log wakes for all that it does."""
REST: Final = 0.01
"""Seconds that a worker rests after a turn, so that what changes meanwhile is handled together."""


class Waker:
    """An event with a time limit: one worker sleeps until it is woken or has to poll."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def sleep(self, seconds: float = POLL) -> bool:
        """Sleep, and return True if the worker was woken. A wake-up before the call counts: the worker may have read older data."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        woken = self._woken.is_set()
        self._woken.clear()
        return woken


class WakeupHub:
    """Wakes all its workers when the log has new events of these topics, or kinds of aggregates."""

    def __init__(self, reader: LogReader, topics: Collection[str]) -> None:
        self._selection = Selection(topics)
        self._wakers: list[Waker] = []
        reader.watch(self._see)

    def waker(self) -> Waker:
        waker = Waker()
        self.add(waker)
        return waker

    def add(self, waker: Waker) -> None:
        self._wakers.append(waker)

    def _see(self, page: Page | None) -> None:
        """Wake the workers. Without a page anything may have happened."""
        if page is None or self._selection.concerns(page):
            for waker in self._wakers:
                waker.wake()
