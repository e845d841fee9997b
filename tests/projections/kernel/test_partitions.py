"""Tables partitioned by days: an insert never fails, old days are dropped, and nobody waits for a long reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.database.database import APP_ROLE, Database
from projections.kernel.sql.partitions import AHEAD, DayTable, Partition, cover, drop_before, partitions
from tests.projections.log.helpers import rows

Connection = AsyncConnection[TupleRow]
NOW = datetime(2021, 1, 2, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
TODAY = NOW.date()
NOTES = DayTable("day_notes", "note_days")
SCHEMA = """
CREATE SEQUENCE day_note_numbers;
CREATE TABLE day_notes (id bigint DEFAULT nextval('day_note_numbers'), at timestamptz NOT NULL, PRIMARY KEY (id, at))
    PARTITION BY RANGE (at);
CREATE TABLE day_notes_default PARTITION OF day_notes DEFAULT;
CREATE INDEX day_notes_at ON day_notes (at);
"""


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Connection]:
    connection = await Database.of_owner(database_url, size=1).connect("test")
    await connection.execute(SCHEMA.encode())
    yield connection
    await connection.execute("DROP TABLE day_notes")
    await connection.execute("DROP SEQUENCE day_note_numbers")
    await connection.close()


async def note(connection: Connection, *moments: datetime) -> None:
    for moment in moments:
        await connection.execute("INSERT INTO day_notes (at) VALUES (%s)", (moment,))


async def places(connection: Connection) -> list[tuple[str, date]]:
    cursor = await connection.execute("SELECT tableoid::regclass::text, (at AT TIME ZONE 'UTC')::date FROM day_notes ORDER BY at")
    return [(table.removeprefix("day_notes_"), day) for table, day in await cursor.fetchall()]


def single(*days: date) -> list[Partition]:
    return [Partition(day, day + DAY) for day in days]


async def test_there_are_partitions_for_today_and_some_days_after_it(owner: Connection) -> None:
    assert await cover(owner, NOTES, now=NOW, days=30)
    assert await partitions(owner, NOTES) == single(*(TODAY + n * DAY for n in range(AHEAD + 1)))
    assert await cover(owner, NOTES, now=NOW, days=30)
    await cover(owner, NOTES, now=NOW + DAY, days=30)
    assert await partitions(owner, NOTES) == single(*(TODAY + n * DAY for n in range(AHEAD + 2)))


async def test_rows_lie_in_the_partition_of_their_day_and_each_has_the_indexes_of_the_table(owner: Connection) -> None:
    await cover(owner, NOTES, now=NOW, days=30)
    midnight = datetime(2021, 1, 3, tzinfo=UTC)
    await note(owner, midnight - timedelta(microseconds=1), midnight)
    assert await places(owner) == [("20210102_20210103", TODAY), ("20210103_20210104", TODAY + DAY)]
    counted = "SELECT count(*) FROM pg_indexes WHERE tablename = 'day_notes_20210102_20210103'"
    assert await (await owner.execute(counted)).fetchone() == (2,)


async def test_with_many_days_to_keep_a_partition_has_several(owner: Connection) -> None:
    await cover(owner, NOTES, now=NOW, days=365)
    assert await partitions(owner, NOTES) == [Partition(TODAY, TODAY + 12 * DAY)]
    await cover(owner, NOTES, now=NOW + 20 * DAY, days=30)
    assert (await partitions(owner, NOTES))[1] == Partition(TODAY + 20 * DAY, TODAY + 21 * DAY)


@pytest.mark.parametrize("leap", [timedelta(days=31), timedelta(days=4), timedelta(days=-31)])
async def test_an_insert_does_not_fail_where_a_partition_is_missing(owner: Connection, leap: timedelta) -> None:
    """The process slept over midnight for days, or a clock leapt by a month."""
    await cover(owner, NOTES, now=NOW, days=30)
    await note(owner, NOW + leap)
    assert [place for place, _ in await places(owner)] == ["default"]
    assert await cover(owner, NOTES, now=NOW + leap, days=30)
    day = (NOW + leap).date()
    made = await partitions(owner, NOTES)
    assert Partition(day, day + DAY) not in made  # its rows are in the default partition, and stay there
    assert {*single(*(day + n * DAY for n in range(1, AHEAD + 1)))} <= {*made}
    await note(owner, NOW + leap + DAY)
    assert [place for place, _ in await places(owner)][1:] != ["default"]


async def test_old_days_are_dropped_and_old_rows_of_the_default_partition_deleted(owner: Connection) -> None:
    early = NOW - 40 * DAY
    await note(owner, early)
    for days in range(40, -1, -1):
        await cover(owner, NOTES, now=NOW - days * DAY, days=30, ahead=0)
        await note(owner, NOW - days * DAY)
    assert await drop_before(owner, NOTES, before=NOW - 30 * DAY)
    assert [day for _, day in await places(owner)] == [TODAY - n * DAY for n in range(30, -1, -1)]
    assert len(await partitions(owner, NOTES)) == 31


async def test_two_that_make_and_drop_at_once_do_each_thing_once(owner: Connection, database_url: str) -> None:
    async with await Database.of_owner(database_url, size=1).connect("other") as other:
        for day in range(0, 60, 3):
            now = NOW + day * DAY
            await asyncio.gather(*(cover(connection, NOTES, now=now, days=30) for connection in (owner, other)))
            await asyncio.gather(*(drop_before(connection, NOTES, before=now - 2 * DAY) for connection in (owner, other)))
    last = (NOW + 57 * DAY).date()
    assert await partitions(owner, NOTES) == single(*(last + n * DAY for n in range(-2, AHEAD + 1)))


async def test_writers_go_on_while_a_reader_keeps_an_old_day_from_being_dropped(owner: Connection, database_url: str) -> None:
    """A backup reads for hours. The drop gives up after a moment, and is done when the reader has gone."""
    await cover(owner, NOTES, now=NOW - 40 * DAY, days=30, ahead=0)
    await cover(owner, NOTES, now=NOW, days=30)
    await note(owner, NOW - 40 * DAY)
    written, stopped = [0], asyncio.Event()

    async def write() -> None:
        async with await Database.of_owner(database_url, size=1).connect("writer") as writer:
            while not stopped.is_set():
                await writer.execute("SET statement_timeout = '30s'")
                await note(writer, NOW)
                written[0] += 1

    async with await Database.of_owner(database_url, size=1).connect("reader") as reader:
        writing = asyncio.create_task(write())
        async with reader.transaction():
            await reader.execute("SELECT count(*) FROM day_notes")
            for _ in range(5):
                before = written[0]
                assert not await drop_before(owner, NOTES, before=NOW - 30 * DAY)
                async with asyncio.timeout(60):
                    while written[0] < before + 10:  # noqa: ASYNC110 - of another task
                        await asyncio.sleep(0.005)
            assert len(await partitions(owner, NOTES)) == AHEAD + 2
        assert await drop_before(owner, NOTES, before=NOW - 30 * DAY)
    stopped.set()
    await writing
    assert await places(owner) == [("20210102_20210103", TODAY)] * written[0]


async def test_a_new_day_waits_for_a_reader_and_writers_do_not(owner: Connection, database_url: str) -> None:
    await cover(owner, NOTES, now=NOW, days=30)
    async with await Database.of_owner(database_url, size=1).connect("reader") as reader:
        async with reader.transaction():
            await reader.execute("SELECT count(*) FROM day_notes")
            assert not await cover(owner, NOTES, now=NOW + DAY, days=30)
            await note(owner, NOW, NOW + 2 * DAY)
        assert await cover(owner, NOTES, now=NOW + DAY, days=30)


async def test_the_application_reaches_partitions_through_their_table_only(migrated: tuple[str, str | None]) -> None:
    stored_rows = rows(
        migrated[0],
        "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' AND ("
        " has_table_privilege(%s, oid, 'SELECT') OR has_table_privilege(%s, oid, 'INSERT')"
        " OR has_table_privilege(%s, oid, 'DELETE') OR has_table_privilege(%s, oid, 'UPDATE'))",
        *([APP_ROLE] * 4),
    )
    assert stored_rows == []
    with psycopg.connect(migrated[0], autocommit=True) as connection:
        connection.execute(f"SET ROLE {APP_ROLE}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM logbook_default")
