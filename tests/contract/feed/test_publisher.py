"""The publisher to Kafka: its behaviour when a part of a page arrives, and the meaning of Kafka's errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from kafka import KafkaAdminClient, TopicPartition, errors
from kafka.admin import ConfigResource, NewTopic
from kafka.producer.future import FutureProduceResult, FutureRecordMetadata

from api.wiring.core import Core
from domain.kernel.errors import Unavailable
from projections.consumers.timeline import Origin
from projections.kernel.background_task import OperatorNeeded
from projections.log.log_watcher import LogWatcher
from projections.log.reader import LoggedEvent, read
from tests.contract.feed.transports import KINDS, Kafka, Log, positions_in, relaying
from tests.projections.log.helpers import rows, until
from tests.support.feeding import event
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.publisher import KafkaPublisher, waves
from workers.adapters.kafka.refusals import RecordRefused, translate_errors
from workers.adapters.kafka.topics import PARTITIONS, Topics
from workers.kernel.feed import Feed

ORIGIN = Origin(UUID(int=7), 1)
SMALL = {"max.message.bytes": "4000"}


class FirstFails:
    """A producer that loses its first record, and sends the others."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._lost = False

    def send(self, topic: str, *, partition: int, **record: Any) -> Any:
        if self._lost:
            return self._producer.send(topic, partition=partition, **record)
        self._lost = True
        lost = FutureRecordMetadata(FutureProduceResult(TopicPartition(topic, partition)), -1, None, None, -1, -1, -1)
        return lost.failure(errors.KafkaTimeoutError("lost by the test"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)


class Injected(KafkaPublisher):
    fails = False

    def _make_producer(self) -> Any:
        made = super()._make_producer()
        return FirstFails(made) if self.fails else made


async def begun(publisher: KafkaPublisher) -> None:
    await publisher.begin(ORIGIN)
    async for page in publisher.stored_records(0):
        publisher.leave_out(page)


async def two_events(inner: Core) -> Sequence[LoggedEvent]:
    await event(inner, 1, title="first")
    await event(inner, 1, title="second")
    return await read(inner.database, 0)


async def test_when_a_later_record_arrives_without_an_earlier_one_both_are_sent_again(
    inner: Core, kafka: str, topics_prefix: str
) -> None:
    connection, topics = KafkaConnection(kafka), Topics(topics_prefix)
    publisher = Injected(connection, topics, kinds=KINDS, cluster=await cluster_id(connection))
    page = await two_events(inner)
    try:
        publisher.fails = True
        await begun(publisher)
        with pytest.raises(Unavailable):
            await publisher.publish(page, after=0)
        assert await asyncio.to_thread(positions_in, kafka, topics.of("event")) == [2], "the test has made the hole"
        publisher.fails = False
        await begun(publisher)
        await publisher.publish(page, after=0)
        assert await asyncio.to_thread(positions_in, kafka, topics.of("event")) == [2, 1, 2]
        await begun(publisher)
        await publisher.publish(page, after=0)
        assert await asyncio.to_thread(positions_in, kafka, topics.of("event")) == [2, 1, 2], (
            "all of it is there: nothing is sent again"
        )
    finally:
        await publisher.close()


@pytest.fixture
async def small_topic(
    inner: Core, log_watcher: LogWatcher, kafka: str, topics_prefix: str, database_url: str
) -> AsyncIterator[Feed]:
    """A feed of a topic that takes few bytes, and holds four events: two are larger."""
    topics = Topics(topics_prefix)
    await asyncio.to_thread(_small_topic, kafka, topics.of("event"))
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics) as name:
        await event(inner, 1, title="small")
        await event(inner, 2, title="x" * 250, description="y" * 9000)
        await event(inner, 3, description="z" * 9000)
        await event(inner, 2, title="behind it")
        await until(lambda: rows(database_url, "SELECT FROM consumer_shards WHERE consumer = %s AND position = 4", name))
        feed = Kafka(inner.database, Log(inner.database, log_watcher), bootstrap=kafka, topics=topics).feed(kinds=["event"])
        yield feed
        await feed.close()


async def given(feed: Feed) -> list[list[LoggedEvent]]:
    """The four events, in batches."""
    after, batches = 0, []
    async with asyncio.timeout(60):
        while after < 4:
            batch = await feed.fetch(after)
            batches += [list(batch.records)] if batch.records else []
            after = batch.through
    return batches


async def test_a_record_that_is_too_large_for_the_topic_is_sent_without_its_content(
    inner: Core, small_topic: Feed, kafka: str, topics_prefix: str, database_url: str
) -> None:
    """Consumers get it from the log, in its order."""
    events = [event for batch in await given(small_topic) for event in batch]
    assert [(event.position, event.state) for event in events] == [
        (event.position, event.state) for event in await read(inner.database, 0)
    ]
    assert not rows(database_url, "SELECT FROM parked_records")
    assert sorted(await asyncio.to_thread(positions_in, kafka, Topics(topics_prefix).of("event"))) == [1, 2, 3, 4]


async def test_a_topic_that_comes_to_take_less_is_asked_again(
    inner: Core, log_watcher: LogWatcher, kafka: str, topics_prefix: str, database_url: str
) -> None:
    topics = Topics(topics_prefix)
    at = "SELECT FROM consumer_shards WHERE consumer = %s AND position = %s"
    async with relaying(inner, log_watcher, bootstrap=kafka, topics=topics) as name:
        await event(inner, 1)
        await until(lambda: rows(database_url, at, name, 1))
        await asyncio.to_thread(_make_small, kafka, topics.of("event"))
        await event(inner, 2, description="y" * 9000)
        await until(lambda: rows(database_url, at, name, 2))
    assert not rows(database_url, "SELECT FROM parked_records")
    assert sorted(await asyncio.to_thread(positions_in, kafka, topics.of("event"))) == [1, 2]


async def test_a_batch_has_few_records_that_were_too_large(small_topic: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.adapters.kafka.topic_reader.MOST_LEFT_OUT", 1)
    batches = await given(small_topic)
    assert [event.position for batch in batches for event in batch] == [1, 2, 3, 4]
    assert [sum(len(event.state) > 4000 for event in batch) for batch in batches if len(batch[-1].state) > 4000] == [1, 1]


def _small_topic(bootstrap: str, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        topic = NewTopic(name, num_partitions=PARTITIONS, replication_factor=1, topic_configs=SMALL)
        admin.create_topics([topic], wait_for_metadata=True)
    finally:
        admin.close()


def _make_small(bootstrap: str, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.alter_configs([ConfigResource("TOPIC", name, SMALL)])
    finally:
        admin.close()


@pytest.mark.parametrize(
    ("fault", "meaning"),
    [
        (errors.KafkaTimeoutError("late"), Unavailable),
        (errors.NotEnoughReplicasError(), Unavailable),
        (errors.MessageSizeTooLargeError(), RecordRefused),
        (errors.TopicAuthorizationFailedError(), OperatorNeeded),
        (errors.SaslAuthenticationFailedError("who?"), OperatorNeeded),
        (errors.InvalidReplicationFactorError(), OperatorNeeded),
        (errors.PolicyViolationError(), OperatorNeeded),
    ],
)
def test_errors_of_kafka_are_tried_again_stop_the_relay_or_park_a_record(
    fault: errors.KafkaError, meaning: type[Exception]
) -> None:
    with pytest.raises(Exception, match=type(fault).__name__) as raised, translate_errors():
        raise fault
    assert type(raised.value) is meaning


async def test_a_wave_has_no_more_for_a_partition_than_one_batch(inner: Core) -> None:
    await event(inner, 1)
    (template,) = await read(inner.database, 0)
    large = LoggedEvent(
        1, template.stream, 1, template.topic, template.event_id, b"x" * 300_000, template.metadata, template.recorded_at
    )
    other = LoggedEvent(
        1, f"event:{UUID(int=2)}", 1, template.topic, template.event_id, b"x", template.metadata, template.recorded_at
    )

    def place(event: LoggedEvent) -> TopicPartition:
        return TopicPartition("event", UUID(event.key).int)

    def sizes(events: Sequence[LoggedEvent], largest: int) -> list[int]:
        return [len(wave) for wave in waves(events, place=place, largest={"event": largest})]

    assert sizes([large, large, other, large, other], 8_000_000) == [3, 1, 1]
    assert sizes([template] * 50, 8_000_000) == [50]
    assert sizes([template] * 3, 2_000) == [1, 1, 1]
