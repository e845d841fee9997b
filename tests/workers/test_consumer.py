"""What a consumer writes is on the disk before anybody sees it. The fault matrix found what happens if not: the end of PostgreSQL
undid deliveries that a sender had read past; made anew, they lay behind its place and were passed over. Issue 5, "Prove"."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from api.core import Core
from domain.media_event.aggregate import MediaEvent
from projections.consumers.shares import Shares
from projections.log.growth import Growth
from projections.log.tail import LoggedEvent
from tests.projections.feeding import event
from workers.kernel.consumer import Consumer
from workers.kernel.log_feed import LogFeed


class Asking:
    """Asks, in the consumer's transaction, whether its commit waits for the disk."""

    kinds = frozenset({MediaEvent.KIND})

    def __init__(self) -> None:
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def begin(self, position: int) -> None:
        """Nothing is kept."""

    async def prepare(self, records: Sequence[LoggedEvent]) -> int:
        return len(records)

    async def write(self, connection: AsyncConnection[TupleRow], effects: int) -> None:
        row = await (await connection.execute("SHOW synchronous_commit")).fetchone()
        assert row is not None
        if not self.answer.done():
            self.answer.set_result(str(row[0]))

    def wrote(self, effects: int) -> None:
        """Nobody waits."""


async def test_effects_wait_for_the_disk(inner: Core) -> None:
    handler, growth = Asking(), Growth(inner.database)
    shares = Shares(inner.database, "asking", shards=1, member=uuid4())
    consumer = Consumer(inner.database, shares, feed=LogFeed(inner.database, growth, kinds=handler.kinds), handler=handler)
    await event(inner, 1)
    await consumer.start()
    try:
        async with asyncio.timeout(10):
            assert await handler.answer == "on"
    finally:
        await consumer.stop()
