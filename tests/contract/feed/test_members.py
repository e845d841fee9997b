"""Two members of a consumer: who keeps a shard while its work takes long, and who gives it up."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from api.wiring.core import Core
from domain.kernel.mapper import UnknownTopic
from projections.consumers.queries import ConsumerQueries
from projections.log.log_watcher import LogWatcher
from projections.log.reader import LoggedEvent
from tests.contract.feed.notebook import Notebook, consuming
from tests.contract.feed.test_feeds import some_writes, taken
from tests.contract.feed.transports import Log
from tests.projections.log.helpers import rows, until
from workers.kernel.feed import LIMIT, Batch
from workers.kernel.log_reader import SharedFeed

pytestmark = pytest.mark.usefixtures("effects")
LEASE = 0.4
LONG = 2.0
"""The length of a lease that a busy machine does not lose."""
_HELD = "SELECT extract(epoch FROM held_until) FROM consumer_shards WHERE consumer = 'notebook' AND owner IS NOT NULL"


class Slow(Notebook):
    """A handler whose start takes three leases."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    async def begin(self, position: int) -> None:
        await super().begin(position)
        ((first,),) = rows(self._url, _HELD)
        await until(lambda: rows(self._url, _HELD)[0][0] >= float(first) + 3 * LONG)


class Old(Notebook):
    """A handler of a version that does not know one topic."""

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        if any(record.position == 3 for record in records):
            raise UnknownTopic("event.sponsored")
        return await super().prepare(records)


async def test_a_start_that_takes_three_leases_keeps_the_shard(inner: Core, log_watcher: LogWatcher, database_url: str) -> None:
    transport = Log(inner.database, log_watcher)
    head = await some_writes(inner, 5)
    first, second = Slow(database_url), Slow(database_url)
    async with consuming(inner, transport, first, lease=LONG):
        await until(lambda: first.begun)
        async with consuming(inner, transport, second, lease=LONG):
            await until(lambda: len(taken(database_url)) == head)
            more = await some_writes(inner, 12)
            await until(lambda: len(taken(database_url)) == more)
    assert (first.begun, second.begun) == ([0], [])
    assert taken(database_url) == list(range(1, more + 1))
    assert rows(database_url, "SELECT epoch FROM consumer_shards WHERE consumer = 'notebook'") == [(1,)]


async def test_a_member_whose_work_only_fails_gives_its_shard_up(
    inner: Core, log_watcher: LogWatcher, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    transport, ill, well = Log(inner.database, log_watcher), Notebook(), Notebook()
    ill.down = True
    faults = "SELECT fault FROM consumer_members WHERE failing_since IS NOT NULL"
    async with consuming(inner, transport, ill, lease=LONG):
        head = await some_writes(inner, 5)
        await until(lambda: rows(database_url, faults))
        assert rows(database_url, faults) == [("Unavailable: the handler's own dependency is down",)]
        (member,) = (await ConsumerQueries(inner.database).members())["notebook"]
        assert member.failing is not None
        async with consuming(inner, transport, well, lease=LONG):
            await until(lambda: len(taken(database_url)) == head)
    assert well.begun == [0]
    assert not rows(database_url, "SELECT FROM parked_records")


async def test_a_member_that_does_not_know_a_topic_gives_way_to_a_newer_one(
    inner: Core, log_watcher: LogWatcher, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    transport, old, new = Log(inner.database, log_watcher), Old(), Notebook()
    async with consuming(inner, transport, old, lease=LEASE):
        head = await some_writes(inner, 5)
        with caplog.at_level(logging.ERROR):
            await until(lambda: any("event.sponsored is not known to this version" in one.getMessage() for one in caplog.records))
        assert all(position < 3 for position in taken(database_url))
        async with consuming(inner, transport, new, lease=LEASE):
            await until(lambda: len(taken(database_url)) == head)
    assert taken(database_url) == list(range(1, head + 1))
    assert not rows(database_url, "SELECT FROM parked_records")


async def test_a_page_shrinks_after_a_lost_lease_and_grows_again(
    inner: Core, log_watcher: LogWatcher, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row gets another epoch, as if another member had taken the shard meanwhile."""
    notebook = Notebook()
    pages: list[int] = []
    fetch = SharedFeed.fetch

    async def counted(feed: SharedFeed, after: int, *, limit: int = LIMIT) -> Batch:
        pages.append(limit)
        return await fetch(feed, after, limit=limit)

    monkeypatch.setattr(SharedFeed, "fetch", counted)
    steal = "UPDATE consumer_shards SET epoch = epoch + 1, owner = NULL WHERE consumer = 'notebook' RETURNING 1"
    async with consuming(inner, Log(inner.database, log_watcher), notebook, lease=LEASE):
        head = await some_writes(inner, 3)
        await until(lambda: len(taken(database_url)) == head)
        before = len(pages)
        rows(database_url, steal)
        head = await some_writes(inner, 12)
        await until(lambda: len(taken(database_url)) == head)
        assert min(pages[before:]) == 500
        head = await some_writes(inner, 20)
        await until(lambda: len(taken(database_url)) == head and pages[-1] == 1000)
