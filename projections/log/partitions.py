"""Creates partitions of the log ahead of need, so that no append has to wait for one."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Pool

EVENTS_PER_PARTITION: Final = 100_000_000
MAKE_ROOM: Final = "SELECT log_partitions_ahead(%s::bigint, %s::bigint)"
"""A query that creates partitions. Its parameters are the size of the new partitions (NULL for the size of the last one) and the
number of events that must fit."""

_EVERY = 60.0


class Partitions(BackgroundTask):
    """Creates partitions at the start and once a minute, so that there is always room for `size` more positions.

    Every process does this; the first to see the need creates the partitions.
    """

    WHAT: ClassVar[str] = "partitions of the log"

    def __init__(self, database: Pool, *, size: int = EVENTS_PER_PARTITION, every: float = _EVERY) -> None:
        self._database = database
        self._size = size
        self._every = every
        self.free = 0

    async def start(self) -> None:
        await self.make()
        await super().start()

    async def make(self) -> None:
        row = await self._database.row(MAKE_ROOM, (self._size, self._size))
        assert row is not None, "a function gives a value"
        self.free = int(row[0])

    async def _turn(self) -> None:
        await asyncio.sleep(self._every)
        await self.make()
