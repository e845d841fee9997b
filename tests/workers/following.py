"""The log, page by page, as a reader in another process sees it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from projections.kernel.database.database import Database
from projections.log.log_watcher import LogWatcher
from projections.log.reader import LoggedEvent
from workers.kernel.log_feed import LogFeed


async def followed(database: Database, after: int, *, limit: int = 500) -> AsyncGenerator[Sequence[LoggedEvent], None]:
    log_watcher = LogWatcher(database)
    await log_watcher.start()
    feed = LogFeed(database, log_watcher, kinds=None, limit=limit)
    try:
        while True:
            batch = await feed.fetch(after)
            after = batch.through
            if batch.records:
                yield batch.records
    finally:
        await log_watcher.stop()
