"""A link to the database that swallows packets and closes nothing: it is noticed, and what was under way is not written twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import psycopg
import pytest

from domain.kernel.errors import OutcomeUnknown, Unavailable
from projections.kernel.database.connection import BlockingConnection, SilentServer, with_limits
from projections.kernel.database.database import Database, PoolLimits
from projections.log.append import Appender
from projections.log.append_queue import AppendLimits
from tests.projections.log.helpers import logged, until, whole, write_of
from tests.support.link import Link

QUICK = PoolLimits(2, 2, seconds=0.1)


@pytest.fixture
async def link(database_url: str) -> AsyncIterator[Link]:
    async with Link.to_postgres(database_url) as between:
        yield between


async def test_a_query_is_given_up_and_the_pool_recovers(link: Link, database_url: str) -> None:
    async with Database(link.through(database_url), limits=QUICK) as database:
        assert await asyncio.gather(*(database.row("SELECT 1") for _ in range(2))) == [(1,)] * 2
        link.swallow()
        results = await asyncio.gather(*(database.row("SELECT 2") for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in results] == [Unavailable] * 3
        link.restore()
        assert await answered(database) == (3,)


async def answered(database: Database) -> object:
    """A connection that was being made when the link failed may still be waited for."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await database.row("SELECT 3")
            except Unavailable:
                continue


async def test_one_silent_connection_replaces_the_others(link: Link, database_url: str) -> None:
    """The others lead to the same server: otherwise each would cost a query its patience."""
    async with Database(link.through(database_url), limits=QUICK) as database:
        async with database.connection() as one_of_them, database.connection() as another:
            before = {id(one_of_them), id(another)}
        link.swallow()
        with pytest.raises(Unavailable):
            await database.row("SELECT 1")
        link.restore()
        await answered(database)
        async with database.connection() as one_of_them, database.connection() as another:
            assert before.isdisjoint({id(one_of_them), id(another)})


async def test_a_thread_gives_a_silent_server_up(link: Link, database_url: str) -> None:
    def ask() -> None:
        with BlockingConnection.connect(with_limits(link.through(database_url)), autocommit=True) as connection:
            connection.configure(seconds=0.1)
            assert connection.execute("SELECT 1").fetchone() == (1,)
            link.swallow()
            with pytest.raises(SilentServer):
                connection.execute("SELECT 2")
            assert connection.closed

    async with asyncio.timeout(60):
        await asyncio.to_thread(ask)


async def test_a_listener_notices_without_a_notification(link: Link, database_url: str) -> None:
    async with Database(link.through(database_url), size=1) as database:
        listener = await database.connect("test", seconds=0.1)
        await listener.listen("medialedger_test")
        link.swallow()
        with pytest.raises(SilentServer):
            await anext(listener.receive(quiet=0.05))
        await listener.close()


async def test_a_listener_that_hears_nothing_goes_on(link: Link, database_url: str) -> None:
    async with Database(link.through(database_url), size=1) as database:
        listener = await database.connect("test")
        await listener.listen("medialedger_test")
        waiting = asyncio.ensure_future(anext(listener.receive(quiet=0.01)))
        while (await database.row("SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT 1'")) == (0,):
            pass  # it has asked for a sign of life
        await database.execute("SELECT pg_notify('medialedger_test', 'still there')")
        assert (await waiting).payload == "still there"
        await listener.close()


async def test_an_append_that_comes_late_is_written_once(link: Link, database_url: str) -> None:
    """The statement waits somewhere on the way, and arrives after it was given up and another one was made."""
    database = Database(link.through(database_url) + " connect_timeout=5")
    appender = Appender(database, limits=AppendLimits(patience=0.5))
    await appender.start()
    try:
        assert await appender.append(write_of("test:a")) == 1
        link.swallow()
        with pytest.raises(OutcomeUnknown):
            await appender.append(write_of("test:b"))
        with pytest.raises(Unavailable):
            await appender.append(write_of("test:c"))
        link.restore()
        await until(lambda: len(logged(database_url)) == 2 and not database.availability.lost)  # the late one
        position = await appender.append(write_of("test:d"))
    finally:
        await appender.stop()
    streams = [stream for _, stream, _ in logged(database_url)]
    assert streams == ["test:a", "test:b", "test:d"]
    assert whole(database_url) == position == 3


async def test_a_server_that_does_not_answer_is_not_connected_to(link: Link, database_url: str) -> None:
    link.swallow()
    begun = time.monotonic()
    database = Database(link.through(database_url) + " connect_timeout=2")
    try:
        with pytest.raises(psycopg.OperationalError, match="timeout"):
            await database.connect("test")
        assert time.monotonic() - begun < 60
    finally:
        await database.close()


async def test_a_session_that_hangs_in_a_transaction_is_ended_by_the_server(database_url: str) -> None:
    async with Database(database_url, limits=QUICK) as database:
        assert await database.row("SHOW idle_in_transaction_session_timeout") == ("10s",)
    async with Database.of_owner(database_url, size=1) as owner:
        assert await owner.row("SHOW idle_in_transaction_session_timeout") == ("0",)


def test_options_of_the_address_are_kept() -> None:
    address = with_limits("postgresql://ana@db.example/medialedger?tcp_user_timeout=60000")
    assert "tcp_user_timeout=60000" in address
    assert "keepalives_idle=4" in address
    assert "connect_timeout=5" in address
