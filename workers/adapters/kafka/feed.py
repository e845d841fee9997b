"""The feed that reads from Kafka, in the order of the log.

The checkpoint of the relay is the position up to which the topics contain the log. So the records of all partitions can be merged
by position: a record is returned only after all earlier ones have been read. Partitions are assigned by leases in PostgreSQL, not
by a consumer group, because the checkpoint and its fencing are in PostgreSQL anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from kafka import TopicPartition

from domain.kernel.errors import Unavailable
from projections.consumers.timeline import EPOCH, Timeline, timeline
from projections.kernel.database.database import Database
from projections.log import reader
from workers.adapters.kafka import cloud_event
from workers.adapters.kafka.client_thread import ClientThread
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.refusals import translate_errors
from workers.adapters.kafka.topic_reader import HINT_EVERY, MOST_WAITING, TopicReader
from workers.adapters.kafka.topics import PARTITIONS, Topics
from workers.kernel.feed import LIMIT, Batch
from workers.kernel.log_feed import LogFeed
from workers.relay import relay_name

T = TypeVar("T")
_STANDING: Final = f"""
SELECT coalesce(relay.position, 0), coalesce(relay.held_until > clock_timestamp(), false), now.epoch
FROM (SELECT ({EPOCH}) AS epoch) AS now LEFT JOIN consumer_shards relay ON relay.consumer = %s
"""
_CHECK: Final = 5.0
"""Seconds between two checks which cluster it is, while no relay fills this one."""


class KafkaFeed:
    """Reads from Kafka. `past` reads from the log what the topics no longer contain. `groups` are the consumer groups whose offsets
    are committed, so that Kafka's own tools show the lag; the product does not read them."""

    reads_log_since: Final = None

    def __init__(
        self,
        connection: KafkaConnection,
        topics: Topics,
        *,
        database: Database,
        past: LogFeed,
        kinds: Collection[str],
        groups: Collection[str] = (),
        hint_every: float = HINT_EVERY,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._connection = connection
        self._topics = topics
        self._database = database
        self._past = past
        self._kinds = kinds
        self._groups = groups
        self._hint_every = hint_every
        self._most_waiting = most_waiting
        self._thread: ClientThread | None = None
        self._reading: TopicReader | None = None
        self._timeline: Timeline | None = None
        self._relay = ""
        self._checked = 0.0
        self._past_until = 0
        """The position up to which the log is read, because the topics no longer contain all of it."""

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        if after < self._past_until:
            return await self._past.fetch(after, limit=limit)
        try:
            reading = self._reading
            if reading is None or not reading.continues(after):
                return await self._seek(after, limit)
            await self._in_thread(reading.poll)
            relayed = await self._relayed()
            through = await self._in_thread(partial(reading.through, relayed))
            return await self._filled(reading.take(through, limit=limit))
        except BaseException:
            self._give_up()
            raise

    async def holds(self, after: int) -> bool:
        """Return True if the brokers return the content of the topics, and the topics are filled up to this position."""
        try:
            reading, _ = await self._open(after)
            await self._in_thread(reading.poll)
            relayed = await self._relayed()
            await self._in_thread(partial(reading.through, relayed))
        except BaseException:
            self._give_up()
            raise
        return relayed >= after

    async def close(self) -> None:
        self._past_until = 0
        self._give_up()

    async def _seek(self, after: int, limit: int) -> Batch:
        """Find the position in the topics. Pages that they no longer contain are read from the log."""
        _, complete = await self._open(after)
        relayed = await self._relayed()
        if complete or after >= relayed:
            return Batch((), after)
        self._give_up()
        self._past_until = relayed
        return await self._past.fetch(after, limit=limit)

    async def _open(self, after: int) -> tuple[TopicReader, bool]:
        """Return a reader of the topics from this position on, and True if the topics still contain all records from there."""
        self._give_up()
        self._relay = relay_name(await cluster_id(self._connection))
        self._checked = time.monotonic()
        self._timeline = now = await timeline(self._database)
        moment = await self._moment(after)
        reading = self._reading = TopicReader(self._partitions, after=after, timeline=now)
        reading.hint_every, reading.most_waiting = self._hint_every, self._most_waiting
        return reading, await self._in_thread(partial(reading.seek, self._connection, moment=moment, groups=self._groups))

    @property
    def _partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self._topics.of(kind), number) for kind in sorted(self._kinds) for number in range(PARTITIONS)]

    async def _relayed(self) -> int:
        """Return the position up to which the relay has filled the topics, in the epoch for which they are read."""
        row = await self._database.row(_STANDING, (self._relay,))
        assert row is not None, "there is always an epoch"
        position, filled, epoch = row
        if self._timeline is None or epoch != self._timeline.origin.epoch:
            raise Unavailable("the log has begun a new epoch")
        if not filled and time.monotonic() - self._checked > _CHECK:
            await self._check_cluster()
        return int(position)

    async def _check_cluster(self) -> None:
        """Check that the cluster is the same. Clients reconnect to any cluster at their address, and another cluster has another
        relay."""
        self._checked = time.monotonic()
        if relay_name(await cluster_id(self._connection)) != self._relay:
            raise Unavailable("Kafka is a different cluster than before")

    async def _filled(self, batch: Batch) -> Batch:
        """Return the batch with the states that the relay left out. The log contains everything up to where the topics are filled,
        so a record that it does not contain was not sent by the relay."""
        lacking = [record.position for record in batch.records if not record.state]
        if not lacking:
            return batch
        log = {event.event_id: event for event in await reader.at(self._database, lacking)}
        return Batch(
            [log.get(record.event_id, record) for record in batch.records if record.state or record.event_id in log], batch.through
        )

    async def _moment(self, position: int) -> int:
        """Return the time at which the event at this position was recorded, in milliseconds; no later record is older."""
        events = await reader.at(self._database, [position]) if position else ()
        return cloud_event.milliseconds(events[0].recorded_at) if events else 0

    async def _in_thread(self, act: Callable[[], T]) -> T:
        if self._thread is None:
            self._thread = ClientThread("kafka feed")
        with translate_errors():
            return await self._thread.run(act)

    def _give_up(self) -> None:
        """Throw away the clients and their thread, which may be stuck. This does not wait."""
        reading, self._reading = self._reading, None
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.end(*([reading.close] if reading else []))


@dataclass(frozen=True, slots=True)
class KafkaBroker:
    """The brokers of Kafka: implements `workers.kernel.consumer_factory.Broker`."""

    connection: KafkaConnection
    database: Database

    def feed(self, kinds: frozenset[str], *, past: LogFeed, consumers: Collection[str]) -> KafkaFeed:
        topics = Topics()
        groups = [topics.group(consumer) for consumer in consumers]
        return KafkaFeed(self.connection, topics, database=self.database, past=past, kinds=kinds, groups=groups)
