"""Each transport between the log and a consumer, made to carry what is in the log: the real ones, and the twin in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Protocol, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic

from api.wiring.core import Core
from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from projections.consumers.leases import ShardLeases
from projections.kernel.database.database import Database
from projections.log.log_watcher import LogWatcher
from projections.log.reader import LoggedEvent, read
from projections.log.transactions import writes
from workers.adapters.kafka import cloud_event
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.feed import KafkaFeed
from workers.adapters.kafka.relay import KafkaRelay
from workers.adapters.kafka.topics import PARTITIONS, Topics
from workers.kernel.fallback_feed import FallbackFeed
from workers.kernel.feed import LIMIT, Batch, Feed
from workers.kernel.log_feed import LogFeed
from workers.kernel.log_reader import LogReader
from workers.relay import relay_name

R = TypeVar("R", bound=KafkaRelay)
KINDS = frozenset({"event", "job", "room", "tag"})
"""The kinds that these tests relay: those that they write, and one with empty topics. A topic costs a broker a good deal, and all
kinds pass through Kafka in tests/e2e/test_webhooks.py."""


class Transport(Protocol):
    def feed(self, *, kinds: Collection[str], limit: int = 1000) -> Feed:
        """Another reader of what the log holds."""
        ...


class MemoryFeed:
    """The twin: the whole log in a list."""

    reads_log_since = None

    def __init__(self, database: Database, kinds: Collection[str], *, limit: int) -> None:
        self._database = database
        self._kinds = kinds
        self._limit = limit

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        most = min(self._limit, limit)
        page: list[LoggedEvent] = []
        for write in writes(await read(self._database, after, limit=100_000)):
            if page and len(page) + len(write) > most:
                break
            page += write
        wanted = [record for record in page if record.kind in self._kinds]
        return Batch(wanted, page[-1].position if page else after)

    async def close(self) -> None:
        """Do nothing."""


class MemoryBroker(MemoryFeed):
    """The twin of a broker. `fault` is raised instead of giving records."""

    fault: str | None = None

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        match self.fault:
            case "fails":
                raise Unavailable("the broker refuses connections")
            case "hangs":
                await asyncio.Event().wait()
            case "lags":
                await asyncio.sleep(0)
                return Batch((), after)
        return await super().fetch(after, limit=limit)

    async def holds(self, after: int) -> bool:
        if self.fault == "fails":
            raise Unavailable("the broker refuses connections")
        return self.fault is None


class Fallback:
    """The log as the fallback of a broker that comes and goes."""

    def __init__(self, database: Database, log_watcher: LogWatcher) -> None:
        self._database = database
        self._log_watcher = log_watcher

    def feed(self, *, kinds: Collection[str], limit: int = 1000) -> Feed:
        broker = _ComesAndGoes(self._database, kinds, limit=limit)
        log = Log(self._database, self._log_watcher).feed(kinds=kinds, limit=limit)
        return FallbackFeed(broker, log, log_watcher=self._log_watcher, patience=0.01, look=0.01)


class _ComesAndGoes(MemoryBroker):
    """Gives three batches, then fails until it is asked whether it is back."""

    _given = 0

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        self._given += 1
        self.fault = "fails" if self._given > 3 else None
        return await super().fetch(after, limit=limit)

    async def holds(self, after: int) -> bool:
        self._given = 0
        return True


class Memory:
    def __init__(self, database: Database) -> None:
        self._database = database

    def feed(self, *, kinds: Collection[str], limit: int = 1000) -> Feed:
        return MemoryFeed(self._database, kinds, limit=limit)


class Log:
    def __init__(self, database: Database, log_watcher: LogWatcher) -> None:
        self._database = database
        self._log_watcher = log_watcher

    def feed(self, *, kinds: Collection[str], limit: int = 1000) -> LogFeed:
        return LogFeed(self._database, self._log_watcher, kinds=kinds, limit=limit)


class Kafka:
    """Kafka with a relay that runs as long as the test."""

    def __init__(self, database: Database, past: Log, *, bootstrap: str, topics: Topics) -> None:
        self._database = database
        self._past = past
        self._bootstrap = bootstrap
        self._topics = topics

    def feed(self, *, kinds: Collection[str], limit: int = 1000) -> Feed:
        past = self._past.feed(kinds=kinds, limit=limit)
        connection = KafkaConnection(self._bootstrap)
        return KafkaFeed(connection, self._topics, database=self._database, past=past, kinds=kinds)

    async def ready(self) -> None:
        """Wait until the relay has created the topics."""
        feed = self.feed(kinds=KINDS)
        async with asyncio.timeout(60):
            while True:
                with suppress(Unavailable):
                    await feed.fetch(0)
                    return await feed.close()


@asynccontextmanager
async def relaying(
    inner: Core, log_watcher: LogWatcher, *, bootstrap: str | KafkaConnection, topics: Topics, limit: int = 20
) -> AsyncIterator[str]:
    """Run the relay and yield its name as a consumer. Its pages are small, so that several of them are needed."""
    connection = KafkaConnection(bootstrap) if isinstance(bootstrap, str) else bootstrap
    async with started_relay(KafkaRelay, inner, log_watcher, connection=connection, topics=topics, limit=limit):
        yield relay_name(await cluster_id(connection))


@asynccontextmanager
async def started_relay(
    relay_class: type[R], inner: Core, log_watcher: LogWatcher, *, connection: KafkaConnection, topics: Topics, limit: int = 500
) -> AsyncIterator[R]:
    """Run a relay, and its reader of the log."""
    database = inner.database
    log = LogReader(database, log_watcher, source=lambda: LogFeed(database, log_watcher, kinds=None))
    leases = partial(ShardLeases, database, shards=1, member=new_id(), lease=1.0)
    relay = relay_class(
        database, log, leases=leases, connection=connection, topics=topics, kinds=KINDS, existing_kinds=KINDS, limit=limit
    )
    await log.start()
    await relay.start()
    try:
        yield relay
    finally:
        await relay.stop()
        await log.stop()


def forget(bootstrap: str, topic: str) -> None:
    """Delete all records of a topic like retention does; its offsets continue."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.delete_records(dict.fromkeys(_partitions(topic), -1))
    finally:
        admin.close()


def delete(bootstrap: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.delete_topics([topic])
    finally:
        admin.close()


def make(bootstrap: str, topic: str, *, partitions: int) -> None:
    """Create a topic like a broker that creates topics automatically on a look-up."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)])
    finally:
        admin.close()


def positions_in(bootstrap: str, topic: str) -> list[int]:
    """Return the positions of all records of a topic."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    try:
        consumer.assign(_partitions(topic))
        consumer.seek_to_beginning()
        ends, positions = consumer.end_offsets(_partitions(topic)), list[int]()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            polled = consumer.poll(timeout_ms=500).values()
            positions += [
                cloud_event.logged_event(record.headers, record.value)[0].position for records in polled for record in records
            ]
        return positions
    finally:
        consumer.close()


def _partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def positions(records: Sequence[LoggedEvent]) -> list[int]:
    return [record.position for record in records]
