"""The feed that reads the log itself: no broker needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence

from projections.consumers.shares import shard_of
from projections.kernel.database import Database
from projections.log import tail
from projections.log.growth import Growth
from projections.log.tail import LoggedEvent
from projections.log.writes import before
from workers.kernel.feed import LIMIT, Batch

_PACE = 0.01
"""Seconds between two looks of one that has caught up: under load the log grows hundreds of times a second."""


class LogFeed:
    """`kinds` are the aggregates whose events are wanted, None for all; `shards` how many there are of the consumer."""

    def __init__(
        self, database: Database, growth: Growth, *, kinds: Collection[str] | None, shards: int = 1, limit: int = LIMIT
    ) -> None:
        self._database = database
        self._growth = growth
        self._kinds = kinds
        self._shards = shards
        self._limit = limit
        self._rested = 0.0

    async def fetch(self, after: Mapping[int, int]) -> Batch:
        start = min(after.values())
        await asyncio.sleep(max(self._rested - time.monotonic(), 0.0))
        head = await self._growth.beyond(start)
        if head <= start:
            return Batch((), start)
        through = await self._end(start, head)
        if through == head:
            self._rested = time.monotonic() + _PACE
        records = await tail.window(self._database, start, through=through, kinds=self._kinds)
        return Batch(self._wanted(records, after, start=start), through)

    async def close(self) -> None:
        pass

    async def _end(self, start: int, head: int) -> int:
        """Where a page that begins behind `start` ends: before the write that does not fit in whole, unless it is the first."""
        size = self._limit
        while start + size < head:
            following = await tail.at(self._database, [start + size + 1])
            end = start + size - sum(map(before, following))
            if end > start:
                return end
            size *= 2
        return head

    def _wanted(self, records: Sequence[LoggedEvent], after: Mapping[int, int], *, start: int) -> Sequence[LoggedEvent]:
        if self._shards == 1:
            return records
        found = ((record, after.get(shard_of(record.key, self._shards))) for record in records)
        return [record for record, position in found if position is not None and record.position > position]
