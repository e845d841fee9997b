"""Publisher to Kafka: a record for every event, written by an idempotent producer.

No partition ever contains a record without the ones before it. A page is sent in waves, each with at most one batch for a
partition, and a wave is sent after the one before was acknowledged; the broker appends a batch whole or not at all. When something
is not acknowledged in time, the producer is thrown away with all its batches, never a single batch. The next attempt reads back
what the topics contain.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from domain.kernel.errors import Unavailable
from projections.consumers.timeline import Origin
from projections.log.reader import LoggedEvent
from workers.adapters.kafka import cloud_event
from workers.adapters.kafka.broker_topics import absent, create, largest
from workers.adapters.kafka.client_thread import ClientThread, suppressed
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.refusals import translate_errors
from workers.adapters.kafka.topic_positions import ReadBack, TopicPositions
from workers.adapters.kafka.topics import LARGEST, Topics
from workers.relay import BrokerRecord

T = TypeVar("T")
_PATIENCE: Final = 4.0
"""The time limit for a wave, in seconds."""
_NEVER_MS: Final = 600_000
_BATCH: Final = 512 * 1024
"""The size of a batch in bytes. A larger record is a batch of its own."""
_ENVELOPE: Final = 1000
"""The maximum size of a record in bytes without its value and its cause."""


class KafkaPublisher:
    """Publishes to Kafka. kafka-python blocks, so everything runs in a thread, and every call has a deadline."""

    def __init__(self, connection: KafkaConnection, topics: Topics, *, kinds: Collection[str], cluster: str) -> None:
        self._connection = connection
        self._topics = topics
        self._kinds = sorted(kinds)
        self._names = [topics.of(kind) for kind in kinds]
        self._cluster = cluster
        self.replaced = asyncio.Event()
        """Set when another cluster answers, for which the checkpoint of this one is not valid."""
        self._thread: ClientThread | None = None
        self._producer: Any = None
        self._reading: ReadBack | None = None
        self._sent_positions = TopicPositions()
        self._largest: Mapping[str, int] = {}
        self._origin = Origin(UUID(int=0), 0)

    async def absent(self) -> Sequence[str]:
        """Return the kinds whose topics do not exist."""
        await self._check_cluster()
        names = await self._run(self._absent_topics)
        return [kind for kind in self._kinds if self._topics.of(kind) in names]

    async def begin(self, origin: Origin) -> None:
        """Create missing topics, and make a new producer."""
        self._origin = origin
        self._give_up()
        await self._check_cluster()
        self._sent_positions = TopicPositions()
        self._largest = await self._run(self._make_topics)
        self._producer = await self._run(self._make_producer)

    async def stored_records(self, since: int) -> AsyncIterator[Sequence[BrokerRecord]]:
        """The records that the topics hold from a time on, in milliseconds since 1970."""
        self._reading = ReadBack(self._connection, self._names)
        await self._run(partial(self._reading.start, since))
        while (page := await self._run(self._reading.page)) is not None:
            yield page
        await self._run(self._reading.close)
        self._reading = None

    def leave_out(self, records: Iterable[BrokerRecord]) -> None:
        """Note records that need not be sent again."""
        for record in records:
            self._sent_positions.add(record.partition, record.position)

    async def publish(self, events: Sequence[LoggedEvent], *, after: int) -> None:
        """Send a page that starts after the position `after`, and wait until all of it is acknowledged. Raises `Unavailable`; part
        of the page may have arrived then, and `begin` must be called before it is sent again."""
        producer = self._producer
        if producer is None:
            raise Unavailable("the publisher has not begun")
        try:
            sent = [fitting(event, most=self._largest[self._place(event).topic]) for event in self._missing(events)]
            for wave in waves(sent, place=self._place, largest=self._largest):
                await self._run(partial(self._send, producer, wave, after=after))
        except BaseException:
            self._give_up()
            raise

    async def close(self) -> None:
        self._give_up()

    def _missing(self, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        return [event for event in events if not self._sent_positions.holds(self._place(event), event.position)]

    def _place(self, event: LoggedEvent) -> TopicPartition:
        return TopicPartition(self._topics.of(event.kind), self._topics.partition(event.key))

    async def _run(self, act: Callable[[], T]) -> T:
        if self._thread is None:
            self._thread = ClientThread("kafka publisher")
        try:
            with translate_errors():
                return await self._thread.run(act)
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Throw away the clients, with everything unsent, and their thread, which may be stuck. This does not wait."""
        producer, self._producer = self._producer, None
        reading, self._reading = self._reading, None
        thread, self._thread = self._thread, None
        if producer is not None:
            suppressed(producer._sender.force_close)  # `close` would flush first, and raise while records are unsent
        if thread is not None:
            thread.end(*([partial(producer.close, timeout=0)] if producer else []), *([reading.close] if reading else []))

    async def _check_cluster(self) -> None:
        if await cluster_id(self._connection) != self._cluster:
            self.replaced.set()
            raise Unavailable("Kafka is a different cluster than before")

    def _absent_topics(self) -> Sequence[str]:
        admin = KafkaAdminClient(**self._connection.arguments, request_timeout_ms=5000)
        try:
            return absent(admin, self._names)
        finally:
            admin.close()

    def _make_topics(self) -> dict[str, int]:
        admin = KafkaAdminClient(**self._connection.arguments, request_timeout_ms=5000)
        try:
            create(admin, self._names, connection=self._connection)
            return largest(admin, self._names)
        finally:
            admin.close()

    def _make_producer(self) -> Any:
        return KafkaProducer(
            **self._connection.arguments,
            enable_idempotence=True,
            acks="all",
            linger_ms=_NEVER_MS,  # a wave is sent when it is complete, so that it is one batch for a partition
            batch_size=2 * _BATCH,
            max_request_size=LARGEST,
            delivery_timeout_ms=2 * _NEVER_MS,  # batches are never abandoned one by one
            request_timeout_ms=int(_PATIENCE * 750),
            max_block_ms=int(_PATIENCE * 1000),
        )

    def _send(self, producer: Any, wave: Sequence[LoggedEvent], *, after: int) -> None:
        sent = []
        for event in wave:
            place = self._place(event)
            sent.append(
                producer.send(
                    place.topic,
                    key=event.key.encode(),
                    value=event.state,
                    headers=cloud_event.headers(event, after=after, origin=self._origin),
                    partition=place.partition,
                    timestamp_ms=cloud_event.milliseconds(event.recorded_at),
                )
            )
        producer.flush(_PATIENCE)
        for future in sent:
            future.get(0)


def fitting(event: LoggedEvent, *, most: int) -> LoggedEvent:
    """Return the event, without its state if its record may have more than `most` bytes: consumers would miss a record that the
    broker refuses."""
    return event if _size(event) <= min(most, LARGEST) else replace(event, state=b"")


def _size(event: LoggedEvent) -> int:
    return len(event.state) + 2 * len(event.metadata) + _ENVELOPE


def waves(
    events: Iterable[LoggedEvent], *, place: Callable[[LoggedEvent], TopicPartition], largest: Mapping[str, int]
) -> Sequence[Sequence[LoggedEvent]]:
    """Divide the events into waves that have at most one batch for each partition. `largest` is the size limit in bytes for a batch
    of each topic: a batch that is refused for its size would be split, and only some of its parts might arrive."""
    filled: dict[TopicPartition, tuple[int, int]] = {}
    result: list[list[LoggedEvent]] = []
    for event in events:
        partition = place(event)
        wave, size = filled.get(partition, (0, 0))
        more = _size(event)
        if size and size + more > min(_BATCH, largest[partition.topic]):
            wave, size = wave + 1, 0
        filled[partition] = wave, size + more
        if wave == len(result):
            result.append([])
        result[wave].append(event)
    return result
