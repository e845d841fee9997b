"""The feed that reads from Kafka, in the order of the log.

The checkpoint of the relay says how much of the log the topics hold. So the records of all partitions can be merged by position:
a record is given only after all earlier ones have been read. Partitions are assigned by leases in PostgreSQL, not by a consumer
group, because the checkpoint and its fencing are in PostgreSQL anyway.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from domain.kernel.errors import Unavailable
from projections.consumers.leases import shard_of
from projections.kernel.database import Database
from projections.log import reader
from projections.log.reader import LoggedEvent
from workers.adapters.kafka import cloud_event
from workers.adapters.kafka.broker_topics import bounds
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.topics import LARGEST, Topics
from workers.kernel.feed import LIMIT, Batch
from workers.kernel.log_feed import LogFeed
from workers.relay import relay_name

_log = logging.getLogger(__name__)
_IDLE = 0.2
_SOON = 0.002


class KafkaFeed:
    """Reads from Kafka. `past` reads from the log what the topics no longer hold."""

    def __init__(
        self, bootstrap: str, topics: Topics, *, database: Database, past: LogFeed, kinds: Collection[str], shards: int = 1
    ) -> None:
        self._bootstrap = bootstrap
        self._topics = topics
        self._database = database
        self._past = past
        self._kinds = kinds
        self._shards = shards
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka feed")
        self._reading: _TopicReader | None = None
        self._relay = ""

    async def fetch(self, after: Mapping[int, int]) -> Batch:
        try:
            reading = self._reading
            if reading is None or not reading.continues(after):
                return await self._seek(after)
            await self._in_thread(reading.poll)
            relayed = await self._relayed()
            through = await self._in_thread(reading.through, relayed)
            return Batch(reading.take(through), through)
        except KafkaError as fault:
            await self.close()
            raise Unavailable(f"Kafka does not answer: {type(fault).__name__}") from fault
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            await self._in_thread(reading.close)

    async def _seek(self, after: Mapping[int, int]) -> Batch:
        """Find the position in the topics. Pages that they no longer hold are read from the log."""
        await self.close()
        self._relay = relay_name(await cluster_id(self._bootstrap))
        start, relayed = min(after.values()), await self._relayed()
        moment = await self._moment(start)
        make = partial(_TopicReader, self._bootstrap, self._partitions(after), after=after, shards=self._shards)
        reading = await self._in_thread(make)
        try:
            complete = await self._in_thread(reading.seek, moment)
        except BaseException:
            await self._in_thread(reading.close)
            raise
        if complete or start >= relayed:
            self._reading = reading
            return Batch((), start)
        await self._in_thread(reading.close)
        return await self._past.fetch(after)

    def _partitions(self, after: Mapping[int, int]) -> list[TopicPartition]:
        numbers = self._topics.partitions(after.keys(), of=self._shards)
        return [TopicPartition(self._topics.of(kind), number) for kind in sorted(self._kinds) for number in numbers]

    async def _relayed(self) -> int:
        """The position up to which the relay has filled the topics."""
        row = await self._database.row("SELECT position FROM consumer_shards WHERE consumer = %s", (self._relay,))
        return int(row[0]) if row else 0

    async def _moment(self, position: int) -> int:
        """When the event at this position was recorded, in milliseconds; no later record is older."""
        events = await reader.at(self._database, [position]) if position else ()
        return cloud_event.milliseconds(events[0].recorded_at) if events else 0

    async def _in_thread(self, act: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, act, *arguments)


class _TopicReader:
    """One assignment, as long as it lasts. Every method runs in the feed's thread, except `goes_on` and `taken`, between them."""

    def __init__(self, bootstrap: str, partitions: list[TopicPartition], *, after: Mapping[int, int], shards: int) -> None:
        self._partitions = partitions
        self._after = dict(after)
        self._shards = shards
        self._through = min(after.values())
        self._complete = dict.fromkeys(partitions, self._through)
        self._order: list[int] = []
        self._waiting: dict[int, LoggedEvent] = {}
        self._consumer = _consumer(
            bootstrap,
            max_poll_records=2 * LIMIT,
            fetch_max_wait_ms=int(_IDLE * 1000),
            max_partition_fetch_bytes=256 * 1024,  # partitions are read in turns: this is how far one may be ahead
            fetch_max_bytes=4 * LARGEST,
        )
        self._ends = _consumer(bootstrap)
        """Requests only the ends of partitions. A broker answers the requests of a connection in order, so on the connection of the
        other consumer it would wait until there is something to read."""

    def continues(self, after: Mapping[int, int]) -> bool:
        """Whether the caller has processed everything that it was given, and has the same shards."""
        return after.keys() == self._after.keys() and all(max(self._after[s], self._through) == p for s, p in after.items())

    def seek(self, moment: int) -> bool:
        """Go to the first record that is not older than `moment`. Returns whether the topics still hold all records from there."""
        missing = {partition.topic for partition in self._partitions} - self._consumer.topics()
        if missing:
            raise Unavailable(f"Kafka does not hold {', '.join(sorted(missing))} yet; the relay makes it")
        self._consumer.assign(self._partitions)
        begins, ends = bounds(self._consumer, self._partitions)
        if moment:
            found = self._consumer.offsets_for_times(dict.fromkeys(self._partitions, moment))
            starts = {p: found[p].offset if found.get(p) is not None else ends[p] for p in self._partitions}
        else:
            starts = dict(begins)
        for partition, offset in starts.items():
            self._consumer.seek(partition, offset)
        return all(begins[p] == 0 or starts[p] > begins[p] for p in self._partitions)

    def poll(self) -> None:
        """Read more records; waits a moment if there are none."""
        wait = _SOON if self._waiting else _IDLE
        for partition, records in self._consumer.poll(timeout_ms=int(wait * 1000)).items():
            for record in records:
                try:
                    event, after = cloud_event.logged(record.headers, record.value)
                except (KeyError, ValueError) as fault:
                    _log.warning("%s holds a record of another product at %d: %s", partition.topic, record.offset, fault)
                else:
                    self._complete[partition] = max(self._complete[partition], after)
                    self._keep(event)

    def _keep(self, event: LoggedEvent) -> None:
        """Keep a record until all earlier ones have been read; one that the relay sent twice is kept once."""
        if event.position > self._through and event.position not in self._waiting:
            self._waiting[event.position] = event
            heapq.heappush(self._order, event.position)

    def through(self, relayed: int) -> int:
        """The position up to which everything has been read, if the topics hold the log up to `relayed`. A partition that is read
        to its end counts up to there, another one up to the page of its last record."""
        ends = self._ends.end_offsets(self._partitions)
        unfinished = [p for p in self._partitions if self._consumer.position(p) < ends[p]]
        through = min((self._complete[p] for p in unfinished), default=relayed)
        return max(self._through, min(through, relayed))

    def take(self, through: int) -> list[LoggedEvent]:
        """The records up to `through`, by position."""
        records: list[LoggedEvent] = []
        while self._order and self._order[0] <= through:
            record = self._waiting.pop(heapq.heappop(self._order))
            if record.position > self._after[shard_of(record.key, self._shards)]:
                records.append(record)
        self._through = through
        return records

    def close(self) -> None:
        self._consumer.close(autocommit=False)
        self._ends.close(autocommit=False)


def _consumer(bootstrap: str, **more: Any) -> Any:
    return KafkaConsumer(
        bootstrap_servers=bootstrap.split(","),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        request_timeout_ms=10_000,
        reconnect_backoff_max_ms=1000,
        bootstrap_timeout_ms=5000,
        **more,
    )
