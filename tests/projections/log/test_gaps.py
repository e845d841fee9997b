"""The gap test: eight processes write, one reads behind them. Whoever has seen position p has seen everything up to p."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from api.core import prepare
from projections.kernel.database import Database
from tests.projections.log.conftest import Figures
from tests.projections.log.helpers import logged, until, whole
from tests.projections.log.writers import writers
from tests.workers.following import followed

APPENDS = 4_000

# The head row is taken out of order: positions are drawn first, as a serial column draws them, and the head row moves last.
_OUT_OF_ORDER = """
CREATE SEQUENCE positions;
CREATE OR REPLACE FUNCTION log_append(ids text[], versions bigint[], topics text[], event_ids uuid[], states bytea[],
    metadatas text[], leaves bytea[], OUT last_position bigint, OUT recorded timestamptz) LANGUAGE plpgsql AS $$
BEGIN
    recorded := clock_timestamp();
    INSERT INTO events
    SELECT nextval('positions'), e.id, e.version, e.topic, e.event_id, e.state, e.metadata::json, recorded, e.leaf
    FROM unnest(ids, versions, topics, event_ids, states, metadatas, leaves)
         AS e(id, version, topic, event_id, state, metadata, leaf);
    last_position := currval('positions');
    UPDATE log_head SET position = greatest(position, last_position), recorded_at = recorded;
END $$
"""


@dataclass
class Reader:
    """Follows the log and remembers what it was given, and each time that it was not the next position."""

    seen: set[int] = field(default_factory=set)
    holes: list[tuple[int, int]] = field(default_factory=list)
    last: int = 0

    async def run(self, url: str) -> None:
        database = Database(url, size=2)
        await database.open()
        try:
            async for page in followed(database, 0, limit=50):
                for entry in page:
                    if entry.position != self.last + 1:
                        self.holes.append((self.last, entry.position))
                    self.last = entry.position
                    self.seen.add(entry.position)
        finally:
            await database.close()


@dataclass
class Found:
    written: int
    acknowledged: int
    skipped: set[int]
    holes: list[tuple[int, int]]


async def gap_test(url: str, directory: Path, *, appends: int = APPENDS) -> Found:
    reader = Reader()
    reading = asyncio.create_task(reader.run(url))
    try:
        with writers(url, directory, count=8) as running:
            await until(lambda: running.total >= appends, seconds=60)
            told = await asyncio.to_thread(running.wind_up)
        positions = {position for position, _, _ in logged(url)}
        await until(lambda: reader.last >= max(positions) or reading.done())
    finally:
        reading.cancel()
        await asyncio.wait({reading})
    assert all(each for each in told), "every writer took part"
    acknowledged = sum(one.events for each in told for one in each)
    return Found(len(positions), acknowledged, positions - reader.seen, reader.holes)


@pytest.fixture
async def scratch(postgres: str) -> AsyncIterator[str]:
    """A database of its own, with the product's schema: what is broken there is broken nowhere else."""
    url = make_conninfo(postgres, dbname="gaps")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE gaps")
    try:
        await prepare(url)
        yield url
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("DROP DATABASE gaps WITH (FORCE)")


async def test_no_event_is_ever_skipped(database_url: str, tmp_path: Path, figures: Figures) -> None:
    found = await gap_test(database_url, tmp_path)
    figures("gap test: events written", found.written)
    assert (found.skipped, found.holes) == (set(), [])
    assert found.written == found.acknowledged == whole(database_url) > APPENDS


async def test_the_gap_test_notices_a_head_row_that_is_taken_out_of_order(scratch: str, tmp_path: Path, figures: Figures) -> None:
    with psycopg.connect(scratch, autocommit=True) as connection:
        connection.execute(_OUT_OF_ORDER)
    found = await gap_test(scratch, tmp_path, appends=1_500)
    figures("gap test, head row out of order: events skipped", len(found.skipped))
    assert found.holes
    assert found.skipped
