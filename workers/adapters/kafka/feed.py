"""The feed that reads Kafka. The relay's own checkpoint says how much of the log the topics hold, so records of all partitions can
be put back into the order of the log: nothing is given before everything that lies before it has been read.

Partitions are assigned by our own leases, not by a consumer group: the checkpoint and its fencing are in PostgreSQL anyway.
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
from projections.consumers.shares import shard_of
from projections.kernel.database import Database
from projections.log import tail
from projections.log.tail import LoggedEvent
from workers.adapters.kafka import cloud_event
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.topics import LARGEST, Topics, bounds
from workers.kernel.feed import LIMIT, Batch
from workers.kernel.log_feed import LogFeed
from workers.relay import relay_name

_log = logging.getLogger(__name__)
_IDLE = 0.2
_SOON = 0.002


class KafkaFeed:
    """`past` reads from the log what the topics no longer hold."""

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
        self._reading: _Reading | None = None
        self._relay = ""

    async def fetch(self, after: Mapping[int, int]) -> Batch:
        try:
            reading = self._reading
            if reading is None or not reading.goes_on(after):
                return await self._seat(after)
            await self._in_thread(reading.poll)
            relayed = await self._relayed()
            through = await self._in_thread(reading.through, relayed)
            return Batch(reading.taken(through), through)
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

    async def _seat(self, after: Mapping[int, int]) -> Batch:
        """Find the place in the topics. What they no longer hold comes from the log, a page at a time, until they do."""
        await self.close()
        self._relay = relay_name(await cluster_id(self._bootstrap))
        start, relayed = min(after.values()), await self._relayed()
        moment = await self._moment(start)
        make = partial(_Reading, self._bootstrap, self._partitions(after), after=after, shards=self._shards)
        reading = await self._in_thread(make)
        try:
            held = await self._in_thread(reading.seat, moment)
        except BaseException:
            await self._in_thread(reading.close)
            raise
        if held or start >= relayed:
            self._reading = reading
            return Batch((), start)
        await self._in_thread(reading.close)
        return await self._past.fetch(after)

    def _partitions(self, after: Mapping[int, int]) -> list[TopicPartition]:
        numbers = self._topics.partitions(after.keys(), of=self._shards)
        return [TopicPartition(self._topics.of(kind), number) for kind in sorted(self._kinds) for number in numbers]

    async def _relayed(self) -> int:
        """Up to where the relay has filled the topics."""
        found = await self._database.row("SELECT position FROM consumer_shards WHERE consumer = %s", (self._relay,))
        return int(found[0]) if found else 0

    async def _moment(self, position: int) -> int:
        """When the event at this position was recorded, in milliseconds; all records behind it are not older."""
        found = await tail.at(self._database, [position]) if position else ()
        return cloud_event.milliseconds(found[0].recorded_at) if found else 0

    async def _in_thread(self, act: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, act, *arguments)


class _Reading:
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
        """Asks only for the ends of partitions. A broker answers one connection in the order of its questions, so on that of the
        other this one would wait until there is something to read."""

    def goes_on(self, after: Mapping[int, int]) -> bool:
        """Whether the caller stands where we do: it has taken what it was given, for the same shards."""
        return after.keys() == self._after.keys() and all(max(self._after[s], self._through) == p for s, p in after.items())

    def seat(self, moment: int) -> bool:
        """Stand before the first record that is not older than `moment`; whether the topics still hold all from there on."""
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
        """Read on; waits a moment when there is nothing."""
        wait = _SOON if self._waiting else _IDLE
        for partition, records in self._consumer.poll(timeout_ms=int(wait * 1000)).items():
            for record in records:
                try:
                    event, after = cloud_event.logged(record.headers, record.value)
                except (KeyError, ValueError) as fault:
                    _log.warning("%s holds a record that is none of ours at %d: %s", partition.topic, record.offset, fault)
                else:
                    self._complete[partition] = max(self._complete[partition], after)
                    self._keep(event)

    def _keep(self, event: LoggedEvent) -> None:
        """Until all that lies before it has been read. What the relay sent twice is kept once."""
        if event.position > self._through and event.position not in self._waiting:
            self._waiting[event.position] = event
            heapq.heappush(self._order, event.position)

    def through(self, relayed: int) -> int:
        """Up to where everything has been read, when the topics hold all up to `relayed`: of a partition that is read to its end,
        that; of another one, all before the page that its last record belongs to."""
        ends = self._ends.end_offsets(self._partitions)
        behind = [p for p in self._partitions if self._consumer.position(p) < ends[p]]
        through = min((self._complete[p] for p in behind), default=relayed)
        return max(self._through, min(through, relayed))

    def taken(self, through: int) -> list[LoggedEvent]:
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
