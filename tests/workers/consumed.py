"""A consumer that runs on the log during a block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from api.wiring.core import Core
from projections.consumers.leases import ShardLeases
from projections.log.log_watcher import LogWatcher
from workers.kernel.consumer import Consumer, Handler
from workers.kernel.log_feed import LogFeed
from workers.kernel.log_reader import LogReader


def log_reader(inner: Core, log_watcher: LogWatcher | None = None) -> LogReader:
    """Return a reader of the log that has not started."""
    watcher = log_watcher or LogWatcher(inner.database)
    return LogReader(inner.database, watcher, source=lambda: LogFeed(inner.database, watcher, kinds=None))


@asynccontextmanager
async def consumed(inner: Core, handler: Handler[Any], leases: ShardLeases, *, cadence: float = 0.0) -> AsyncIterator[None]:
    reader = log_reader(inner)
    consumer = Consumer(inner.database, leases, feed=reader.feed(handler.topics), handler=handler, cadence=cadence)
    await reader.start()
    await consumer.start()
    try:
        yield
    finally:
        await consumer.stop()
        await reader.stop()
