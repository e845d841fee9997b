"""Wake-ups: workers that poll tables are woken when an event in the log may have made work for them.

A wake-up is only a hint, and so are the streams that it names. A missed wake-up does no harm: the workers also poll slowly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Final

from workers.kernel.log_reader import LogReader, Page, Selection

POLL: Final = 1.0
"""Seconds between two polls of a worker that is not woken."""
REST: Final = 0.01
LONG_REST: Final = 0.03
_BATCH: Final = 8


def rest(tasks: int) -> float:
    """Return the seconds until the next poll of a worker that got this number of tasks. After one task it polls soon; after a few
    it waits to take more of them together; many are a batch already."""
    return LONG_REST if 1 < tasks < _BATCH else REST


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


Follower = Callable[[Sequence[str]], None]
"""Called with the streams that had an event of the named topics."""


class WakeupHub:
    """Wakes all its workers when the log has new events of these topics, or kinds of aggregates. Its followers get the streams of
    those events whose topics are `followed`."""

    def __init__(self, reader: LogReader, topics: Collection[str], *, followed: Collection[str] = ()) -> None:
        self._selection = Selection(topics)
        self._followed = followed
        self._wakers: list[Waker] = []
        self._followers: list[Follower] = []
        reader.watch(self._see)

    def waker(self) -> Waker:
        waker = Waker()
        self._wakers.append(waker)
        return waker

    def follow(self, follower: Follower) -> None:
        """Add a follower. Followers are called before the wakers are woken."""
        self._followers.append(follower)

    def _see(self, page: Page | None) -> None:
        """Wake the workers. Without a page anything may have happened."""
        if page is not None and not self._selection.concerns(page):
            return
        records = () if page is None else page.records
        streams = list(dict.fromkeys(record.stream for record in records if record.topic in self._followed))
        for follow in self._followers:
            follow(streams)
        for waker in self._wakers:
            waker.wake()
