"""A broker that is down at the start, comes up, is frozen and continues: its consumer loses and doubles nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import pytest

from api.wiring.core import Core
from deploy.kafka.broker import Broker
from projections.log.log_watcher import LogWatcher
from tests.contract.feed.notebook import Notebook, consuming
from tests.contract.feed.test_feeds import some_writes, taken
from tests.contract.feed.transports import KINDS, Kafka, Log, relaying
from tests.projections.log.helpers import until
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.feed import KafkaFeed
from workers.adapters.kafka.topics import Topics
from workers.kernel.fallback_feed import FallbackFeed
from workers.kernel.feed import Feed

pytestmark = pytest.mark.usefixtures("effects")


async def test_a_real_broker_that_is_frozen_stopped_and_back(
    inner: Core, log_watcher: LogWatcher, tmp_path: Path, database_url: str
) -> None:
    """The consumer uses the product's own time limits."""
    broker, topics = Broker(tmp_path / "kafka"), Topics("frozen")
    bootstrap = await asyncio.to_thread(broker.start)
    log = Log(inner.database, log_watcher)
    try:
        async with relaying(inner, log_watcher, bootstrap=bootstrap, topics=topics):
            await Kafka(inner.database, log, bootstrap=bootstrap, topics=topics).ready()
            past = log.feed(kinds=KINDS)
            feed = KafkaFeed(KafkaConnection(bootstrap), topics, database=inner.database, past=past, kinds=KINDS)
            reading = FallbackFeed(feed, past, log_watcher=log_watcher, name="notebook")

            class Same:
                def feed(self, *, kinds: Collection[str], limit: int = 1000) -> Feed:
                    return reading

            async def goes_on(*, by_log: bool) -> None:
                head = await some_writes(inner, 10)
                await until(lambda: len(taken(database_url)) == head, seconds=60)
                await until(lambda: (reading.reads_log_since is not None) is by_log, seconds=60)

            await asyncio.to_thread(broker.stop)
            async with consuming(inner, Same(), Notebook()):
                await goes_on(by_log=True)
                await asyncio.to_thread(broker.start)
                await goes_on(by_log=False)
                broker.freeze()
                await goes_on(by_log=True)
                broker.thaw()
                await goes_on(by_log=False)
                await goes_on(by_log=False)
            records = taken(database_url)
        assert records == list(range(1, len(records) + 1))
    finally:
        await asyncio.to_thread(broker.stop)
