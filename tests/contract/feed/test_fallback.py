"""A consumer reads the log while its broker gives nothing, and the broker again when it is back: nothing is lost or doubled."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

import pytest

from api.wiring.core import Core
from domain.kernel.errors import Unavailable
from projections.log.log_watcher import LogWatcher
from tests.contract.feed.notebook import Notebook, consuming
from tests.contract.feed.test_feeds import fetched, some_writes, taken
from tests.contract.feed.transports import KINDS, Log, MemoryBroker
from tests.projections.log.helpers import rows, until
from tests.support.feeding import event
from workers.kernel.fallback_feed import BrokerFeed, FallbackFeed
from workers.kernel.feed import Feed

pytestmark = pytest.mark.usefixtures("effects")
SOON = 0.2


@dataclass
class Beside:
    """A broker feed with the log as its fallback."""

    broker: BrokerFeed
    inner: Core
    log_watcher: LogWatcher
    patience: float = SOON
    look: float = SOON

    def feed(self, *, kinds: Collection[str], limit: int = 1000) -> Feed:
        log = Log(self.inner.database, self.log_watcher).feed(kinds=kinds, limit=limit)
        return FallbackFeed(self.broker, log, log_watcher=self.log_watcher, name="notebook", patience=self.patience, look=self.look)


@pytest.fixture
def broker(inner: Core) -> MemoryBroker:
    return MemoryBroker(inner.database, KINDS, limit=7)


@pytest.mark.parametrize("fault", ["fails", "hangs", "lags"])
@pytest.mark.parametrize("from_the_start", [False, True])
async def test_the_log_is_read_until_the_broker_is_back(
    inner: Core,
    log_watcher: LogWatcher,
    broker: MemoryBroker,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
    fault: str,
    from_the_start: bool,
) -> None:
    caplog.set_level("INFO")
    reading = "SELECT consumer FROM consumer_members WHERE reads_log_since IS NOT NULL"
    broker.fault = fault if from_the_start else None
    head = await some_writes(inner, 10)
    async with consuming(inner, Beside(broker, inner, log_watcher), Notebook(), limit=7, lease=0.5):
        await until(lambda: len(taken(database_url)) == head)
        broker.fault = fault
        head = await some_writes(inner, 20)
        await until(lambda: len(taken(database_url)) == head)
        await until(lambda: rows(database_url, reading) == [("notebook",)])
        broker.fault = None
        await until(lambda: rows(database_url, reading) == [])
        head = await some_writes(inner, 10)
        await until(lambda: len(taken(database_url)) == head)
    assert taken(database_url) == list(range(1, head + 1))
    messages = [record.message for record in caplog.records if record.name == "workers.kernel.fallback_feed"]
    assert messages
    assert all(line.startswith("notebook: reads the log instead of the broker until it is back: ") for line in messages[::2])
    assert set(messages[1::2]) == {"notebook: reads the broker again"}


async def test_a_short_absence_changes_nothing(inner: Core, log_watcher: LogWatcher, broker: MemoryBroker) -> None:
    feed = Beside(broker, inner, log_watcher, patience=3600).feed(kinds=KINDS)
    head = await some_writes(inner, 5)
    broker.fault = "fails"
    assert (await feed.fetch(0)).through == 0
    broker.fault = None
    assert await fetched(feed, 0, through=head, close=False) == list(range(1, head + 1))
    assert feed.reads_log_since is None
    await feed.close()


async def test_a_broker_with_nothing_to_give_is_read_on(inner: Core, log_watcher: LogWatcher, broker: MemoryBroker) -> None:
    """The broker is read however long it takes, because the log has no new events."""
    feed = Beside(broker, inner, log_watcher, patience=0.2).feed(kinds=KINDS)
    head = await some_writes(inner, 5)
    assert await fetched(feed, 0, through=head, close=False) == list(range(1, head + 1))
    broker.fault = "lags"
    async with asyncio.timeout(60):
        for _ in range(20):
            assert (await feed.fetch(head)).through == head
            await log_watcher.signal(log_watcher.signals)
    assert feed.reads_log_since is None
    await feed.close()


async def test_a_broker_that_has_not_the_log_yet_is_not_read(inner: Core, log_watcher: LogWatcher, broker: MemoryBroker) -> None:
    """The broker answers, but is still being filled."""
    broker.fault = "lags"
    feed = Beside(broker, inner, log_watcher).feed(kinds=KINDS)
    head = await some_writes(inner, 5)
    assert await fetched(feed, 0, through=head, close=False) == list(range(1, head + 1))
    for number in range(5):
        await event(inner, 1, title=f"again {number}")
        assert await fetched(feed, head + number, through=head + number + 1, close=False) == [head + number + 1]
        assert feed.reads_log_since is not None
    await feed.close()


async def test_a_database_that_is_away_says_nothing_about_the_broker(
    inner: Core, log_watcher: LogWatcher, broker: MemoryBroker
) -> None:
    class Away(LogWatcher):
        async def ends_at(self, position: int) -> bool:
            raise Unavailable("the database does not answer")

    feed = Beside(broker, inner, Away(inner.database)).feed(kinds=KINDS)
    broker.fault = "fails"
    for _ in range(3):
        with pytest.raises(Unavailable, match="the database"):
            await feed.fetch(0)
    assert feed.reads_log_since is None
    await feed.close()
