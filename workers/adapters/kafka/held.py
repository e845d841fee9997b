"""What the topics hold already: read back before anything is sent, so that nothing is sent twice and nothing is left out."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition

from domain.kernel.errors import Unavailable
from workers.adapters.kafka import cloud_event
from workers.adapters.kafka.broker_topics import bounds
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.topics import PARTITIONS
from workers.relay import BrokerRecord

_PAGE: Final = 2000
_WAIT_MS: Final = 5000


class HeldPositions:
    """The positions of a partition's records. They are met in their order; from the first that is missing on all are missing, so
    that what is sent comes after what it follows."""

    def __init__(self) -> None:
        self._found: defaultdict[Hashable, array[int]] = defaultdict(lambda: array("q"))
        self._unsorted: set[Hashable] = set()

    def add(self, partition: Hashable, position: int) -> None:
        """A partition may hold a thousand million records. They lie there in order, but for some that were sent again: then sorting
        takes several times their memory."""
        found = self._found[partition]
        if found and position < found[-1]:
            self._unsorted.add(partition)
        found.append(position)

    def holds(self, partition: Hashable, position: int) -> bool:
        found = self._found.get(partition)
        if not found:
            return False
        if partition in self._unsorted:
            self._found[partition] = found = array("q", sorted(found))
            self._unsorted.remove(partition)
        at = bisect_left(found, position)
        if at < len(found) and found[at] == position:
            return True
        del self._found[partition]
        self._unsorted.discard(partition)
        return False


class ReadBack:
    """One reading of all partitions, to the ends that they had at its start. Every method blocks."""

    def __init__(self, connection: KafkaConnection, topics: Collection[str]) -> None:
        self._connection = connection
        self._partitions = [TopicPartition(name, number) for name in topics for number in range(PARTITIONS)]
        self._consumer: Any = None
        self._ends: dict[TopicPartition, int] = {}

    def start(self, since: int) -> None:
        self._consumer = KafkaConsumer(
            **self._connection.arguments,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            request_timeout_ms=2 * _WAIT_MS,
            max_poll_records=_PAGE,
        )
        begins, ends = bounds(self._consumer, self._partitions)
        filled = [partition for partition in self._partitions if ends[partition] > begins[partition]]
        found = self._consumer.offsets_for_times(dict.fromkeys(filled, since)) if since and filled else {}
        starts = {p: begins[p] if not since else found[p].offset if found.get(p) else ends[p] for p in filled}
        self._ends = {partition: ends[partition] for partition in filled if starts[partition] < ends[partition]}
        self._consumer.assign(list(self._ends))
        for partition in self._ends:
            self._consumer.seek(partition, starts[partition])

    def page(self) -> Sequence[BrokerRecord] | None:
        """The next records; None after the last one. Records of other products are left out."""
        if not self._ends:
            return None
        polled = self._consumer.poll(timeout_ms=_WAIT_MS)
        left = {partition: end for partition, end in self._ends.items() if self._consumer.position(partition) < end}
        if not polled and len(left) == len(self._ends):
            raise Unavailable("Kafka does not give back what its topics hold")
        for partition in self._ends.keys() - left.keys():
            self._consumer.pause(partition)
        self._ends = left
        page = []
        for partition, records in polled.items():
            for record in records:
                with suppress(KeyError, ValueError):
                    page.append(BrokerRecord(partition, *cloud_event.identity(record.headers)))
        return page

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close(autocommit=False)
