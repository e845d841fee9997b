"""The gap test: eight processes write, one reads behind them. Whoever has seen position p has seen everything up to p."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from projections.kernel.database.database import Database
from projections.log.append import send_events
from projections.log.statement import WriteSet, statement
from tests.projections.log.conftest import Figures
from tests.projections.log.helpers import event, logged, rows, until, whole
from tests.projections.log.writers import writers
from tests.support.postgres import new_database
from tests.workers.following import followed

FEW, MANY = 1_500, 20_000
"""Appends."""

# The log is locked out of order: positions are drawn first, as a serial column draws them, and the commit is written last.
# Between the two an append may be overtaken. One of topic `test.held` waits there for as long as the test holds the lock.
_OUT_OF_ORDER = """
SELECT log_partitions_ahead(1000000, 1000000);
CREATE SEQUENCE positions;
CREATE OR REPLACE FUNCTION log_append(batch appended_event[], root bytea, OUT last_position bigint, OUT ahead float8)
LANGUAGE plpgsql AS $$
DECLARE
    recorded timestamptz := clock_timestamp();
BEGIN
    ahead := 0;
    WITH inserted AS (
        INSERT INTO events
        SELECT nextval('positions'), e.stream, e.version, e.topic, e.event_id, e.state, e.metadata::json, recorded, e.salt
        FROM unnest(batch) AS e
        RETURNING *
    )
    INSERT INTO stream_versions SELECT stream_key(originator_id), originator_version, position FROM inserted;
    IF batch[1].topic = 'test.held' THEN
        PERFORM pg_advisory_xact_lock(1);
    END IF;
    last_position := currval('positions');
    INSERT INTO commits VALUES (last_position, last_position, last_position, recorded, root, root);
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
class GapTest:
    written: int
    acknowledged: int
    skipped: set[int]
    holes: list[tuple[int, int]]


async def gap_test(url: str, directory: Path, *, appends: int, last: Callable[[], Awaitable[None]] | None = None) -> GapTest:
    """`last` is done when the reader has read something, before the writers end."""
    reader = Reader()
    reading = asyncio.create_task(reader.run(url))
    try:
        with writers(url, directory, count=8) as running:
            await until(lambda: running.total >= appends and running.all_wrote, seconds=120)
            if last is not None:
                await until(lambda: reader.last)
                await last()
            reports = await asyncio.to_thread(running.wind_up)
        positions = {position for position, _, _ in logged(url)}
        await until(lambda: reader.last >= max(positions) or reading.done())
    finally:
        reading.cancel()
        await asyncio.wait({reading})
    assert all(each for each in reports), "every writer took part"
    acknowledged = sum(append.events for each in reports for append in each)
    return GapTest(len(positions), acknowledged, positions - reader.seen, reader.holes)


@pytest.fixture
def scratch(postgres: str, migrated_template: str) -> Iterator[str]:
    """A database of its own, with the product's schema: what is broken there is broken nowhere else."""
    with new_database(postgres, "gaps", template=migrated_template) as url:
        yield url


async def test_no_event_is_ever_skipped(database_url: str, tmp_path: Path, figures: Figures, thorough: bool) -> None:
    appends = MANY if thorough else FEW
    outcome = await gap_test(database_url, tmp_path, appends=appends)
    figures("gap test: events written", outcome.written)
    assert (outcome.skipped, outcome.holes) == (set(), [])
    assert outcome.written == outcome.acknowledged == whole(database_url) > appends


@asynccontextmanager
async def overtaken(url: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """An append that has drawn the first position and does not go on before it is told to."""
    database = Database(url)
    text, parameters = statement([WriteSet([event("late:1", topic="test.held")])])
    async with await database.connect("lock") as lock, await database.connect("late") as late:
        await send_events(late)
        await lock.execute("SELECT pg_advisory_lock(1)")
        appending = asyncio.create_task(late.execute(text, parameters, binary=True))
        await until(lambda: rows(url, "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))

        async def resume() -> None:
            await lock.execute("SELECT pg_advisory_unlock(1)")
            await appending

        yield resume


@pytest.mark.long
async def test_the_gap_test_notices_a_log_that_is_locked_out_of_order(scratch: str, tmp_path: Path, figures: Figures) -> None:
    with psycopg.connect(scratch, autocommit=True) as connection:
        connection.execute(_OUT_OF_ORDER)
    async with overtaken(scratch) as resume:
        outcome = await gap_test(scratch, tmp_path, appends=200, last=resume)
    figures("gap test, lock out of order: events skipped", len(outcome.skipped))
    assert outcome.holes[0][0] == 0
    assert 1 in outcome.skipped
