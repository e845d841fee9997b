"""Searches for a marked secret where the product might leave it: process lists, logs, tables of the database, records of Kafka."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg
from kafka import KafkaConsumer, TopicPartition
from psycopg import sql

_EACH: Final = 0.2
_TABLES: Final = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace = 'public'::regnamespace"


@asynccontextmanager
async def watched_processes(mark: str, places: Counter[str]) -> AsyncIterator[None]:
    """Search the arguments and environments of all processes of this machine, five times a second."""

    async def watch() -> None:
        while True:
            places.update(await asyncio.to_thread(_in_processes, mark.encode()))
            await asyncio.sleep(_EACH)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _in_processes(mark: bytes) -> list[str]:
    places = []
    for place in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ") if place.name != str(os.getpid()) else ():
            with suppress(OSError):
                if mark in (place / name).read_bytes():
                    places.append(f"{name} of a process")
    return places


def in_files(mark: str, files: Iterable[Path]) -> Counter[str]:
    return Counter(path.name for path in files if mark.encode() in path.read_bytes())


def in_tables(mark: str, database: str) -> Counter[str]:
    """Count the rows with the mark by table, in texts, documents and bytes."""
    counts = Counter[str]()
    with psycopg.connect(database, autocommit=True) as connection:
        for (table,) in connection.execute(_TABLES).fetchall():
            like = "SELECT count(*) FROM {} AS r WHERE strpos(r::text, %s) > 0 OR strpos(r::text, %s) > 0"
            row = connection.execute(sql.SQL(like).format(sql.Identifier(table)), (mark, mark.encode().hex())).fetchone()
            assert row is not None
            counts[f"table {table}"] += row[0]
    return +counts


def in_kafka(mark: str, bootstrap: str) -> tuple[int, Counter[str]]:
    """Return the number of records, and the topics of those with the mark in key, value or headers."""
    read, topics = 0, Counter[str]()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    try:
        partitions = [
            TopicPartition(topic, each) for topic in consumer.topics() for each in consumer.partitions_for_topic(topic) or ()
        ]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for records in consumer.poll(timeout_ms=500).values():
                for record in records:
                    read += 1
                    parts = (record.key, record.value, *(value for _, value in record.headers))
                    if any(mark.encode() in part for part in parts if part is not None):
                        topics[f"topic {record.topic}"] += 1
    finally:
        consumer.close()
    return read, topics
