"""Wakes those who look for work in tables when the log tells of something that may have made some.

A hint, never the truth: what was missed, while Kafka is down for instance, is found by their own slow poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Final, Protocol

from projections.kernel.background import Background
from projections.kernel.database import Database
from projections.log import tail
from projections.log.growth import Growth
from workers.kernel.again import again
from workers.kernel.feed import Feed

POLL: Final = 1.0
"""Seconds between two looks of one whom nobody wakes."""
REST: Final = 0.01
LONG_REST: Final = 0.03
_BATCH: Final = 8
_SHORT_REST: Final = 0.005
_MUCH: Final = 16


def rest(found: int) -> float:
    """Seconds until one who found so much to do looks again. A single thing is no hurry that is known of, so the next is taken
    soon; a few are better taken together with those that follow; many are a batch already."""
    return LONG_REST if 1 < found < _BATCH else REST


class Sleeper:
    """One who sleeps until woken, or until the poll."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def sleep(self, seconds: float = POLL) -> bool:
        """Whether it was woken. What has woken it before counts: whoever looked before that has to look again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        woken = self._woken.is_set()
        self._woken.clear()
        return woken


class News(Protocol):
    """Says when something may have happened."""

    async def wait(self) -> int:
        """Waits a moment; how much there was, as far as it matters. Raises `Unavailable`."""
        ...

    async def close(self) -> None: ...


class LogNews:
    """From the log itself, of which it reads only whether there was anything of these kinds."""

    def __init__(self, database: Database, growth: Growth, *, kinds: Collection[str]) -> None:
        self._database = database
        self._growth = growth
        self._kinds = kinds
        self._position: int | None = None

    async def wait(self) -> int:
        if self._position is None:
            self._position = await tail.head(self._database)
        reached = await self._growth.beyond(self._position)
        if reached <= self._position:
            return 0
        found = await tail.some_of(self._database, self._position, through=reached, kinds=self._kinds, most=_MUCH)
        self._position = reached
        return found

    async def close(self) -> None:
        pass


class FeedNews:
    """From a broker."""

    def __init__(self, database: Database, feed: Feed) -> None:
        self._database = database
        self._feed = feed
        self._position: int | None = None

    async def wait(self) -> int:
        if self._position is None:
            self._position = await tail.head(self._database)
        batch = await self._feed.fetch({0: self._position})
        self._position = batch.through
        return len(batch.records)

    async def close(self) -> None:
        await self._feed.close()


class Wake(Background):
    """Wakes all sleepers at whatever news there is. One per process and kind of work."""

    def __init__(self, news: News) -> None:
        self._news = news
        self._sleepers: list[Sleeper] = []

    def sleeper(self) -> Sleeper:
        one = Sleeper()
        self._sleepers.append(one)
        return one

    async def stop(self) -> None:
        await super().stop()
        await self._news.close()

    async def _run(self) -> None:
        await again(self._wake_at_news, what="wake-ups")

    async def _wake_at_news(self) -> None:
        news = await self._news.wait()
        if news:
            for sleeper in self._sleepers:
                sleeper.wake()
            # Those who look see in one look what comes meanwhile.
            await asyncio.sleep(_SHORT_REST if news < _MUCH else LONG_REST)
