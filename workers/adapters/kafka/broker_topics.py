"""Topics as a broker has them: made, and measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError

from domain.kernel.errors import Unavailable
from workers.adapters.kafka.topics import LARGEST, PARTITIONS


def bounds(
    consumer: KafkaConsumer, partitions: Sequence[TopicPartition]
) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
    """The first offset of each partition, and the one after its last. Raises `Unavailable` for a topic that is not ready yet."""
    try:
        return consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    except KeyError as missing:
        raise Unavailable(f"Kafka does not know {missing.args[0].topic} yet") from None


def create(admin: KafkaAdminClient, names: Collection[str]) -> None:
    """Create the topics that do not exist."""
    missing = set(names) - set(admin.list_topics())
    configuration = {"max.message.bytes": str(LARGEST)}
    for name in sorted(missing):
        try:
            admin.create_topics([NewTopic(name, num_partitions=PARTITIONS, topic_configs=configuration)])
        except TopicAlreadyExistsError:
            continue
