"""Publisher to Kafka: a record for every event, written by an idempotent producer.

A page counts as sent after all of its records are acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from domain.kernel.errors import Unavailable
from projections.log.reader import LoggedEvent
from workers.adapters.kafka import cloud_event
from workers.adapters.kafka.broker_topics import bounds, create
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.topics import LARGEST, PARTITIONS, Topics

_PATIENCE = 4.0
"""Seconds for a page. Less than a lease, so that the relay keeps its shard while a broker is down."""


class KafkaPublisher:
    """Publishes to Kafka. kafka-python blocks, so everything runs in a thread."""

    def __init__(self, bootstrap: str, topics: Topics, *, kinds: Collection[str], cluster: str) -> None:
        self._bootstrap = bootstrap.split(",")
        self._topics = topics
        self._names = [topics.of(kind) for kind in kinds]
        self._cluster = cluster
        self.replaced = asyncio.Event()
        """Set when another cluster answers: the checkpoint of this one does not hold for it."""
        self._producer: Any = None
        self._last_sent: dict[tuple[str, int], int] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka publisher")

    async def begin(self) -> None:
        """Create missing topics, and read the last position of each partition: records that it holds are not sent again."""
        if await cluster_id(",".join(self._bootstrap)) != self._cluster:
            self.replaced.set()
            raise Unavailable("Kafka is another cluster than before")
        await self._run(self._begin)

    async def publish(self, events: Sequence[LoggedEvent], *, after: int) -> None:
        """Send a page that starts after the position `after`, and wait until all of it is acknowledged. Raises `Unavailable`; part
        of the page may have arrived then, and `begin` must be called before it is sent again."""
        await self._run(self._publish, events, after)

    async def close(self) -> None:
        await self._run(self._drop)
        self._thread.shutdown(wait=False)

    async def _run(self, act: Any, *arguments: Any) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, act, *arguments)
        except KafkaError as fault:
            raise Unavailable(f"Kafka does not take records: {type(fault).__name__}") from fault

    def _begin(self) -> None:
        self._drop()
        admin = KafkaAdminClient(bootstrap_servers=self._bootstrap, bootstrap_timeout_ms=5000)
        try:
            create(admin, self._names)
        finally:
            admin.close()
        self._last_sent = self._last_positions()
        self._producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=2,
            batch_size=128 * 1024,
            max_request_size=LARGEST,
            delivery_timeout_ms=int(_PATIENCE * 1000),
            request_timeout_ms=int(_PATIENCE * 750),
            reconnect_backoff_max_ms=1000,
            max_block_ms=int(_PATIENCE * 1000),
        )

    def _publish(self, events: Sequence[LoggedEvent], after: int) -> None:
        sent = []
        for event in events:
            topic, partition = self._topics.of(event.kind), self._topics.partition(event.key)
            if event.position > self._last_sent.get((topic, partition), 0):
                sent.append(
                    self._producer.send(
                        topic,
                        key=event.key.encode(),
                        value=event.state,
                        headers=cloud_event.headers(event, after=after),
                        partition=partition,
                        timestamp_ms=cloud_event.milliseconds(event.recorded_at),
                    )
                )
        try:
            self._producer.flush(_PATIENCE)
            for future in sent:
                future.get(0)
        except KafkaError:
            self._drop()
            raise

    def _drop(self) -> None:
        """Close the producer with its queue: no record may arrive after later ones."""
        if self._producer is not None:
            self._producer.close(timeout=0)
            self._producer = None

    def _last_positions(self) -> dict[tuple[str, int], int]:
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, enable_auto_commit=False, group_id=None)
        try:
            partitions = [TopicPartition(name, number) for name in self._names for number in range(PARTITIONS)]
            begins, ends = bounds(consumer, partitions)
            filled = [partition for partition in partitions if ends[partition] > begins[partition]]
            consumer.assign(filled)
            for partition in filled:
                consumer.seek(partition, ends[partition] - 1)
            positions: dict[tuple[str, int], int] = {}
            while len(positions) < len(filled):
                for partition, records in consumer.poll(timeout_ms=1000).items():
                    positions[partition.topic, partition.partition] = max(
                        cloud_event.position(record.headers) for record in records
                    )
                    consumer.pause(partition)
            return positions
        finally:
            consumer.close()
