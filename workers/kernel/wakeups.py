"""Wake-ups: workers that poll tables are woken when an event in the log may have made work for them.

A wake-up is only a hint, and so are the streams that it names. A missed wake-up, for instance while Kafka is down, does no harm:
the workers also poll slowly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import ClassVar, Final, Protocol

from domain.kernel.errors import Unavailable
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database
from projections.log import reader
from projections.log.log_watcher import LogWatcher
from projections.log.reader import Changes
from workers.kernel.feed import Feed

POLL: Final = 1.0
"""Seconds between two polls of a worker that is not woken."""
REST: Final = 0.01
LONG_REST: Final = 0.03
_BATCH: Final = 8
_SHORT_REST: Final = 0.005
_MUCH: Final = 16
_MOST: Final = 10_000
"""The number of positions of the log that one signal examines."""


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
"""Called with the streams that had an event of the topics of the signal."""


class Signal(Protocol):
    """A source of wake-ups: reports that something may have happened, and to which aggregates."""

    async def wait(self) -> Changes:
        """Wait a moment, and return the changes until then. Raise `Unavailable`."""
        ...

    async def close(self) -> None: ...


class LogSignal:
    """A signal that reads the log. `kinds` are the kinds of aggregates whose events wake; `topics` are the topics of the events
    whose streams are reported."""

    def __init__(
        self, database: Database, log_watcher: LogWatcher, *, kinds: Collection[str], topics: Collection[str] = ()
    ) -> None:
        self._database = database
        self._log_watcher = log_watcher
        self._kinds = kinds
        self._topics = topics
        self._position: int | None = None
        self._signals = -1

    async def wait(self) -> Changes:
        if self._position is None:
            self._position = await reader.head(self._database)
        self._signals = await self._log_watcher.signal(self._signals)
        before = self._position
        if await self._log_watcher.ends_at(before):
            return Changes(0, (), before)
        changes = await reader.changes(self._database, before, kinds=self._kinds, topics=self._topics, most=_MOST)
        self._position = changes.through
        if changes.through < before:  # the log was restored; whatever is in it now may be new
            return Changes(_MUCH, (), changes.through)
        return changes

    async def close(self) -> None:
        pass


class FeedSignal:
    """A signal that reads a broker."""

    def __init__(self, database: Database, feed: Feed, *, topics: Collection[str] = ()) -> None:
        self._database = database
        self._feed = feed
        self._topics = topics
        self._position: int | None = None

    async def wait(self) -> Changes:
        if self._position is None:
            self._position = await reader.head(self._database)
        try:
            batch = await self._feed.fetch({0: self._position})
        except Unavailable:
            self._position = None
            raise
        self._position = batch.through
        streams = {record.stream for record in batch.records if record.topic in self._topics}
        return Changes(len(batch.records), list(streams), batch.through)

    async def close(self) -> None:
        await self._feed.close()


class WakeupHub(BackgroundTask):
    """Wakes all its workers at every signal, and passes the changed streams to its followers. There is one for each process and
    kind of work."""

    WHAT: ClassVar[str] = "wake-ups"

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        self._wakers: list[Waker] = []
        self._followers: list[Follower] = []

    def waker(self) -> Waker:
        waker = Waker()
        self._wakers.append(waker)
        return waker

    def follow(self, follower: Follower) -> None:
        """Add a follower. Followers are called before the wakers are woken."""
        self._followers.append(follower)

    async def stop(self) -> None:
        await super().stop()
        await self._signal.close()

    async def _turn(self) -> None:
        changes = await self._signal.wait()
        if changes.count:
            for follow in self._followers:
                follow(changes.streams)
            for waker in self._wakers:
                waker.wake()
            # Wait, so that one poll also sees the events that arrive meanwhile.
            await asyncio.sleep(_SHORT_REST if changes.count < _MUCH else LONG_REST)
