"""The feed that reads the log itself and needs no broker."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from projections.kernel.database.database import Database
from projections.kernel.sizes import MIB
from projections.log import reader
from projections.log.log_watcher import LogWatcher
from projections.log.transactions import before
from workers.kernel.feed import LIMIT, Batch

MOST_BYTES: Final = 2 * MIB
"""The largest size of a page in bytes."""


class LogFeed:
    """A feed of the events of these `kinds` of aggregates; None for all. `most` is the largest size of a batch in bytes, except for
    a single write that is larger."""

    reads_log_since: Final = None

    def __init__(
        self,
        database: Database,
        log_watcher: LogWatcher,
        *,
        kinds: Collection[str] | None,
        limit: int = LIMIT,
        most: int = MOST_BYTES,
    ) -> None:
        self._database = database
        self._log_watcher = log_watcher
        self._kinds = kinds
        self._limit = limit
        self._most = most
        self._signals = -1
        self._more = True

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        if not self._more:
            seen, self._signals = self._signals, await self._log_watcher.signal(self._signals)
            if self._signals == seen and await self._log_watcher.ends_at(after):
                return Batch((), after)
        size = min(self._limit, limit)
        page = await reader.window(self._database, after, through=after + size, kinds=self._kinds, most=self._most)
        records, through, head = page.records, page.through, page.head
        if through < head:
            through = await self._end(after, through - after, head)
            if through > page.through:
                records = (await reader.window(self._database, after, through=through, kinds=self._kinds)).records
        self._more = after < through < head
        return Batch([record for record in records if record.position <= through], max(after, through))

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
