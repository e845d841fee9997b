"""A broker that lost its data comes back as another cluster: the relay fills it from the log's beginning; consumers continue."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from api.wiring.core import Core
from deploy.kafka.broker import Broker
from projections.log.log_watcher import LogWatcher
from tests.contract.feed.notebook import Notebook, consuming
from tests.contract.feed.test_feeds import some_writes, taken
from tests.contract.feed.transports import Kafka, Log, positions_in, relaying
from tests.projections.log.helpers import until
from workers.adapters.kafka.topics import Topics

pytestmark = pytest.mark.usefixtures("effects")


@pytest.mark.long
async def test_a_cluster_that_lost_its_data_is_filled_again_without_loss_or_repeat(
    inner: Core, log_watcher: LogWatcher, tmp_path: Path, database_url: str
) -> None:
    broker, topics = Broker(tmp_path / "kafka"), Topics("lost")
    bootstrap = await asyncio.to_thread(broker.start)
    transport = Kafka(inner.database, Log(inner.database, log_watcher), bootstrap=bootstrap, topics=topics)
    try:
        async with relaying(inner, log_watcher, bootstrap=bootstrap, topics=topics):
            await transport.ready()
            async with consuming(inner, transport, Notebook()):
                head = await some_writes(inner, 20)
                await until(lambda: len(taken(database_url)) == head)
                await asyncio.to_thread(broker.kill)
                shutil.rmtree(tmp_path / "kafka")
                await some_writes(inner, 20)
                await asyncio.to_thread(broker.start)
                head = await some_writes(inner, 5)
                await until(lambda: len(taken(database_url)) == head, seconds=90)
        assert taken(database_url) == list(range(1, head + 1))
        assert sorted(set(await asyncio.to_thread(positions_in, bootstrap, topics.of("event")))) == list(range(1, head + 1))
    finally:
        await asyncio.to_thread(broker.stop)
