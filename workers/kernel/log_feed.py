"""The feed that reads the log itself and needs no broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from projections.consumers.leases import shard_of
from projections.kernel.database.database import Database
from projections.kernel.sizes import MIB
from projections.log import reader
from projections.log.log_watcher import LogWatcher
from projections.log.reader import LoggedEvent
from projections.log.transactions import before
from workers.kernel.feed import LIMIT, Batch

MOST_BYTES: Final = 2 * MIB
"""The largest size of a page in bytes. Each consumer of a process holds a page, several times while it works on it; after a rush
they all do so at once."""
_PACE: Final = 0.01
"""Seconds between two reads of a consumer that has caught up: under load the log grows hundreds of times a second."""


class LogFeed:
    """A feed of the events of these `kinds` of aggregates; None for all. `shards` is the number of shards of the consumer. `most`
    is the largest size of a batch in bytes, except for a single write that is larger."""

    reads_log_since: Final = None

    def __init__(
        self,
        database: Database,
        log_watcher: LogWatcher,
        *,
        kinds: Collection[str] | None,
        shards: int = 1,
        limit: int = LIMIT,
        most: int = MOST_BYTES,
    ) -> None:
        self._database = database
        self._log_watcher = log_watcher
        self._kinds = kinds
        self._shards = shards
        self._limit = limit
        self._most = most
        self._rested = 0.0
        self._signals = -1
        self._more = True

    async def fetch(self, after: Mapping[int, int], *, limit: int = LIMIT) -> Batch:
        start, size = min(after.values()), min(self._limit, limit)
        if not self._more:
            self._signals = await self._log_watcher.signal(self._signals)
            await asyncio.sleep(max(self._rested - time.monotonic(), 0.0))
            if await self._log_watcher.ends_at(start):
                return Batch((), start)
        page = await reader.window(self._database, start, through=start + size, kinds=self._kinds, most=self._most)
        records, through, head = page.records, page.through, page.head
        if through < head:
            through = await self._end(start, through - start, head)
            if through > page.through:
                records = (await reader.window(self._database, start, through=through, kinds=self._kinds)).records
        self._more = start < through < head
        if not self._more:
            self._rested = time.monotonic() + _PACE
        whole_writes = [record for record in records if record.position <= through]
        return Batch(self._select_shards(whole_writes, after, start=start), max(start, through))

    async def close(self) -> None:
        pass

    async def _end(self, start: int, size: int, head: int) -> int:
        """Return the end of a page after `start`: before the first write that does not fit as a whole, unless it is the only
        one."""
        while start + size < head:
            following = await reader.at(self._database, [start + size + 1])
            end = start + size - sum(map(before, following))
            if end > start:
                return end
            size *= 2
        return head

    def _select_shards(self, records: Sequence[LoggedEvent], after: Mapping[int, int], *, start: int) -> Sequence[LoggedEvent]:
        if self._shards == 1:
            return records
        candidates = ((record, after.get(shard_of(record.key, self._shards))) for record in records)
        return [record for record, position in candidates if position is not None and record.position > position]
