"""Topics at a broker: their creation, and their measures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, NewTopic
from kafka.errors import AuthorizationError, TopicAlreadyExistsError

from domain.kernel.errors import Unavailable
from projections.kernel.background_task import OperatorNeeded
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.topics import LARGEST, PARTITIONS

_LARGEST_BATCH: Final = "max.message.bytes"
_BROKERS_DEFAULT: Final = 1_048_576


def bounds(
    consumer: KafkaConsumer, partitions: Sequence[TopicPartition]
) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
    """Return the first offset of each partition, and the offset after its last one. Raises `Unavailable` for a topic that is not
    ready yet."""
    try:
        return consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    except KeyError as missing:
        raise Unavailable(f"Kafka does not know {missing.args[0].topic} yet") from None


def largest(admin: KafkaAdminClient, names: Collection[str]) -> dict[str, int]:
    """Return the size limit of a batch of each topic, in bytes."""
    resources = [ConfigResource("TOPIC", name, [_LARGEST_BATCH]) for name in names]
    try:
        configurations = admin.describe_configs(resources, config_filter="all").get("topic", {})
    except AuthorizationError:
        configurations = {}  # the relay works without this permission
    return {name: int(configurations.get(name, {}).get(_LARGEST_BATCH, {}).get("value") or _BROKERS_DEFAULT) for name in names}


def absent(admin: KafkaAdminClient, names: Collection[str]) -> list[str]:
    """Return the topics that do not exist."""
    return sorted(set(names) - set(admin.list_topics()))


def _check_partitions(admin: KafkaAdminClient, names: Sequence[str]) -> None:
    topics = admin.describe_topics(names) if names else ()
    wrong = {topic["name"]: len(topic["partitions"]) for topic in topics if len(topic["partitions"]) < PARTITIONS}
    if wrong:
        counts = ", ".join(f"{name} with {count}" for name, count in wrong.items())
        raise OperatorNeeded(
            f"topics of Kafka need {PARTITIONS} partitions, but another program made {counts}; delete them: the relay creates them"
        )


def create(admin: KafkaAdminClient, names: Collection[str], *, connection: KafkaConnection) -> None:
    """Create the topics that do not exist. Raises `OperatorNeeded` for topics that were created with fewer partitions."""
    missing = absent(admin, names)
    _check_partitions(admin, sorted(set(names) - set(missing)))
    configuration = {_LARGEST_BATCH: str(LARGEST), "cleanup.policy": "delete"}
    if connection.min_in_sync_replicas is not None:
        configuration["min.insync.replicas"] = str(connection.min_in_sync_replicas)
    factor = connection.replication_factor or -1
    new = [NewTopic(name, num_partitions=PARTITIONS, replication_factor=factor, topic_configs=configuration) for name in missing]
    if new:
        try:
            admin.create_topics(new, wait_for_metadata=True)
        except TopicAlreadyExistsError as fault:
            raise Unavailable("another process is creating the topics") from fault
