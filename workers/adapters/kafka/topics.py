"""Which topics there are, and in which partition an aggregate lies. The number of partitions never changes: order rests on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError

from domain.kernel.errors import Unavailable
from projections.consumers.shares import shard_of

PARTITIONS = 8
LARGEST = 8 * 1024 * 1024
"""Bytes of one record: the largest body that the API takes, escaped."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topic of an aggregate kind is `<prefix>.<kind>`."""

    prefix: str = "medialedger"

    def of(self, kind: str) -> str:
        return f"{self.prefix}.{kind}"

    def partition(self, key: str) -> int:
        return shard_of(key, PARTITIONS)

    def partitions(self, shards: Collection[int], *, of: int) -> Sequence[int]:
        """The partitions that hold these shards of a consumer that has `of` of them, which divides their number."""
        if PARTITIONS % of:
            raise ValueError(f"a consumer of Kafka has 1, 2, 4 or {PARTITIONS} shards, not {of}")
        return [partition for partition in range(PARTITIONS) if partition % of in shards]


def bounds(
    consumer: KafkaConsumer, partitions: Sequence[TopicPartition]
) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
    """The first offset of each partition, and the one behind its last. Raises `Unavailable` for a topic that was made just now."""
    try:
        return consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    except KeyError as missing:
        raise Unavailable(f"Kafka does not know {missing.args[0].topic} yet") from None


def create(admin: KafkaAdminClient, names: Collection[str]) -> None:
    """Make those topics that are not there."""
    missing = set(names) - set(admin.list_topics())
    configuration = {"max.message.bytes": str(LARGEST)}
    for name in sorted(missing):
        try:
            admin.create_topics([NewTopic(name, num_partitions=PARTITIONS, topic_configs=configuration)])
        except TopicAlreadyExistsError:
            continue
