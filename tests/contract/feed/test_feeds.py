"""The guarantees of every transport: the log's order, whole writes, nothing lost, nothing doubled. They hold for the one in memory,
too."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState
from domain.kernel.ports import Invocation, Plan
from projections.log.log_watcher import LogWatcher
from projections.log.reader import head
from tests.contract.feed.notebook import Notebook, consuming
from tests.contract.feed.transports import KINDS, Kafka, Log, Transport, delete, forget, make, positions, positions_in, relaying
from tests.projections.log.helpers import rows, until
from tests.support.feeding import do, event, room
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.feed import KafkaFeed
from workers.adapters.kafka.topics import Topics
from workers.kernel.feed import Feed
from workers.kernel.log_feed import LogFeed

pytestmark = pytest.mark.usefixtures("effects")


def taken(url: str) -> list[int]:
    return [position for (position,) in rows(url, "SELECT position FROM test_effects ORDER BY number")]


def relayed(url: str, name: str) -> int:
    return sum(position for (position,) in rows(url, "SELECT position FROM consumer_shards WHERE consumer = %s", name))


async def fetched(feed: Feed, after: int, *, through: int, close: bool = True) -> list[int]:
    """Return all positions up to `through`, as batches give them."""
    fetched_positions: list[int] = []
    async with asyncio.timeout(60):
        while after < through:
            batch = await feed.fetch(after)
            assert all(position > after for position in positions(batch.records))
            fetched_positions += positions(batch.records)
            after = batch.through
    if close:
        await feed.close()
    return fetched_positions


async def some_writes(inner: Core, count: int) -> int:
    """Writes of one, two and three events on a few aggregates; the head of the log after them."""
    for number in range(count):
        await event(inner, number % 7 + 1, title=f"title {number}", ref_id=f"ref {number}" if number % 3 else None)
    return await head(inner.database)


async def test_each_record_is_given_once_and_by_position(inner: Core, transport: Transport) -> None:
    head = await some_writes(inner, 60)
    feed = transport.feed(kinds=KINDS, limit=10)
    assert await fetched(feed, 0, through=head) == list(range(1, head + 1))
    assert await fetched(feed, head - 5, through=head) == list(range(head - 4, head + 1))


@pytest.mark.parametrize("kinds", [None, ["event"]])
async def test_a_batch_of_the_log_is_bounded_in_bytes(inner: Core, kinds: list[str] | None) -> None:
    """A batch ends after a whole write, even if that is larger than the limit."""
    most = 40_000
    await event(inner, 1, title="small")
    await room(inner, 1, "north")
    for number in range(2, 8):
        await event(inner, number, description="x" * 15_000)

    async def large() -> Plan:
        return Plan([AddOrUpdateEvent(UUID(int=number), {"description": "y" * 30_000}) for number in (8, 9, 10)])

    await inner.executor.execute(large, invocation=Invocation.by("system"))
    await event(inner, 11, title="small")
    feed, after, end, batches = LogFeed(inner.database, LogWatcher(inner.database), kinds=kinds, most=most), 0, 12, []
    assert await head(inner.database) == end
    while after < end:
        batch = await feed.fetch(after)
        batches.append(batch.records)
        after = batch.through
    await feed.close()
    expected = [position for position in range(1, end + 1) if not kinds or position != 2]
    assert [position for batch in batches for position in positions(batch)] == expected
    assert any({9, 10, 11} <= set(positions(batch)) for batch in batches)
    sizes = [sum(len(record.state) for record in batch) for batch in batches]
    assert all(size < most + 16_000 for size, batch in zip(sizes, batches, strict=True) if 9 not in positions(batch))
    assert len(batches) >= 3


async def test_only_selected_kinds_are_given(inner: Core, transport: Transport) -> None:
    await room(inner, 1, "north")
    await event(inner, 1)
    await room(inner, 2, "south")
    assert await fetched(transport.feed(kinds=["room"]), 0, through=3) == [1, 3]
    assert await fetched(transport.feed(kinds=["event"]), 0, through=3) == [2]


async def test_a_waiting_feed_gives_a_new_write_at_once(inner: Core, transport: Transport) -> None:
    feed = transport.feed(kinds=KINDS)
    waiting = asyncio.create_task(fetched(feed, 0, through=2))
    await event(inner, 1)
    await event(inner, 2)
    assert await waiting == [1, 2]


async def test_a_write_is_never_split(inner: Core, transport: Transport) -> None:
    for number in range(30):
        await event(inner, number + 1, title="a", ref_id="b", state=EventState.PRE_VOD)
        await do(inner, AddOrUpdateEvent(UUID(int=number + 1), {"title": "c", "ref_id": "d"}, state=EventState.VOD_PUBLIC))
    commands: dict[int, str] = dict(rows(inner.database.conninfo, "SELECT position, metadata->>'command_id' FROM events"))
    feed, after = transport.feed(kinds=KINDS, limit=4), 0
    async with asyncio.timeout(60):
        while after < len(commands):
            batch = await feed.fetch(after)
            after = batch.through
            assert not after or commands[after] != commands.get(after + 1), "the batch ends with a write"
    await feed.close()


async def test_a_write_larger_than_a_page_is_given_whole(inner: Core, transport: Transport) -> None:
    async def all_of_them() -> Plan:
        return Plan([AddOrUpdateEvent(UUID(int=number), {}) for number in range(1, 60)])

    await event(inner, 100)
    await inner.executor.execute(all_of_them, invocation=Invocation.by("system"))
    assert await fetched(transport.feed(kinds=KINDS, limit=5), 0, through=60) == list(range(1, 61))


async def test_a_consumer_processes_all_in_order_and_continues_from_its_checkpoint(
    inner: Core, transport: Transport, database_url: str
) -> None:
    head = await some_writes(inner, 20)
    async with consuming(inner, transport, Notebook(), limit=7):
        await until(lambda: len(taken(database_url)) == head)
    more = await some_writes(inner, 10)
    begun = Notebook()
    async with consuming(inner, transport, begun):
        await until(lambda: len(taken(database_url)) == more)
    assert begun.begun == [head]
    assert taken(database_url) == list(range(1, more + 1))


async def test_a_batch_that_was_not_committed_is_given_again(inner: Core, transport: Transport, database_url: str) -> None:
    notebook = Notebook()
    notebook.down_after_writing = 3
    async with consuming(inner, transport, notebook, limit=5):
        head = await some_writes(inner, 12)
        await until(lambda: len(taken(database_url)) == head)
    assert taken(database_url) == list(range(1, head + 1))


async def test_a_frozen_consumer_writes_nothing_after_another_took_over(
    inner: Core, transport: Transport, database_url: str
) -> None:
    frozen = Notebook()
    frozen.writing_stops = asyncio.Event()
    async with consuming(inner, transport, frozen, lease=0.5, frozen=True):
        head = await some_writes(inner, 10)
        await frozen.held_up.wait()
        async with consuming(inner, transport, Notebook(), lease=0.5):
            await until(lambda: len(taken(database_url)) == head)
            frozen.writing_stops.set()
            more = await some_writes(inner, 10)
            await until(lambda: len(taken(database_url)) >= more)
    assert taken(database_url) == list(range(1, more + 1))


async def test_a_consumer_frozen_in_a_transaction_loses_its_shards(inner: Core, log_watcher: LogWatcher, database_url: str) -> None:
    """The server ends its transaction after five seconds: otherwise its lock would outlast its lease."""
    transport, frozen = Log(inner.database, log_watcher), Notebook()
    frozen.commit_waits = asyncio.Event()
    async with consuming(inner, transport, frozen, lease=0.5, frozen=True):
        head = await some_writes(inner, 5)
        await frozen.held_up.wait()
        async with consuming(inner, transport, Notebook(), lease=0.5):
            await until(lambda: len(taken(database_url)) == head)
            frozen.commit_waits.set()
            head = await some_writes(inner, 5)
            await until(lambda: len(taken(database_url)) >= head)
    assert taken(database_url) == list(range(1, head + 1))
    assert not rows(database_url, "SELECT FROM parked_records")


async def test_a_consumer_that_stands_by_takes_over_when_the_first_one_stops(
    inner: Core, transport: Transport, database_url: str
) -> None:
    first, second = Notebook(), Notebook()
    async with AsyncExitStack() as both:
        async with consuming(inner, transport, first, lease=6.0):
            await until(lambda: first.begun)
            await both.enter_async_context(consuming(inner, transport, second, lease=6.0))
            head = await some_writes(inner, 30)
            await until(lambda: len(taken(database_url)) == head)
            assert not second.begun
        head = await some_writes(inner, 30)
        await until(lambda: len(taken(database_url)) == head)
    assert taken(database_url) == list(range(1, head + 1))


async def test_a_record_that_cannot_be_processed_is_parked_with_later_ones_of_its_aggregate(
    inner: Core, transport: Transport, database_url: str
) -> None:
    notebook = Notebook()
    notebook.poison = {f"event:{UUID(int=2)}"}
    async with consuming(inner, transport, notebook, lease=0.5):
        for number in (1, 2, 3, 2, 1):
            await event(inner, number, title=f"again {number}")
        await event(inner, 2, title="other")
        await until(lambda: len(rows(database_url, "SELECT FROM parked_records")) == 2 and taken(database_url) == [1, 3])
        assert [(p, e) for p, e in rows(database_url, "SELECT position, error FROM parked_records ORDER BY position")] == [
            (2, "ValueError: cannot be taken in"),
            (4, "waits for a parked record of the same aggregate"),
        ]
        notebook.poison.clear()
        await event(inner, 3, title="flows on")
        await until(lambda: taken(database_url) == [1, 3, 5])
        rows(database_url, "UPDATE parked_records SET replay = true RETURNING 1")
        await until(lambda: not rows(database_url, "SELECT FROM parked_records"))
        await event(inner, 2, title="flows again")
        await until(lambda: taken(database_url)[-1] == 6)
    assert taken(database_url) == [1, 3, 5, 2, 4, 6]


async def test_a_write_of_two_aggregates_waits_for_a_parked_record_of_one_of_them_only(
    inner: Core, transport: Transport, database_url: str
) -> None:
    """This holds even if a record next to it is parked, for which every write is tried separately."""
    notebook = Notebook()
    notebook.poison = {f"event:{UUID(int=2)}", f"event:{UUID(int=4)}"}
    await event(inner, 2)
    await event(inner, 3)

    async def both() -> Plan:
        return Plan([AddOrUpdateEvent(UUID(int=number), {"title": "both"}) for number in (2, 3)])

    await inner.executor.execute(both, invocation=Invocation.by("system"))
    await event(inner, 4)
    await event(inner, 3, title="last")
    async with consuming(inner, transport, notebook, lease=0.5):
        await until(lambda: taken(database_url)[-1:] == [6])
    assert taken(database_url) == [2, 4, 6]
    assert rows(database_url, "SELECT position FROM parked_records ORDER BY 1") == [(1,), (3,), (5,)]


async def test_a_record_that_fails_again_stays_parked(inner: Core, transport: Transport, database_url: str) -> None:
    notebook = Notebook()
    notebook.poison = {f"event:{UUID(int=1)}"}
    async with consuming(inner, transport, notebook, lease=0.5):
        await event(inner, 1)
        await until(lambda: rows(database_url, "SELECT FROM parked_records"))
        rows(database_url, "UPDATE parked_records SET replay = true RETURNING 1")
        await until(lambda: rows(database_url, "SELECT FROM parked_records WHERE attempts = 2 AND NOT replay"))
    assert taken(database_url) == []


async def test_a_handler_is_tried_until_its_dependency_is_back(inner: Core, transport: Transport, database_url: str) -> None:
    notebook = Notebook()
    notebook.down = True
    async with consuming(inner, transport, notebook, lease=0.5):
        await event(inner, 1)
        await until(lambda: len(notebook.begun) > 1)
        assert not rows(database_url, "SELECT FROM parked_records")
        notebook.down = False
        await until(lambda: taken(database_url) == [1])


async def test_records_that_kafka_no_longer_holds_are_read_from_the_log(
    inner: Core, log_watcher: LogWatcher, kafka: str, topics_prefix: str
) -> None:
    topics = Topics(topics_prefix)
    broker = Kafka(inner.database, Log(inner.database, log_watcher), bootstrap=kafka, topics=topics)
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics):
        head = await some_writes(inner, 30)
        await broker.ready()
        assert await fetched(broker.feed(kinds=KINDS), 0, through=head) == list(range(1, head + 1))
        await asyncio.to_thread(forget, kafka, topics.of("event"))
        head = await some_writes(inner, 10)
        assert await fetched(broker.feed(kinds=KINDS, limit=7), 0, through=head) == list(range(1, head + 1))


async def test_a_topic_that_was_deleted_is_filled_again_and_a_consumer_that_lagged_misses_nothing(
    inner: Core, log_watcher: LogWatcher, kafka: str, topics_prefix: str, database_url: str
) -> None:
    topics = Topics(topics_prefix)
    broker = Kafka(inner.database, Log(inner.database, log_watcher), bootstrap=kafka, topics=topics)
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics) as name:
        head = await some_writes(inner, 20)
        await until(lambda: relayed(database_url, name) == head)
    await asyncio.to_thread(delete, kafka, topics.of("event"))
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics) as name:
        head = await some_writes(inner, 5)
        await broker.ready()
        async with consuming(inner, broker, Notebook()):
            await until(lambda: len(taken(database_url)) == head)
        await until(lambda: relayed(database_url, name) == head)
    assert taken(database_url) == list(range(1, head + 1))
    assert sorted(await asyncio.to_thread(positions_in, kafka, topics.of("event"))) == list(range(1, head + 1))


async def test_a_topic_with_too_few_partitions_needs_an_operator(
    inner: Core, log_watcher: LogWatcher, kafka: str, topics_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    topics = Topics(topics_prefix)
    await asyncio.to_thread(make, kafka, topics.of("event"), partitions=1)
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics):
        await event(inner, 1)
        await until(lambda: f"{topics.of('event')} with 1; delete them" in caplog.text)
    assert "Traceback" not in caplog.text


async def test_a_feed_that_may_keep_nothing_waiting_gives_everything_in_order(
    inner: Core, log_watcher: LogWatcher, kafka: str, topics_prefix: str
) -> None:
    """The feed then reads only the partition that the others wait for."""
    connection, topics, past = KafkaConnection(kafka), Topics(topics_prefix), Log(inner.database, log_watcher)
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics):
        head = await some_writes(inner, 60)
        await Kafka(inner.database, past, bootstrap=kafka, topics=topics).ready()
        feed = KafkaFeed(connection, topics, database=inner.database, past=past.feed(kinds=KINDS), kinds=KINDS, most_waiting=0)
        assert await fetched(feed, 0, through=head) == list(range(1, head + 1))


async def test_a_relay_without_its_checkpoint_sends_nothing_twice(
    inner: Core, log_watcher: LogWatcher, kafka: str, topics_prefix: str, database_url: str
) -> None:
    topics = Topics(topics_prefix)
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics) as name:
        head = await some_writes(inner, 30)
        await until(lambda: relayed(database_url, name) == head)
    rows(database_url, "UPDATE consumer_shards SET position = 0 RETURNING 1")
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics):
        head = await some_writes(inner, 10)
        await until(lambda: relayed(database_url, name) == head)
    assert sorted(await asyncio.to_thread(positions_in, kafka, topics.of("event"))) == list(range(1, head + 1))


async def test_a_consumer_changes_its_transport_without_a_loss_or_a_repeat(
    inner: Core, log_watcher: LogWatcher, kafka: str, topics_prefix: str, database_url: str
) -> None:
    log, topics = Log(inner.database, log_watcher), Topics(topics_prefix)
    broker = Kafka(inner.database, log, bootstrap=kafka, topics=topics)
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics):
        for transport in (log, broker, log, broker):
            async with consuming(inner, transport, Notebook(), limit=7):
                head = await some_writes(inner, 25)
                await until(lambda reached=head: len(taken(database_url)) == reached)  # type: ignore[misc]
    assert taken(database_url) == list(range(1, head + 1))
