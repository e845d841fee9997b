"""The worker of the relay. It starts again from the beginning of the log when another Kafka cluster answers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from uuid import UUID

from projections.consumers.leases import LEASE, ShardLeases
from projections.kernel.background_task import start_forever
from projections.kernel.database.database import Database
from projections.log.log_watcher import LogWatcher
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.publisher import KafkaPublisher
from workers.adapters.kafka.topics import Topics
from workers.kernel.consumer import Consumer
from workers.kernel.log_feed import LogFeed
from workers.relay import Relay, relay_name


class KafkaRelay:
    """Runs the consumer of the relay. Its name contains the id of the cluster."""

    def __init__(
        self,
        database: Database,
        log_watcher: LogWatcher,
        *,
        connection: KafkaConnection,
        topics: Topics,
        kinds: Collection[str],
        existing_kinds: Collection[str],
        member: UUID,
        host: str = "",
        lease: float = LEASE,
        limit: int = 500,
    ) -> None:
        self._database = database
        self._log_watcher = log_watcher
        self._connection = connection
        self._topics = topics
        self._kinds = kinds
        self._existing_kinds = existing_kinds
        self._member = member
        self._host = host
        self._lease = lease
        self._limit = limit
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = start_forever(self._run, what="relay", until=self._stopping.is_set)

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        await self._fill(await cluster_id(self._connection))

    async def _fill(self, cluster: str) -> None:
        """Fill a cluster until another one answers, or the relay is stopped."""
        publisher = self._publisher(cluster)
        name = relay_name(cluster)
        leases = ShardLeases(self._database, name, shards=1, member=self._member, host=self._host, lease=self._lease)
        feed = LogFeed(self._database, self._log_watcher, kinds=None, limit=self._limit)
        handler = Relay(self._database, publisher, name=name, kinds=self._kinds, existing_kinds=self._existing_kinds)
        consumer = Consumer(self._database, leases, feed=feed, handler=handler)
        await consumer.start()
        try:
            ends = {asyncio.create_task(self._stopping.wait()), asyncio.create_task(publisher.replaced.wait())}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
        finally:
            await consumer.stop()
            await publisher.close()

    def _publisher(self, cluster: str) -> KafkaPublisher:
        return KafkaPublisher(self._connection, self._topics, kinds=self._kinds, cluster=cluster)
