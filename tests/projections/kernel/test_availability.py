"""The breaker of the database: who waits for a lost database, when it is found again, and what is logged."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator

import psycopg
import pytest

from domain.kernel.errors import Unavailable
from projections.kernel.background_task import run_forever
from projections.kernel.database.availability import Availability, DatabaseLost
from projections.kernel.database.database import Database, PoolLimits
from projections.log.append import Appender
from tests.projections.log.helpers import until, write_of
from tests.support.link import Link

LOGGER = "projections.kernel.database.availability"


@pytest.fixture
async def link(database_url: str) -> AsyncIterator[Link]:
    async with Link.to_postgres(database_url) as between:
        yield between


@pytest.fixture
async def database(link: Link, database_url: str) -> AsyncIterator[Database]:
    async with Database(link.through(database_url), limits=PoolLimits(2, 2)) as connected:
        yield connected


async def lose(database: Database, link: Link) -> None:
    await link.close()
    with pytest.raises(Unavailable):
        await database.row("SELECT 1")
    await until(lambda: database.availability.lost)


async def test_nobody_waits_for_a_lost_database(database: Database, link: Link) -> None:
    await lose(database, link)
    begun = time.monotonic()
    for _ in range(20):
        for pool in (database, database.lists):
            with pytest.raises(Unavailable, match="does not answer") as refused:
                await pool.row("SELECT 1")
            assert refused.value.retry_after == 1
    with pytest.raises(DatabaseLost):
        await database.connect("test")
    assert time.monotonic() - begun < 2


async def test_waiting_callers_fail_at_once_if_the_database_is_lost(database: Database, link: Link) -> None:
    async with database.connection(), database.connection():  # there is no third one
        waiting = [asyncio.create_task(database.row("SELECT 1")) for _ in range(3)]
        await asyncio.sleep(0)
        begun = time.monotonic()
        await link.close()
        with pytest.raises(psycopg.OperationalError):
            await database.connect("test")
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert time.monotonic() - begun < 2
    assert [type(each) for each in results] == [Unavailable] * 3


async def test_a_change_is_refused_at_once(database: Database, link: Link) -> None:
    appender = Appender(database)
    await appender.start()
    try:
        await lose(database, link)
        with pytest.raises(Unavailable, match="does not answer"):
            await appender.append(write_of("room:1"))
    finally:
        await appender.stop()


async def test_the_first_query_after_an_outage_succeeds_within_two_seconds(database: Database, link: Link) -> None:
    await lose(database, link)
    for _ in range(200):
        with pytest.raises(Unavailable):
            await database.row("SELECT 1")
    await link.open()
    begun = time.monotonic()
    await ask_without_end(database)
    assert time.monotonic() - begun < 2


async def ask_without_end(database: Database) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await asyncio.gather(database.row("SELECT 1"), database.lists.row("SELECT 1"))
            except Unavailable:
                await asyncio.sleep(0.01)
            else:
                return


async def test_a_database_that_went_silent_is_found_again(database: Database, link: Link) -> None:
    """The tries that were swallowed never end; a later one arrives."""
    available = database.availability
    await database.row("SELECT 1")
    link.swallow()
    available.suspect(psycopg.OperationalError("nothing is heard"))
    await until(lambda: database.availability.lost)
    link.replace()
    begun = time.monotonic()
    await ask_without_end(database)
    assert time.monotonic() - begun < 2


async def test_tries_do_not_get_rarer(caplog: pytest.LogCaptureFixture) -> None:
    tries, there = 0, False

    async def connect() -> None:
        nonlocal tries
        tries += 1
        if not there:
            raise psycopg.OperationalError(f"refused\nthe {tries}th time")

    available = Availability(connect, explain=lambda: "no space left on /data", reminder=0.0, every=0.0)
    with caplog.at_level(logging.WARNING, logger=LOGGER):
        available.suspect(psycopg.OperationalError("broken"))
        await until(lambda: tries >= 500)
        before, there = tries, True
        await until(lambda: not available.lost)
    assert tries - before <= 8
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == "the database is lost: no space left on /data; refused; requests get 503 until it is back"
    assert re.match(r"the database is still unavailable after \d+ s: no space left on /data; refused", messages[1])
    assert re.fullmatch(r"the database is back after \d+ s", messages[-1])


async def test_each_state_is_logged_once(database: Database, link: Link, caplog: pytest.LogCaptureFixture) -> None:
    """This holds for any number of callers and of tasks that keep trying."""
    done = False
    turns = 0

    async def turn() -> None:
        nonlocal turns
        turns += 1
        await database.row("SELECT 1")

    with caplog.at_level(logging.INFO):
        tasks = [asyncio.create_task(run_forever(turn, what=f"task {n}", until=lambda: done, pause=0.0)) for n in range(20)]
        await lose(database, link)
        before = turns
        await until(lambda: turns >= before + 1000)
        await link.open()
        await until(lambda: not database.availability.lost)
        done = True
        await asyncio.gather(*tasks)
    ours = [record for record in caplog.records if record.name.startswith(("projections", "workers"))]
    assert [record.getMessage().split(":")[0].split(" after")[0] for record in ours] == [
        "the database is lost",
        "the database is back",
    ]


async def test_a_database_that_takes_no_more_connections_is_not_lost(database: Database, link: Link) -> None:
    """The open connections still answer: refusing their queries would turn this into an outage."""
    assert await database.row("SELECT 1") == (1,)
    link.refuse()
    with pytest.raises(psycopg.OperationalError):
        await database.connect("test")
    async with asyncio.timeout(60):
        while database.availability.looking:
            assert await database.row("SELECT 1") == (1,)
    assert not database.availability.lost
