"""The effects of a consumer are on disk before others can read them.

Without this, a crash of PostgreSQL could undo deliveries that a sender had already read. Those made again got lower positions than
the sender's and were skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from projections.consumers.leases import ShardLeases
from projections.log.log_watcher import LogWatcher
from projections.log.reader import LoggedEvent
from tests.support.feeding import event
from workers.kernel.consumer import Consumer
from workers.kernel.log_feed import LogFeed


class Asking:
    """A handler that asks, in the consumer's transaction, if its commit waits for the disk."""

    kinds = frozenset({MediaEvent.KIND})

    def __init__(self) -> None:
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def begin(self, position: int) -> None:
        """Do nothing: no state is in memory."""

    async def prepare(self, records: Sequence[LoggedEvent]) -> int:
        return len(records)

    async def write(self, connection: AsyncConnection[TupleRow], effects: int) -> None:
        row = await (await connection.execute("SHOW synchronous_commit")).fetchone()
        assert row is not None
        if not self.answer.done():
            self.answer.set_result(str(row[0]))

    def wrote(self, effects: int) -> None:
        """Do nothing: there is no worker to wake."""


async def test_effects_are_committed_synchronously(inner: Core) -> None:
    handler, log_watcher = Asking(), LogWatcher(inner.database)
    leases = ShardLeases(inner.database, "asking", shards=1, member=uuid4())
    consumer = Consumer(inner.database, leases, feed=LogFeed(inner.database, log_watcher, kinds=handler.kinds), handler=handler)
    await event(inner, 1)
    await consumer.start()
    try:
        async with asyncio.timeout(60):
            assert await handler.answer == "on"
    finally:
        await consumer.stop()
