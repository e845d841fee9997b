"""The database of a command: an external one, the embedded one that the command starts, or the embedded one that runs already."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import psycopg
from psycopg.conninfo import conninfo_to_dict

from api.cli.home import create_home, lock_home
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from projections.kernel.availability import REMINDER
from projections.kernel.background_task import start_forever
from projections.kernel.builds import BUILD, check_build
from projections.kernel.connection import Connection, limited
from projections.kernel.pooler import shares_sessions
from projections.kernel.sizes import MIB, shown
from workers.adapters.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from workers.adapters.free_space import free_bytes

OLDEST = 15
WATCH_SECONDS = 1.0
NEW_DATABASE = 128 * MIB
"""What PostgreSQL writes before the first row, and the first segments of its log."""
SINGLE_CONNECTIONS = 4
"""Of one process, beside its pools: for appends, notifications and listeners."""

_EXTERNAL = "external"
_TABLES = "SELECT to_regclass('public.log_identity'), to_regclass('public.min_build')"
_MISSING = "there is no medialedger in {}; `medialedger up` or `medialedger migrate` makes one"
_TIMES = re.compile(r"[0-9-]{10} [0-9:.]+ UTC \[[0-9]+\] ")
"""What begins a line of the server's log."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Database:
    """A database that accepts connections. `url` contains the password and must not be shown; `label` is for people."""

    url: str
    label: str


OpenDatabase = Callable[[Settings], AbstractAsyncContextManager[Database]]


@asynccontextmanager
async def start_database(settings: Settings) -> AsyncIterator[Database]:
    """For `up`, which holds the lock of the home: the external database, else the embedded server, which runs during the block."""
    if settings.database_url is not None:
        yield await _checked(settings.database_url.get_secret_value(), kind=_EXTERNAL)
        return
    postgres = EmbeddedPostgres(settings.home)
    if not postgres.exists and (free := free_bytes(settings.home)) < NEW_DATABASE:
        raise StartError(f"{settings.home} has {shown(free)} free; a new database needs {shown(NEW_DATABASE)}")
    try:
        url = await _start(postgres)
        watch = start_forever(partial(_watch, postgres), what="watch of the embedded database")
        try:
            yield await _checked(url, kind="embedded")
        finally:
            watch.cancel()
            await asyncio.wait({watch})
    finally:
        await asyncio.to_thread(postgres.stop)


@asynccontextmanager
async def attach_database(settings: Settings, *, make: bool = False) -> AsyncIterator[Database]:
    """For a process beside `up`: the external database, else the embedded server that `up` starts and stops. Without `make` it must
    hold a medialedger."""
    if settings.database_url is not None:
        found = await _checked(settings.database_url.get_secret_value(), kind=_EXTERNAL)
    else:
        found = await _checked(EmbeddedPostgres(settings.home).attach(), kind="embedded, started elsewhere")
    if not make:
        await _check_holds_medialedger(found.url, place=_place(settings))
    yield found


@asynccontextmanager
async def open_database(settings: Settings, *, make: bool = False) -> AsyncIterator[Database]:
    """For a short command: the database that runs, else the embedded server, started for this command. Without `make` a database
    that is missing or empty is not made: `StartError`."""
    embedded = EmbeddedPostgres(settings.home)
    if settings.database_url is not None or embedded.running:
        async with attach_database(settings, make=make) as database:
            yield database
        return
    if not make and not embedded.exists:
        raise StartError(_MISSING.format(_place(settings)))
    create_home(settings.home)
    with lock_home(settings.home):
        async with start_database(settings) as database:
            if not make:
                await _check_holds_medialedger(database.url, place=_place(settings))
            yield database


def _place(settings: Settings) -> str:
    """Where the database is, without its password."""
    if settings.database_url is None:
        return f"{settings.home} (MEDIALEDGER_HOME)"
    parts = conninfo_to_dict(settings.database_url.get_secret_value())
    return f"the database {parts.get('dbname') or parts.get('user') or ''} of MEDIALEDGER_DATABASE_URL"


async def _check_holds_medialedger(url: str, *, place: str) -> None:
    """Raises `StartError` for an empty database or another one, and `BuildTooOld`."""
    async with await Connection.connect(url, autocommit=True) as connection:
        row = await (
            await connection.execute("SELECT to_regclass('public.log_identity'), to_regclass('public.min_build')")
        ).fetchone()
        if row is None or None in row:
            raise StartError(_MISSING.format(place))
        await check_build(connection, BUILD)


async def _checked(url: str, *, kind: str) -> Database:
    """Connect once: a wrong address or password is reported here in one line."""
    try:
        url = limited(url)
        async with await Connection.connect(url, autocommit=True) as connection:
            version = connection.info.server_version
            shared = await shares_sessions(connection, url)
    except (psycopg.Error, UnicodeError) as error:
        raise StartError(f"the database cannot be reached: {first_line(error)}") from None
    if version < OLDEST * 10_000:
        raise StartError(f"the database is PostgreSQL {version // 10_000}; {OLDEST} or newer is needed")
    if shared:
        raise StartError(
            "the database is reached through a pooler that shares sessions (transaction mode); use its session mode, or connect to "
            "PostgreSQL itself"
        )
    return Database(url, f"PostgreSQL {version // 10_000}.{version % 10_000}, {kind}")


def first_line(error: Exception) -> str:
    """What an error of the database says first; it holds no password."""
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return reason.removeprefix("connection failed: ")


async def check_connections(database: Database, settings: Settings, *, processes: int) -> None:
    """So many processes, and one more during a restart, must find connections. Raises `StartError`."""
    async with await psycopg.AsyncConnection.connect(database.url) as connection:
        row = await (await connection.execute("SHOW max_connections")).fetchone()
    each = settings.database_connections + settings.database_list_connections + SINGLE_CONNECTIONS
    needed, allowed = each * (processes + 1), int(row[0]) if row is not None else 0
    if needed > allowed:
        raise StartError(f"{processes} processes need up to {needed} connections; max_connections of the database is {allowed}")


async def _start(postgres: EmbeddedPostgres) -> str:
    """Start the server in a thread. A thread cannot be cancelled: on a cancellation the start is abandoned and its end awaited."""
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
    """Start the server again when it was killed, for example for lack of memory; requests get 503 until then. A start that fails
    again and again for one reason is logged once, and every 30 seconds."""
    reported, last = "", float("-inf")
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        if postgres.running:
            continue
        if not reported:
            logger.error("the embedded database has ended; it is started again")
        try:
            await _start(postgres)
        except EmbeddedPostgresError as error:
            reason = _TIMES.sub("", str(error))
            if reason != reported or time.monotonic() - last >= REMINDER:
                logger.error("the embedded database cannot be started again: %s", error)
                reported, last = reason, time.monotonic()
        else:
            logger.warning("the embedded database runs again")
            reported = ""
