"""Where a command finds its database: one of one's own, the embedded one that this command keeps, or one that already runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import psycopg

from api.cli.home import locked, prepare
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from workers.adapters.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError

OLDEST = 15
CONNECT_SECONDS = 10
WATCH_SECONDS = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Database:
    """`url` holds a password and is not for showing; `label` is."""

    url: str
    label: str


@asynccontextmanager
async def kept(settings: Settings) -> AsyncIterator[Database]:
    """For `up`, which holds the home's lock: the embedded server lives as long as the block, unless an address is given."""
    if settings.database_url is not None:
        yield await _checked(settings.database_url.get_secret_value(), kind="external")
        return
    postgres = EmbeddedPostgres(settings.home)
    try:
        url = await _start(postgres)
        watch = asyncio.create_task(_watch(postgres))
        try:
            yield await _checked(url, kind="embedded")
        finally:
            watch.cancel()
            await asyncio.wait({watch})
    finally:
        await asyncio.to_thread(postgres.stop)


@asynccontextmanager
async def attached(settings: Settings) -> AsyncIterator[Database]:
    """For a process beside `up`: the server is somebody else's to start and stop."""
    if settings.database_url is not None:
        yield await _checked(settings.database_url.get_secret_value(), kind="external")
    else:
        yield await _checked(EmbeddedPostgres(settings.home).attach(), kind="embedded, started elsewhere")


@asynccontextmanager
async def at_hand(settings: Settings) -> AsyncIterator[Database]:
    """For a short command: beside `up` when that is running, else with the server started for the command alone."""
    if settings.database_url is not None or EmbeddedPostgres(settings.home).running:
        async with attached(settings) as database:
            yield database
    else:
        prepare(settings.home)
        with locked(settings.home):
            async with kept(settings) as database:
                yield database


async def _checked(url: str, *, kind: str) -> Database:
    """Asks once, so that a wrong address or password is one clear line here and not a failure deep in the start."""
    try:
        async with await psycopg.AsyncConnection.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            version = connection.info.server_version
    except (psycopg.Error, UnicodeError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise StartError(f"the database cannot be reached: {reason.removeprefix('connection failed: ')}") from None
    if version < OLDEST * 10_000:
        raise StartError(f"the database is PostgreSQL {version // 10_000}; {OLDEST} or newer is needed")
    return Database(url, f"PostgreSQL {version // 10_000}.{version % 10_000}, {kind}")


async def _start(postgres: EmbeddedPostgres) -> str:
    """A thread cannot be cancelled: when we are, it is asked to give up and waited for, so that `stop` finds it still."""
    start = asyncio.create_task(asyncio.to_thread(postgres.start))
    try:
        return await asyncio.shield(start)
    except asyncio.CancelledError:
        postgres.abandon()
        await asyncio.wait({start})
        with suppress(Exception):
            start.result()
        raise
    except OSError as error:
        raise EmbeddedPostgresError(f"the embedded database cannot be started: {error}") from error


async def _watch(postgres: EmbeddedPostgres) -> None:
    """A server that was killed (out of memory, say) is started again; requests get 503 until then."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        if postgres.running:
            continue
        logger.error("the embedded database is gone; starting it again")
        try:
            await _start(postgres)
        except EmbeddedPostgresError as error:
            logger.error("the embedded database does not come back: %s", error)
        else:
            logger.warning("the embedded database is back")
