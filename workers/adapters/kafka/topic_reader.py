"""Reading of the partitions of topics, for the feed from Kafka. Their records are merged by position."""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from domain.kernel.errors import Unavailable
from projections.consumers.timeline import Timeline
from projections.log.reader import LoggedEvent
from projections.log.transactions import command_id
from workers.adapters.kafka import cloud_event
from workers.adapters.kafka.broker_topics import bounds
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.topics import LARGEST
from workers.kernel.feed import LIMIT, Batch

_log = logging.getLogger(__name__)
_IDLE: Final = 0.2
_SOON: Final = 0.002
HINT_EVERY: Final = 5.0
"""Seconds between two commits of offsets."""
MOST_LEFT_OUT: Final = 8
"""Records of a batch whose states have to be read from the log: each of them is large."""
MOST_WAITING: Final = 64 * 1024 * 1024
"""The limit in bytes for records that wait for earlier ones. Above it, only the partition that the others wait for is read."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    event: LoggedEvent
    partition: TopicPartition
    offset: int


class TopicReader:
    """Reads the topics after one position. Every method runs in the feed's thread, except `continues` and `take`, which run between
    the others."""

    def __init__(self, partitions: list[TopicPartition], *, after: int, timeline: Timeline) -> None:
        self._partitions = partitions
        self._timeline = timeline
        self._through = after
        self._complete = dict.fromkeys(partitions, self._through)
        self._order: list[int] = []
        self._waiting: dict[int, _Waiting] = {}
        self._bytes = 0
        self.most_waiting = MOST_WAITING
        self._groups: Collection[str] = ()
        self.hint_every = HINT_EVERY
        self._hinted = time.monotonic()
        self._consumer: Any = None
        self._connection: KafkaConnection | None = None
        self._admin: Any = None
        """A client that commits offsets for several groups, which none of them has joined."""
        self._ends: Any = None
        """A consumer that requests only the ends of partitions. A broker answers the requests of a connection in order, so on the
        connection of the other consumer this request would wait until there is something to read."""

    def continues(self, after: int) -> bool:
        """Return True if the caller has processed everything that was returned to it."""
        return after == self._through

    def seek(self, connection: KafkaConnection, *, moment: int, groups: Collection[str] = ()) -> bool:
        """Go to the first record that is not older than `moment`. Return True if the topics still contain all later records."""
        self._groups = groups
        self._connection = connection
        self._consumer = _consumer(
            connection,
            group_id=None,
            max_poll_records=2 * LIMIT,
            fetch_max_wait_ms=int(_IDLE * 1000),
            max_partition_fetch_bytes=256 * 1024,  # partitions are read in turns: this is how far one may be ahead
            fetch_max_bytes=4 * LARGEST,
        )
        self._ends = _consumer(connection, group_id=None)
        missing = {partition.topic for partition in self._partitions} - self._consumer.topics()
        if missing:
            raise Unavailable(f"Kafka has no topic {', '.join(sorted(missing))} yet; the relay creates it")
        self._consumer.assign(self._partitions)
        begins, ends = bounds(self._consumer, self._partitions)
        if moment:
            offsets = self._consumer.offsets_for_times(dict.fromkeys(self._partitions, moment))
            starts = {p: offsets[p].offset if offsets.get(p) is not None else ends[p] for p in self._partitions}
        else:
            starts = dict(begins)
        for partition, offset in starts.items():
            self._consumer.seek(partition, offset)
        return all(begins[p] == 0 or starts[p] > begins[p] for p in self._partitions)

    def poll(self) -> None:
        """Read more records; wait a moment if there are none."""
        self._hint()
        self._hold_back()
        wait = _SOON if self._waiting else _IDLE
        for partition, records in self._consumer.poll(timeout_ms=int(wait * 1000)).items():
            for record in records:
                try:
                    position, _, origin = cloud_event.identity(record.headers)
                    event, after = cloud_event.logged_event(record.headers, record.value)
                except (KeyError, ValueError) as fault:
                    _log.warning("%s contains a record of another product at %d: %s", partition.topic, record.offset, fault)
                    continue
                if self._timeline.holds(position, origin):
                    self._complete[partition] = max(self._complete[partition], after)
                    self._keep(_Waiting(event, partition, record.offset))

    def _keep(self, record: _Waiting) -> None:
        """Keep a record until all earlier ones have been read. A record that the relay sent twice is kept once."""
        position = record.event.position
        if position > self._through and position not in self._waiting:
            self._waiting[position] = record
            self._bytes += len(record.event.state)
            heapq.heappush(self._order, position)

    def _hold_back(self) -> None:
        """Read only the partitions that are the furthest behind, while too much waits."""
        if self._bytes <= self.most_waiting:
            if paused := self._consumer.paused():
                self._consumer.resume(*paused)
            return
        unfinished = self._unfinished()
        behind = min((self._complete[p] for p in unfinished), default=0)
        slowest = [p for p in unfinished if self._complete[p] == behind]
        self._consumer.pause(*(p for p in self._partitions if p not in slowest))
        self._consumer.resume(*slowest)

    def _unfinished(self) -> list[TopicPartition]:
        ends = self._ends.end_offsets(self._partitions)
        return [p for p in self._partitions if self._consumer.position(p) < ends[p]]

    def through(self, relayed: int) -> int:
        """Return the position up to which everything has been read, if the topics contain the log up to `relayed`. A partition that
        is read to its end counts up to there, any other partition up to the page of its last record."""
        through = min((self._complete[p] for p in self._unfinished()), default=relayed)
        return max(self._through, min(through, relayed))

    def take(self, through: int, *, limit: int) -> Batch:
        """Return the records up to `through`, by position: about `limit` of them, as whole writes. The states of some may be
        missing."""
        records: list[LoggedEvent] = []
        left_out = 0
        while self._order and self._order[0] <= through:
            event = self._waiting[self._order[0]].event
            if (len(records) >= limit or left_out >= MOST_LEFT_OUT) and command_id(event) != command_id(records[-1]):
                through = records[-1].position
                break
            del self._waiting[heapq.heappop(self._order)]
            self._bytes -= len(event.state)
            records.append(event)
            left_out += not event.state
        self._through = through
        return Batch(records, through)

    def _hint(self) -> None:
        """Commit the offsets of processed records every few seconds. Nothing depends on it."""
        if not self._groups or time.monotonic() - self._hinted < self.hint_every:
            return
        self._hinted = time.monotonic()
        offsets = {partition: self._consumer.position(partition) for partition in self._partitions}
        for record in self._waiting.values():
            offsets[record.partition] = min(offsets[record.partition], record.offset)
        committed = {p: OffsetAndMetadata(offset, "", -1) for p, offset in offsets.items()}
        with suppress(KafkaError):
            if self._admin is None:
                assert self._connection is not None
                self._admin = KafkaAdminClient(**self._connection.arguments)
            for group in self._groups:
                self._admin.alter_group_offsets(group, committed)

    def close(self) -> None:
        for consumer in (self._consumer, self._ends):
            if consumer is not None:
                consumer.close(autocommit=False, timeout_ms=1000)
        if self._admin is not None:
            self._admin.close()


def _consumer(connection: KafkaConnection, **more: Any) -> Any:
    return KafkaConsumer(
        **connection.arguments, enable_auto_commit=False, auto_offset_reset="none", request_timeout_ms=10_000, **more
    )
