"""Following the log: the relay that fills Kafka, and a consumer that reads from the log or from Kafka."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import uvloop

from api.wiring.catalogue import AGGREGATES, RELAYED, catalogue, notified
from bench import schedule
from bench.fill import fill
from bench.ground import Ground, in_turns
from bench.report import Result, Table, Target, middle
from deploy.kafka.broker import Broker
from domain.kernel.ids import new_id
from domain.kernel.mapper import EventMapper
from projections.consumers.leases import ShardLeases
from projections.kernel.database.database import Database
from projections.log.log_watcher import LogWatcher
from projections.log.reader import head
from projections.log.streams import Streams
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.feed import KafkaFeed
from workers.adapters.kafka.relay import KafkaRelay
from workers.adapters.kafka.topics import Topics
from workers.kernel.consumer import Consumer
from workers.kernel.feed import LIMIT, Batch, Feed
from workers.kernel.log_feed import LogFeed
from workers.kernel.log_reader import LogReader
from workers.kernel.worker import Worker
from workers.relay import relay_name
from workers.webhook.fanout import NotificationFanout

_EVENTS = 10_000
_serials = count(1)
_RELAYED = "bench"


@dataclass(frozen=True, slots=True)
class _Followed:
    """A log of whole lives, ten domain events each, with a webhook on one Event in a hundred; and a broker."""

    url: str
    kafka: str


def feeds(ground: Ground) -> Result:
    """(i) Relay to Kafka, and the `webhooks` consumer over the log and over Kafka, 100 000 domain events."""
    broker = Broker(Path(ground.home) / "kafka")
    try:
        url = ground.database("bench_feeds")
        fill(url, "webhooks", total=_EVENTS // schedule.WATCHED, processes=1)
        fill(url, "lives", total=_EVENTS)
        followed = _Followed(url, broker.start())
        uvloop.run(_relay(followed, _RELAYED))
        cells: dict[str, Callable[[], tuple[float, ...]]] = {
            "relay, log to Kafka": lambda: uvloop.run(_relay(followed, f"bench{next(_serials)}")),
            "consumer from the log": lambda: uvloop.run(consume(followed.url)),
            "consumer from Kafka": lambda: uvloop.run(consume(followed.url, kafka=followed.kafka)),
        }
        ground.settle()
        seen = in_turns(cells, rounds=3)
    finally:
        broker.stop()
    table = Table("(i) Following a log of 100 000 domain events", ("", "records/s", "seconds"))
    rates = {name: middle([records / took for records, took, *_ in rounds]) for name, rounds in seen.items()}
    for name, rounds in seen.items():
        table.add(name, rates[name], middle([took for _, took, *_ in rounds]))
    targets = zip(rates.items(), (8_000, 20_000, 8_000), strict=True)
    return Result("feeds", [table], [Target(name, rate, least, "records/s") for (name, rate), least in targets], raw=dict(seen))


async def _relay(followed: _Followed, prefix: str) -> tuple[int, float]:
    """Run the relay; return the number of records and the seconds, which include the creation of the topics. With its own prefix
    Kafka is empty, so the checkpoint is reset."""
    async with _stand(followed.url) as (database, log_watcher):
        name = relay_name(await cluster_id(KafkaConnection(followed.kafka)))
        await database.execute("DELETE FROM consumer_shards WHERE consumer = %s", (name,))
        log = LogReader(database, log_watcher, source=lambda: LogFeed(database, log_watcher, kinds=None))
        relay = KafkaRelay(
            database,
            log,
            leases=partial(ShardLeases, database, shards=1, member=new_id()),
            connection=KafkaConnection(followed.kafka),
            topics=Topics(prefix),
            kinds=RELAYED,
            existing_kinds=frozenset(kind.KIND for kind in AGGREGATES),
        )
        await log.start()
        try:
            return await _timed(database, name, worker=relay)
        finally:
            await log.stop()


@dataclass(slots=True)
class _Direct:
    """A feed that a consumer reads itself, also while it catches up."""

    source: Feed
    reads_log_since: float | None = None
    passed: int = 0

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        return await self.source.fetch(after, limit=limit)

    async def close(self) -> None:
        await self.source.close()

    def restart(self, head: int) -> None:
        """Do nothing: the log loses nothing here."""

    def interrupt(self) -> None:
        """Do nothing: it waits for a moment only."""


async def consume(url: str, *, kafka: str | None = None, after: int = 0) -> tuple[int, float, float]:
    """Follow the log after a position with the fan-out of notifications. Return the number of records, the seconds, and how many
    of these the reading of the webhooks takes."""
    async with _stand(url) as (database, log_watcher):
        mapper = EventMapper(catalogue())
        handler = NotificationFanout(database, Streams(database, mapper), mapper=mapper, notified=notified(), wake=lambda _: None)
        log = LogFeed(database, log_watcher, kinds=handler.topics)
        feed: Feed = log
        if kafka is not None:
            feed = KafkaFeed(KafkaConnection(kafka), Topics(_RELAYED), database=database, past=log, kinds=handler.topics)
        name = f"bench {next(_serials)}"
        leases = ShardLeases(database, name, shards=1, member=new_id())
        consumer = Consumer(database, leases, feed=_Direct(feed), handler=handler)
        await database.execute("TRUNCATE pending_deliveries, finished_deliveries")
        await database.execute("INSERT INTO consumer_shards (consumer, shard, position) VALUES (%s, 0, %s)", (name, after))
        since = time.perf_counter()
        await handler.begin(after)
        start = time.perf_counter() - since
        records, seconds = await _timed(database, name, worker=consumer)
        return records - after, seconds, start


async def _timed(database: Database, name: str, *, worker: Worker) -> tuple[int, float]:
    last, since = await head(database), time.perf_counter()
    await worker.start()
    while True:
        row = await database.row("SELECT position FROM consumer_shards WHERE consumer = %s", (name,))
        if row is not None and row[0] >= last:
            break
        await asyncio.sleep(0.02)
    took = time.perf_counter() - since
    await worker.stop()
    return last, took


@asynccontextmanager
async def _stand(url: str) -> AsyncIterator[tuple[Database, LogWatcher]]:
    async with Database(url) as database:
        log_watcher = LogWatcher(database)
        await log_watcher.start()
        try:
            yield database, log_watcher
        finally:
            await log_watcher.stop()
