"""The register of builds: an older build keeps what it needs while it lives, and does not start afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from projections.kernel.database.database import APP_ROLE, Database
from projections.kernel.schema.builds import BuildTooOld, RunningBuild, limits, living, shut_out_older
from projections.kernel.schema.migrate import Grant, Migration, grant_application, migrate, waiting
from tests.projections.kernel.empty_database import empty_database as empty_database

FIRST = Migration("0001 first", "CREATE TABLE first (id integer, old text)")
ADDS = Migration("0003 adds", "ALTER TABLE first ADD COLUMN name text")
DROPS = Migration("0002 drops", "ALTER TABLE first DROP COLUMN old", contracts=True)
STEPS = [FIRST, DROPS, ADDS]


def stays() -> None:
    raise AssertionError("this process may go on")


@pytest.fixture
async def older(empty_database: Database) -> AsyncIterator[RunningBuild]:
    """A process of build 1, on a database that it made."""
    await migrate(empty_database, [FIRST], build=1)
    running = RunningBuild(empty_database, build=1, beat=0.01, end=stays)
    await running.start()
    yield running
    await running.stop()


async def columns(database: Database) -> set[str]:
    stored_rows = await database.rows("SELECT column_name::text FROM information_schema.columns WHERE table_name = 'first'")
    return {name for (name,) in stored_rows}


@pytest.mark.usefixtures("older")
class TestWhileAnOlderBuildLives:
    async def test_a_migration_that_takes_away_waits_and_later_ones_do_not(self, empty_database: Database) -> None:
        assert await migrate(empty_database, STEPS, build=2) == ["0003 adds"]
        assert await columns(empty_database) == {"id", "old", "name"}
        assert await waiting(empty_database, STEPS) == ["0002 drops"]
        assert await limits(empty_database) == (1, "it made the database")
        assert await migrate(empty_database, [FIRST], build=1) == [], "another process of the older build may start"

    async def test_the_rights_that_the_newer_build_gave_stay_when_an_older_one_starts(self, empty_database: Database) -> None:
        await migrate(empty_database, STEPS, build=2)
        await grant_application(empty_database, [Grant("TABLE first", "SELECT")], build=2)
        await grant_application(empty_database, [], build=1)
        [(may,)] = await empty_database.rows("SELECT has_table_privilege(%s, 'first', 'INSERT')", (APP_ROLE,))
        assert not may

    async def test_it_is_listed_as_long_as_it_runs(self, empty_database: Database, older: RunningBuild) -> None:
        assert [row[0] for row in await living(empty_database)] == [1]
        await older.stop()
        assert await living(empty_database) == []


async def test_without_a_running_older_build_it_is_dropped_and_that_build_can_no_longer_start(
    empty_database: Database, older: RunningBuild
) -> None:
    await migrate(empty_database, STEPS, build=2)
    await older.stop()
    assert await migrate(empty_database, STEPS, build=2) == ["0002 drops"]
    assert await columns(empty_database) == {"id", "name"}
    refused = r"this is build 1, and the database needs build 2 or newer \(migration 0002 drops\)"
    with pytest.raises(BuildTooOld, match=refused):
        await migrate(empty_database, [FIRST], build=1)
    with pytest.raises(BuildTooOld, match=refused):
        await RunningBuild(empty_database, build=1).start()
    assert await living(empty_database) == []


async def test_a_process_that_was_taken_for_dead_ends(empty_database: Database, caplog: pytest.LogCaptureFixture) -> None:
    await migrate(empty_database, [FIRST], build=1)
    ended = asyncio.Event()
    frozen = RunningBuild(empty_database, build=1, beat=0.01, end=ended.set)
    await frozen.start()
    async with await empty_database.connect("test") as connection, connection.transaction():
        await connection.execute("UPDATE builds SET seen_at = seen_at - interval '1 hour'")  # it waits for this row meanwhile
        await shut_out_older(connection, 2, because="a test")
    async with asyncio.timeout(60):
        await ended.wait()
    await frozen.stop()
    assert "this is build 1, and the database needs build 2 or newer (a test); this process exits" in caplog.text


async def test_a_database_that_a_newer_build_made_refuses_an_older_one(empty_database: Database) -> None:
    assert await migrate(empty_database, STEPS, build=2) == ["0001 first", "0002 drops", "0003 adds"]
    with pytest.raises(BuildTooOld, match="needs build 2 or newer"):
        await migrate(empty_database, [FIRST], build=1)
