"""The worker of the relay. It starts again from the beginning of the log when another Kafka cluster answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial

from projections.consumers.leases import ShardLeases
from projections.kernel.background_task import start_forever
from projections.kernel.database.database import Database
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.publisher import KafkaPublisher
from workers.adapters.kafka.topics import Topics
from workers.kernel.consumer import Consumer
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.log_reader import LogReader
from workers.kernel.settings import AggregateKinds
from workers.kernel.worker import Worker
from workers.relay import Relay, relay_name


class KafkaRelay:
    """Runs the consumer of the relay. Its name contains the id of the cluster, and `leases` returns the leases by that name."""

    def __init__(
        self,
        database: Database,
        log: LogReader,
        *,
        leases: Callable[[str], ShardLeases],
        connection: KafkaConnection,
        topics: Topics,
        kinds: Collection[str],
        existing_kinds: Collection[str],
        limit: int = 500,
    ) -> None:
        self._database = database
        self._log = log
        self._leases = leases
        self._connection = connection
        self._topics = topics
        self._kinds = kinds
        self._existing_kinds = existing_kinds
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
        handler = Relay(self._database, publisher, name=name, kinds=self._kinds, existing_kinds=self._existing_kinds)
        consumer = Consumer(self._database, self._leases(name), feed=self._log.feed(None), handler=handler, limit=self._limit)
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


def relay(
    consumers: ConsumerFactory, database: Database, *, connection: KafkaConnection, kinds: AggregateKinds
) -> Sequence[Worker]:
    """Return the relay, which fills Kafka."""
    leases = partial(consumers.leases, reads_log=True)
    worker = KafkaRelay(
        database,
        consumers.log,
        leases=leases,
        connection=connection,
        topics=Topics(),
        kinds=kinds.relayed,
        existing_kinds=kinds.all,
    )
    return [worker]
