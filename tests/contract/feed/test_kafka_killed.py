"""A broker that is killed in the middle of a page, again and again: the relay continues automatically, and loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from api.wiring.core import Core
from deploy.kafka.broker import Broker
from projections.log.log_watcher import LogWatcher
from projections.log.reader import LoggedEvent
from tests.contract.feed.test_feeds import relayed, some_writes
from tests.contract.feed.transports import positions_in, started_relay
from tests.projections.log.helpers import until
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.publisher import KafkaPublisher
from workers.adapters.kafka.relay import KafkaRelay
from workers.adapters.kafka.topics import Topics
from workers.relay import relay_name

FEW = 1
MANY = 100


class Watched(KafkaRelay):
    """Counts the waves that were begun."""

    waves = 0

    def _publisher(self, cluster: str) -> KafkaPublisher:
        relay = self

        class Publisher(KafkaPublisher):
            def _send(self, producer: Any, wave: Sequence[LoggedEvent], *, after: int) -> None:
                relay.waves += 1
                super()._send(producer, wave, after=after)

        return Publisher(self._connection, self._topics, kinds=self._kinds, cluster=cluster)


@pytest.mark.long
async def test_a_broker_that_is_killed_in_the_middle_of_a_page_stops_nothing_for_good(
    inner: Core, log_watcher: LogWatcher, tmp_path: Path, database_url: str, thorough: bool
) -> None:
    """The broker is frozen first, so that a page is certainly in progress when it is killed."""
    broker, topics = Broker(tmp_path / "kafka"), Topics("killed")
    connection = KafkaConnection(await asyncio.to_thread(broker.start))
    name, head = relay_name(await cluster_id(connection)), 0
    try:
        async with started_relay(Watched, inner, log_watcher, connection=connection, topics=topics) as relay:
            for _ in range(MANY if thorough else FEW):
                head = await some_writes(inner, 5)
                await until(lambda reached=head: relayed(database_url, name) == reached)  # type: ignore[misc]
                broker.freeze()
                begun = relay.waves
                head = await some_writes(inner, 40)
                await until(lambda before=begun: relay.waves > before)  # type: ignore[misc]
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
            await until(lambda: relayed(database_url, name) == head)
            positions = await asyncio.to_thread(positions_in, connection.bootstrap, topics.of("event"))
    finally:
        await asyncio.to_thread(broker.stop)
    assert sorted(set(positions)) == list(range(1, head + 1))
