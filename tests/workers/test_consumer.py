"""A consumer: its effects are on disk before others can read them, it writes no more often than it should, and without work it
costs nothing.

If effects were not on disk, a crash of PostgreSQL could undo deliveries that a sender had already read. Those made again got lower
positions than the sender's and were skipped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from projections.consumers.leases import ShardLeases
from projections.consumers.orders import NewOrder, insert
from projections.log.reader import LoggedEvent, head
from tests.projections.log.helpers import rows, until
from tests.support.feeding import event
from tests.workers.consumed import consumed
from workers.kernel.order_worker import OrderPoll
from workers.kernel.wakeups import Waker


class Asking:
    """A handler that asks, in the consumer's transaction, if its commit waits for the disk."""

    topics = frozenset({MediaEvent.KIND})

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
    handler = Asking()
    await event(inner, 1)
    async with consumed(inner, handler, ShardLeases(inner.database, "asking", shards=1, member=uuid4())), asyncio.timeout(60):
        assert await handler.answer == "on"


class Seldom(Asking):
    """A handler that notes when it has written."""

    topics = frozenset({MediaEvent.KIND})

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[float, int]] = []

    def wrote(self, effects: int) -> None:
        self.written.append((time.monotonic(), effects))


async def test_a_consumer_with_a_cadence_takes_what_arrives_between_its_pages_together(inner: Core) -> None:
    handler, cadence = Seldom(), 0.5
    async with consumed(inner, handler, ShardLeases(inner.database, "seldom", shards=1, member=uuid4()), cadence=cadence):
        for number in range(20):
            await event(inner, number + 1)
        end = await head(inner.database)
        await until(lambda: sum(effects for _, effects in handler.written) == end)
    times = [at for at, _ in handler.written]
    assert all(later - earlier >= cadence for earlier, later in pairwise(times))


async def test_the_checkpoint_of_a_consumer_without_records_for_it_follows_the_log(inner: Core, database_url: str) -> None:
    handler = Seldom()
    handler.topics = frozenset({"room"})
    leases = ShardLeases(inner.database, "idle", shards=1, member=uuid4(), lease=0.5)
    async with consumed(inner, handler, leases):
        for number in range(3):
            await event(inner, number + 1)
        end = await head(inner.database)
        await until(lambda: rows(database_url, "SELECT position FROM consumer_shards WHERE consumer = 'idle'") == [(end,)])
    assert handler.written == []


async def test_order_workers_with_due_orders_are_woken(inner: Core) -> None:
    poll, wakers = OrderPoll(inner.database), {name: Waker() for name in ("due", "later", "none")}
    for name, waker in wakers.items():
        poll.add(name, waker)
    async with inner.database.connection() as connection:
        for name in ("due", "later"):
            await insert(connection, [NewOrder(1, "room:1", "{}", uuid4(), "")], consumer=name)
    await inner.database.execute("UPDATE orders SET due_at = now() + interval '1 day' WHERE consumer = 'later'")
    await poll.start()
    try:
        assert await wakers["due"].sleep(60)
    finally:
        await poll.stop()
    assert not await wakers["later"].sleep(0)
    assert not await wakers["none"].sleep(0)
