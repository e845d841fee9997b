"""Partitions of the log: made ahead of need, so that no append has to wait for one."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from projections.kernel.background_task import BackgroundTask
from projections.kernel.database import Pool

EVENTS_PER_PARTITION: Final = 100_000_000
MAKE_ROOM: Final = "SELECT log_partitions_ahead(%s::bigint, %s::bigint)"
"""The size of the partitions that are made (NULL: that of the last one), and for how many events there must be room."""

_EVERY = 60.0


class Partitions(BackgroundTask):
    """Makes partitions at the start and once a minute, so that there is always room for one of `size` positions. Every process
    does: the first that sees the need makes them."""

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
        found = await self._database.row(MAKE_ROOM, (self._size, self._size))
        assert found is not None, "a function gives a value"
        self.free = int(found[0])

    async def _turn(self) -> None:
        await asyncio.sleep(self._every)
        await self.make()
