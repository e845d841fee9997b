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


@asynccontextmanager
async def consumed(inner: Core, handler: Handler[Any], leases: ShardLeases) -> AsyncIterator[None]:
    feed = LogFeed(inner.database, LogWatcher(inner.database), kinds=handler.kinds)
    consumer = Consumer(inner.database, leases, feed=feed, handler=handler)
    await consumer.start()
    try:
        yield
    finally:
        await consumer.stop()
