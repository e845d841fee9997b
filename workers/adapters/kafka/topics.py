"""The topics, and the partition of an aggregate. The number of partitions never changes: the order of events depends on it."""

from __future__ import annotations

from dataclasses import dataclass

from projections.consumers.leases import shard_of

PARTITIONS = 8
LARGEST = 8 * 1024 * 1024
"""The size limit of a record in bytes: the largest body that the API accepts, escaped."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of topics and groups. The topic of a kind of aggregate is `<prefix>.<kind>`, the group of a consumer
    `<prefix>.<consumer>`."""

    prefix: str = "medialedger"

    def of(self, kind: str) -> str:
        return f"{self.prefix}.{kind}"

    def group(self, consumer: str) -> str:
        """Return the consumer group whose offsets show the progress of a consumer."""
        return f"{self.prefix}.{consumer}"

    def partition(self, key: str) -> int:
        return shard_of(key, PARTITIONS)
