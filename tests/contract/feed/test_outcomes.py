"""The outcomes of jobs over every transport: each owner is notified once, even if processes are killed in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.kernel.errors import Unavailable
from domain.kernel.mapper import EventMapper
from domain.record.kinds.room import Room
from projections.consumers.leases import ShardLeases
from projections.consumers.orders import NewOrder, Orders
from projections.log.log_watcher import LogWatcher
from projections.log.reader import head
from tests.contract.feed.transports import Transport
from tests.workers.event.outcomes.owned_jobs import OUTPUT, accept, complete, names, owned, rename
from workers.event.outcomes.policy import CONSUMER, OutcomeOrders, OwnerCommands
from workers.kernel.consumer import Consumer
from workers.kernel.log_reader import LogReader
from workers.kernel.order_worker import OrderWorker
from workers.kernel.wakeups import Waker

JOBS = range(1, 13)


class _KilledBeforeCommit(OutcomeOrders):
    """The first transactions are rolled back after the orders were inserted."""

    kills = 2

    async def write(self, connection: AsyncConnection[TupleRow], effects: Sequence[NewOrder]) -> None:
        await super().write(connection, effects)
        if self.kills:
            self.kills -= 1
            raise Unavailable("killed before the commit")


@asynccontextmanager
async def running(inner: Core, transport: Transport, *, kind: type[OutcomeOrders] = OutcomeOrders) -> AsyncIterator[OutcomeOrders]:
    """The role `outcomes` of one process."""
    waker = Waker()
    handler = kind(inner.streams, mapper=EventMapper(inner.catalogue), wake=waker.wake)
    leases = ShardLeases(inner.database, CONSUMER, shards=1, member=uuid4(), lease=1.0)
    reader = LogReader(inner.database, LogWatcher(inner.database), source=lambda: transport.feed(kinds={Job.KIND}, limit=7))
    consumer = Consumer(inner.database, leases, feed=reader.feed(handler.topics), handler=handler)
    commands = OwnerCommands(inner.executor, owners={Room.KIND: rename})
    worker = OrderWorker(Orders(inner.database, CONSUMER), commands.carry_out, waker=waker)
    await reader.start()
    await consumer.start()
    await worker.start()
    try:
        yield handler
    finally:
        await worker.stop()
        await consumer.stop()
        await reader.stop()


async def settled(inner: Core) -> None:
    """Wait until the consumer has read to the head, and nothing remains to do."""
    through = await head(inner.database)
    async with asyncio.timeout(60):
        while True:
            read = await inner.database.rows("SELECT min(position) FROM consumer_shards WHERE consumer = %s", (CONSUMER,))
            remaining = await inner.database.rows("SELECT count(*) FROM orders")
            if (read[0][0] or 0) >= through and remaining == [(0,)]:
                return
            await asyncio.sleep(0.02)


async def test_each_owner_is_told_once_also_after_kills(inner: Core, transport: Transport) -> None:
    for number in JOBS[:6]:
        await owned(inner, number, UUID(int=number))
        await complete(inner, number)
    async with running(inner, transport, kind=_KilledBeforeCommit) as handler:
        await settled(inner)
        assert isinstance(handler, _KilledBeforeCommit)
        assert not handler.kills
    for number in JOBS[6:]:
        await owned(inner, number, UUID(int=number))
        await complete(inner, number)
    await accept(inner, 100)  # of nobody, so that the log ends with a job that the consumer reads
    async with running(inner, transport), running(inner, transport):
        await settled(inner)
    for number in JOBS:
        assert await names(inner, UUID(int=number)) == ["requested", f"completed {number} {OUTPUT.name} {OUTPUT.size}"]
