"""The reader of the log of a process: each page is read once, and no consumer holds up another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation, Plan
from projections.log.log_watcher import LogWatcher
from projections.log.reader import head
from tests.projections.log.helpers import until
from tests.support.feeding import event, room
from workers.kernel.feed import LIMIT, Batch
from workers.kernel.log_feed import LogFeed
from workers.kernel.log_reader import LogReader, Page, SharedFeed
from workers.kernel.wakeups import WakeupHub


class Counted(LogFeed):
    """A source that counts the batches with records."""

    def __init__(self, inner: Core, watcher: LogWatcher) -> None:
        super().__init__(inner.database, watcher, kinds=None)
        self.batches = 0

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        batch = await super().fetch(after, limit=limit)
        self.batches += bool(batch.records)
        return batch


@pytest.fixture
async def watcher(inner: Core) -> AsyncIterator[LogWatcher]:
    growing = LogWatcher(inner.database)
    await growing.start()
    yield growing
    await growing.stop()


@pytest.fixture
def source(inner: Core, watcher: LogWatcher) -> Counted:
    return Counted(inner, watcher)


@pytest.fixture
async def reader(inner: Core, watcher: LogWatcher, source: Counted) -> AsyncIterator[LogReader]:
    reading = LogReader(inner.database, watcher, source=lambda: source)
    reading.watch(lambda page: None)  # it reads on while all consumers are at work
    await reading.start()
    yield reading
    await reading.stop()


async def at_the_end(reader: LogReader, inner: Core) -> int:
    """Wait until the reader has read the whole log."""
    end = await head(inner.database)
    await until(lambda: reader.position == end)
    return end


async def waiting(reader: LogReader, feed: SharedFeed, after: int) -> asyncio.Task[Batch]:
    """Return a fetch that waits for a record."""
    fetch = asyncio.create_task(feed.fetch(after))
    await until(lambda: feed in reader._waiting)
    return fetch


async def test_consumers_get_the_same_records_which_were_read_and_decoded_once(
    inner: Core, reader: LogReader, source: Counted
) -> None:
    first, second = reader.feed({"event"}), reader.feed({"event"})
    fetches = [await waiting(reader, feed, 0) for feed in (first, second)]
    await event(inner, 1)
    one, other = [await fetch for fetch in fetches]
    assert source.batches == 1
    assert [record.position for record in one.records] == [1]
    assert one.records[0] is other.records[0]
    mapper = EventMapper(inner.catalogue)
    assert one.records[0].decoded(mapper) is other.records[0].decoded(mapper)


async def test_a_consumer_without_records_for_it_is_not_woken_and_passes_them(inner: Core, reader: LogReader) -> None:
    feed = reader.feed({"room"})
    fetch = await waiting(reader, feed, 0)
    for number in (1, 2):
        await event(inner, number)
    end = await at_the_end(reader, inner)
    assert not fetch.done()
    assert feed.passed == end
    await room(inner, 1, "north")
    assert [record.topic for record in (await fetch).records] == ["room.registered"]


async def test_a_consumer_gets_the_topics_that_it_names(inner: Core, reader: LogReader) -> None:
    feed = reader.feed({"event.registered", "room"})
    fetch = await waiting(reader, feed, 0)
    await event(inner, 1)
    assert [record.topic for record in (await fetch).records] == ["event.registered"]
    await event(inner, 1, title="another")
    await room(inner, 1, "north")
    end = await at_the_end(reader, inner)
    batch = await feed.fetch(1)
    assert [record.kind for record in batch.records] == ["room"]
    assert batch.through == end


async def test_a_consumer_that_is_too_slow_for_the_pages_reads_for_itself_until_it_has_caught_up(
    inner: Core, reader: LogReader, source: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.kernel.log_reader._RECORDS", 5)
    slow, fast = reader.feed({"event"}), reader.feed({"event"})
    fetch = await waiting(reader, fast, 0)
    for number in range(1, 21):
        await event(inner, number)
        assert [record.position for record in (await fetch).records] == [number]
        fetch = await waiting(reader, fast, number)
    before, seen, after = source.batches, list[int](), 0
    while after < 20:
        batch = await slow.fetch(after, limit=7)
        seen += [record.position for record in batch.records]
        after = batch.through
    assert seen == list(range(1, 21))
    assert source.batches == before
    again = await waiting(reader, slow, after)
    await event(inner, 21)
    one, other = await fetch, await again
    assert one.records[0] is other.records[0]


async def test_a_part_of_the_pages_ends_with_a_write(inner: Core, reader: LogReader) -> None:
    async def three() -> Plan:
        return Plan([AddOrUpdateEvent(UUID(int=number), {}) for number in (2, 3, 4)])

    feed = reader.feed({"event"})
    fetch = await waiting(reader, feed, 0)
    await event(inner, 1)
    await fetch
    await inner.executor.execute(three, invocation=Invocation.by("system"))
    await event(inner, 5)
    end = await at_the_end(reader, inner)
    batch = await feed.fetch(0, limit=2)
    assert ([record.position for record in batch.records], batch.through) == ([1, 2, 3, 4], 4)
    batch = await feed.fetch(4, limit=2)
    assert ([record.position for record in batch.records], batch.through) == ([5], end)


async def test_a_restart_ends_waits_and_nothing_before_it_is_given_again_from_memory(inner: Core, reader: LogReader) -> None:
    feed, other = reader.feed({"event"}), reader.feed({"event"})
    fetch = await waiting(reader, feed, 0)
    await event(inner, 1)
    [record] = (await fetch).records
    fetch = await waiting(reader, feed, 1)
    other.restart(1)
    assert await fetch == Batch([], 1)
    [again] = (await feed.fetch(0)).records
    assert again is not record
    assert again == record


async def test_workers_are_woken_by_the_topics_of_their_hub(inner: Core, reader: LogReader) -> None:
    waker, pages = WakeupHub(reader, {"room"}).waker(), list[Page | None]()
    reader.watch(pages.append)
    assert await waker.sleep(60), "anything may have happened before the start"
    await event(inner, 1)
    await at_the_end(reader, inner)
    assert pages[-1] is not None
    assert not await waker.sleep(0)
    await room(inner, 1, "north")
    assert await waker.sleep(60)
