"""Migrations are applied once, and what was applied is never another one; the application's role has what rooms grant to it."""

from __future__ import annotations

import asyncio

import pytest
from psycopg.conninfo import make_conninfo

from api.wiring.core import prepare
from api.wiring.startup import StartError
from projections.kernel.database.database import APP_ROLE, Database
from projections.kernel.schema.migrate import Grant, Migration, MigrationEdited, grant_application, migrate
from tests.projections.kernel.empty_database import NAME
from tests.projections.kernel.empty_database import empty_database as empty_database
from tests.projections.log.helpers import until

FIRST = Migration("0001 first", "CREATE TABLE first (id integer); CREATE SEQUENCE numbers;")
SECOND = Migration("0002 second", "CREATE TABLE second (id integer)")


async def test_each_migration_is_applied_once(empty_database: Database) -> None:
    assert await migrate(empty_database, [FIRST]) == ["0001 first"]
    assert await migrate(empty_database, [FIRST, SECOND]) == ["0002 second"]
    assert await migrate(empty_database, [FIRST, SECOND]) == []
    assert await empty_database.rows("SELECT name, sha256 FROM migrations ORDER BY name") == [
        ("0001 first", FIRST.sha256),
        ("0002 second", SECOND.sha256),
    ]


async def test_a_migration_that_was_edited_is_refused_and_nothing_is_applied(empty_database: Database) -> None:
    await migrate(empty_database, [FIRST])
    edited = Migration(FIRST.name, FIRST.statements + " -- better")
    with pytest.raises(MigrationEdited, match="edited after they were applied to this database: 0001 first"):
        await migrate(empty_database, [edited, SECOND])
    assert await empty_database.rows("SELECT name FROM migrations") == [("0001 first",)]


async def test_a_migration_that_waits_for_a_lock_does_not_hold_up_others(
    empty_database: Database, postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A reader holds the table; who writes to it meanwhile would wait behind the step if the step waited without end."""
    await migrate(empty_database, [FIRST])
    changing = Migration("0002 changing", "ALTER TABLE first ADD COLUMN name text")
    async with await empty_database.connect("reader") as reader, await empty_database.connect("writer") as writer:
        async with reader.transaction():
            await reader.execute("SELECT FROM first")
            migrating = asyncio.create_task(migrate(empty_database, [FIRST, changing], lock_wait=0.1))
            await until(lambda: "is waiting for a lock" in caplog.text)
            await writer.execute("INSERT INTO first VALUES (1)")
            assert not migrating.done()
        assert await migrating == ["0002 changing"]


async def test_a_release_that_knows_fewer_migrations_starts(empty_database: Database) -> None:
    await migrate(empty_database, [FIRST, SECOND])
    assert await migrate(empty_database, [FIRST]) == []


async def test_the_product_does_not_start_on_a_database_of_an_edited_migration(empty_database: Database, postgres: str) -> None:
    url = make_conninfo(postgres, dbname=NAME)
    await prepare(url)
    await empty_database.execute("UPDATE migrations SET sha256 = repeat('0', 64) WHERE name = '0001 log'")
    with pytest.raises(StartError, match="0001 log; use the build that made this database"):
        await prepare(url)


async def test_the_application_may_do_what_is_granted(empty_database: Database) -> None:
    await migrate(empty_database, [FIRST, SECOND])
    assert await grant_application(empty_database, [Grant("TABLE first", "SELECT, INSERT"), Grant("SEQUENCE numbers", "USAGE")])

    async def allowed(table: str) -> set[str]:
        rights = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")
        stored_rows = await empty_database.rows(
            "SELECT right_ FROM unnest(%s::text[]) AS r (right_) WHERE has_table_privilege(%s, %s, right_)",
            (list(rights), APP_ROLE, table),
        )
        return {right for (right,) in stored_rows}

    assert await allowed("first") == {"SELECT", "INSERT"}
    assert await allowed("second") == {"SELECT", "INSERT", "UPDATE", "DELETE"}
    assert await allowed("migrations") == {"SELECT"}
    assert await empty_database.row("SELECT has_sequence_privilege(%s, 'numbers', 'USAGE')", (APP_ROLE,)) == (True,)
