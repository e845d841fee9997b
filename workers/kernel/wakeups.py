"""Wake-ups: workers that poll tables are woken when something in the log may have made work for them.

A wake-up is only a hint. One that is missed, while Kafka is down for instance, does no harm: the workers poll slowly by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import ClassVar, Final, Protocol

from domain.kernel.errors import Unavailable
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database import Database
from projections.log import reader
from projections.log.log_watcher import LogWatcher
from workers.kernel.feed import Feed

POLL: Final = 1.0
"""Seconds between two polls of a worker that is not woken."""
REST: Final = 0.01
LONG_REST: Final = 0.03
_BATCH: Final = 8
_SHORT_REST: Final = 0.005
_MUCH: Final = 16


def rest(found: int) -> float:
    """Seconds until the next poll of a worker that found so many tasks. After one, poll soon; after a few, wait for more to take
    them together; many are a batch already."""
    return LONG_REST if 1 < found < _BATCH else REST


class Waker:
    """An event with a time limit: lets one worker sleep until it is woken or has to poll."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def sleep(self, seconds: float = POLL) -> bool:
        """Whether it was woken. A wake-up from before the call counts: the worker may have read older data."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        woken = self._woken.is_set()
        self._woken.clear()
        return woken


class Signal(Protocol):
    """Source of wake-ups: says when something may have happened."""

    async def wait(self) -> int:
        """Wait a moment; about how many events there were. Raises `Unavailable`."""
        ...

    async def close(self) -> None: ...


class LogSignal:
    """From the log itself: it only counts events of these kinds."""

    def __init__(self, database: Database, log_watcher: LogWatcher, *, kinds: Collection[str]) -> None:
        self._database = database
        self._log_watcher = log_watcher
        self._kinds = kinds
        self._position: int | None = None
        self._signals = -1

    async def wait(self) -> int:
        if self._position is None:
            self._position = await reader.head(self._database)
        self._signals = await self._log_watcher.signal(self._signals)
        reached, before = await reader.head(self._database), self._position
        self._position = reached
        if reached == before:
            return 0
        if reached < before:  # the log was restored; whatever is in it now may be new
            return _MUCH
        return await reader.some_of(self._database, before, through=reached, kinds=self._kinds, most=_MUCH)

    async def close(self) -> None:
        pass


class FeedSignal:
    """From a broker."""

    def __init__(self, database: Database, feed: Feed) -> None:
        self._database = database
        self._feed = feed
        self._position: int | None = None

    async def wait(self) -> int:
        if self._position is None:
            self._position = await reader.head(self._database)
        try:
            batch = await self._feed.fetch({0: self._position})
        except Unavailable:
            self._position = None
            raise
        self._position = batch.through
        return len(batch.records)

    async def close(self) -> None:
        await self._feed.close()


class WakeupHub(BackgroundTask):
    """Wakes all its workers at every signal. One per process and kind of work."""

    WHAT: ClassVar[str] = "wake-ups"

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        self._wakers: list[Waker] = []

    def waker(self) -> Waker:
        waker = Waker()
        self._wakers.append(waker)
        return waker

    async def stop(self) -> None:
        await super().stop()
        await self._signal.close()

    async def _turn(self) -> None:
        events = await self._signal.wait()
        if events:
            for waker in self._wakers:
                waker.wake()
            # One poll then also sees the events that come meanwhile.
            await asyncio.sleep(_SHORT_REST if events < _MUCH else LONG_REST)
