"""Records that the topics contain already. They are read back before anything is sent, so that none is sent twice or left out."""

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


class TopicPositions:
    """The positions of the records of each partition. They are looked up in their order. From the first missing position on, all
    positions count as missing, so that a record is always sent after the ones before it."""

    def __init__(self) -> None:
        self._positions: defaultdict[Hashable, array[int]] = defaultdict(lambda: array("q"))
        self._unsorted: set[Hashable] = set()

    def add(self, partition: Hashable, position: int) -> None:
        """Add a position. A partition may contain a thousand million records. They are in order, except for a few that were sent
        again: sorting then takes several times their memory."""
        positions = self._positions[partition]
        if positions and position < positions[-1]:
            self._unsorted.add(partition)
        positions.append(position)

    def holds(self, partition: Hashable, position: int) -> bool:
        positions = self._positions.get(partition)
        if not positions:
            return False
        if partition in self._unsorted:
            self._positions[partition] = positions = array("q", sorted(positions))
            self._unsorted.remove(partition)
        at = bisect_left(positions, position)
        if at < len(positions) and positions[at] == position:
            return True
        del self._positions[partition]
        self._unsorted.discard(partition)
        return False


class ReadBack:
    """A single reading of all partitions, up to the ends that they had at its start. Every method blocks."""

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
        offsets = self._consumer.offsets_for_times(dict.fromkeys(filled, since)) if since and filled else {}
        starts = {p: begins[p] if not since else offsets[p].offset if offsets.get(p) else ends[p] for p in filled}
        self._ends = {partition: ends[partition] for partition in filled if starts[partition] < ends[partition]}
        self._consumer.assign(list(self._ends))
        for partition in self._ends:
            self._consumer.seek(partition, starts[partition])

    def page(self) -> Sequence[BrokerRecord] | None:
        """Return the next records; None after the last one. Records of other products are skipped."""
        if not self._ends:
            return None
        polled = self._consumer.poll(timeout_ms=_WAIT_MS)
        unfinished = {partition: end for partition, end in self._ends.items() if self._consumer.position(partition) < end}
        if not polled and len(unfinished) == len(self._ends):
            raise Unavailable("Kafka does not return the content of its topics")
        for partition in self._ends.keys() - unfinished.keys():
            self._consumer.pause(partition)
        self._ends = unfinished
        page = []
        for partition, records in polled.items():
            for record in records:
                with suppress(KeyError, ValueError):
                    page.append(BrokerRecord(partition, *cloud_event.identity(record.headers)))
        return page

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close(autocommit=False)
