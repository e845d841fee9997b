"""The pools of connections: what one query may take, and that lists do not take the connections of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from domain.kernel.errors import Unavailable
from projections.audit.stored_log import StoredLog
from projections.kernel.database.connection import with_limits
from projections.kernel.database.database import Database, PoolLimits
from tests.support.postgres import asked, new_database

SLOW = "SELECT pg_sleep(600)"
RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE query = %s AND state = 'active'"


@pytest.fixture
async def observer(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url, size=1) as database:
        yield database


async def has_started(observer: Database) -> None:
    async with asyncio.timeout(60):
        while not await running(observer):
            pass


async def running(observer: Database) -> int:
    row = await observer.row(RUNNING, (SLOW,))
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("lists", [False, True])
async def test_a_query_that_takes_too_long_is_stopped(database_url: str, observer: Database, lists: bool) -> None:
    async with Database(database_url, limits=PoolLimits(1, 1, seconds=0.05)) as database:
        pool = database.lists if lists else database
        with pytest.raises(Unavailable, match="took too long") as refused:
            await pool.rows(SLOW)
        assert refused.value.retry_after > 0
        assert await running(observer) == 0
        assert await pool.row("SELECT 1") == (1,)


async def test_a_slow_statement_changes_nothing(database_url: str, observer: Database) -> None:
    await observer.execute("CREATE TABLE IF NOT EXISTS slow_statement (number integer)")
    try:
        async with Database(database_url, limits=PoolLimits(1, 1, seconds=0.05)) as database:
            with pytest.raises(Unavailable):
                await database.execute("INSERT INTO slow_statement SELECT 1 FROM (SELECT pg_sleep(600)) AS s")
        assert await observer.row("SELECT count(*) FROM slow_statement") == (0,)
    finally:
        await observer.execute("DROP TABLE slow_statement")


async def test_maintenance_has_no_limit(database_url: str) -> None:
    async with Database.of_owner(database_url, size=1) as owner:
        assert await owner.row("SHOW statement_timeout") == ("0",)
    async with Database(database_url, size=1) as database:
        assert await database.row("SHOW statement_timeout") == ("5s",)


async def test_the_query_of_a_caller_who_is_cancelled_is_stopped(database_url: str, observer: Database) -> None:
    async with Database(database_url, limits=PoolLimits(1, 1, seconds=None)) as database:
        caller = asyncio.create_task(database.lists.rows(SLOW))
        await has_started(observer)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        assert await running(observer) == 0


async def test_the_queue_for_lists_ends_and_takes_no_other_connection(database_url: str) -> None:
    async with Database(database_url, limits=PoolLimits(1, 1, waiting=1)) as database:
        async with database.lists.connection():
            waiting = asyncio.create_task(database.lists.row("SELECT 2"))
            await asyncio.sleep(0)
            with pytest.raises(Unavailable, match="too many lists"):
                await database.lists.row("SELECT 3")
            assert await database.row("SELECT 4") == (4,)
        assert await waiting == (2,)


async def test_defaults_of_a_database_do_not_change_what_a_statement_says(postgres: str, migrated_template: str) -> None:
    """Otherwise a checkpoint would be computed from other bytes, and no text beyond ASCII could be read."""
    with new_database(postgres, "other_defaults", template=migrated_template) as url:
        for setting in (
            "search_path = pg_catalog",
            "client_encoding = 'LATIN1'",
            "standard_conforming_strings = off",
            "idle_session_timeout = '1s'",
        ):
            asked(url, f"ALTER DATABASE other_defaults SET {setting}".encode())
        question = r"SELECT to_regclass('events') IS NOT NULL, '\x41'::bytea, '—'"
        async with Database(with_limits(url), size=1) as database:
            assert await database.row(question) == (True, b"A", "—")
            assert await database.row("SHOW idle_session_timeout") == ("0",)
        with StoredLog.connected(with_limits(url), purpose="test") as stored:
            assert stored.rows(question) == [(True, b"A", "—")]


async def test_a_connection_in_another_encoding_is_given_up(database_url: str) -> None:
    """A proxy may report another encoding. Every later statement on the connection would fail, or be misread."""
    async with Database(database_url, size=1) as database:
        with pytest.raises(Unavailable):
            await database.execute("SET client_encoding = 'LATIN1'")
        assert await database.row("SELECT '—'") == ("—",)
