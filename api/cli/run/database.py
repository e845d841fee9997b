"""The database of a command: an external one, an embedded one that the command starts, or an embedded one that already runs."""

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

from api.cli.run.home import create_home, lock_home
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from projections.kernel.background_task import start_forever
from projections.kernel.database.availability import REMINDER
from projections.kernel.database.connection import Connection, with_limits
from projections.kernel.database.pooler import shares_sessions
from projections.kernel.schema.builds import BUILD, check_build
from projections.kernel.schema.migrate import may_migrate
from projections.kernel.sizes import MIB, shown
from workers.adapters.embedded_postgres import DatabaseUrls, EmbeddedPostgres, EmbeddedPostgresError
from workers.adapters.free_space import free_bytes

OLDEST = 15
WATCH_SECONDS = 1.0
LOGIN_SECONDS = 10.0
NEW_DATABASE = 128 * MIB
"""The bytes that PostgreSQL writes before the first row, and the first segments of its log."""
SINGLE_CONNECTIONS = 4
"""Connections that a process opens outside its pools: for appends, notifications and listeners."""

_EXTERNAL = "external"
_TABLES = "SELECT to_regclass('public.log_identity'), to_regclass('public.min_build')"
_MISSING = "there is no medialedger in {}; `medialedger up` or `medialedger migrate` creates one"
_TIMES = re.compile(r"[0-9-]{10} [0-9:.]+ UTC \[[0-9]+\] ")
"""The beginning of a line in the server's log."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DatabaseAccess:
    """A database that accepts connections. `url` is for the running product, `owner` for migrations and maintenance; with a single
    login they are equal. They contain passwords and must not be shown; `label` is for people. `may_migrate` is True if the user of
    `url` may change the schema."""

    url: str
    owner: str
    label: str
    may_migrate: bool


OpenDatabase = Callable[[Settings], AbstractAsyncContextManager[DatabaseAccess]]


@asynccontextmanager
async def start_database(settings: Settings) -> AsyncIterator[DatabaseAccess]:
    """Yield the database for `up`, which holds the lock of the home: the external database, else the embedded server, which runs
    during the block."""
    if settings.database_url is not None:
        yield await _external(settings)
        return
    postgres = EmbeddedPostgres(settings.home)
    if not postgres.exists and (free := free_bytes(settings.home)) < NEW_DATABASE:
        raise StartError(f"{settings.home} has {shown(free)} free; a new database needs {shown(NEW_DATABASE)}")
    try:
        await _start(postgres)
        watch = start_forever(partial(_watch, postgres), what="watch of the embedded database")
        try:
            yield await _check_logins(postgres.logins(), kind="embedded")
        finally:
            watch.cancel()
            await asyncio.wait({watch})
    finally:
        await asyncio.to_thread(postgres.stop)


@asynccontextmanager
async def attach_database(settings: Settings, *, make: bool = False) -> AsyncIterator[DatabaseAccess]:
    """Yield the database for a process that runs next to `up`: the external database, else the embedded server that `up` starts and
    stops. Raise `StartError` if it does not hold a medialedger, unless `make` is set."""
    if settings.database_url is not None:
        database = await _external(settings)
    else:
        database = await _check_logins(EmbeddedPostgres(settings.home).logins(), kind="embedded, started elsewhere")
    if not make:
        await _check_holds_medialedger(database.owner, place=_place(settings))
    yield database


@asynccontextmanager
async def open_database(settings: Settings, *, make: bool = False) -> AsyncIterator[DatabaseAccess]:
    """Yield the database for a short command: a running one, else the embedded server, started for this command. Raise `StartError`
    if the database is missing or empty, unless `make` is set."""
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
                await _check_holds_medialedger(database.owner, place=_place(settings))
            yield database


def _place(settings: Settings) -> str:
    """Return where the database is, without its password."""
    if settings.database_url is None:
        return f"{settings.home} (MEDIALEDGER_HOME)"
    parts = conninfo_to_dict(settings.database_url.get_secret_value())
    return f"the database {parts.get('dbname') or parts.get('user') or ''} of MEDIALEDGER_DATABASE_URL"


async def _check_holds_medialedger(url: str, *, place: str) -> None:
    """Raise `StartError` for an empty or foreign database, and `BuildTooOld`."""
    async with await Connection.connect(url, autocommit=True) as connection:
        row = await (await connection.execute(_TABLES)).fetchone()
        if row is None or None in row:
            raise StartError(_MISSING.format(place))
        try:
            await check_build(connection, BUILD)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StartError(f"{first_line(error)}: run `medialedger migrate` with MEDIALEDGER_OWNER_DATABASE_URL") from None


async def _external(settings: Settings) -> DatabaseAccess:
    assert settings.database_url is not None, "the callers check this"
    product, owner = settings.database_url.get_secret_value(), settings.owner_database_url
    return await _check_logins(DatabaseUrls(product, product if owner is None else owner.get_secret_value()), kind=_EXTERNAL)


async def _check_logins(logins: DatabaseUrls, *, kind: str) -> DatabaseAccess:
    """Connect once with each login, so that a wrong address or password is reported here in one line."""
    try:
        url, owner = map(with_limits, logins)
        async with await Connection.connect(url, autocommit=True) as connection:
            version = connection.info.server_version
            shared = await shares_sessions(connection, url)
            powerful = await may_migrate(connection)
        if owner != url:
            async with await Connection.connect(owner, autocommit=True):
                pass
    except (psycopg.Error, UnicodeError) as error:
        raise StartError(f"the database cannot be reached: {first_line(error)}") from None
    if version < OLDEST * 10_000:
        raise StartError(f"the database is PostgreSQL {version // 10_000}; {OLDEST} or newer is needed")
    if shared:
        raise StartError(
            "the database is reached through a pooler that shares sessions (transaction mode); use its session mode, or connect to "
            "PostgreSQL itself"
        )
    return DatabaseAccess(url, owner, f"PostgreSQL {version // 10_000}.{version % 10_000}, {kind}", powerful)


def check_owner(database: DatabaseAccess) -> None:
    """Raise `StartError` unless the command has the rights of the tables' owner."""
    if database.owner == database.url and not database.may_migrate:
        raise StartError("the database user does not own the tables; set MEDIALEDGER_OWNER_DATABASE_URL")


def warn_of_rights(database: DatabaseAccess) -> None:
    """Log a warning if the product's login may change the schema. It is called once at the start of the product."""
    if database.may_migrate:
        logger.warning(
            "the database user of MEDIALEDGER_DATABASE_URL owns the tables, so anyone who can run SQL as it can change the event "
            "log; give "
            "the product a separate login, and set MEDIALEDGER_OWNER_DATABASE_URL for migrations"
        )


def first_line(error: Exception) -> str:
    """Return the first line of a database error, which contains no password."""
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return reason.removeprefix("connection failed: ")


async def check_connections(database: DatabaseAccess, settings: Settings, *, processes: int) -> None:
    """Raise `StartError` unless this many processes, and one more during a restart, can get their connections."""
    needed, allowed = _connections_of_a_process(settings) * (processes + 1), await _max_connections(database)
    if needed > allowed:
        raise StartError(f"{processes} processes need up to {needed} connections; max_connections of the database is {allowed}")


async def most_processes(database: DatabaseAccess, settings: Settings) -> int:
    """Return the largest number of processes that `check_connections` accepts; at least 1."""
    return max(await _max_connections(database) // _connections_of_a_process(settings) - 1, 1)


def _connections_of_a_process(settings: Settings) -> int:
    return settings.database_connections + settings.database_list_connections + SINGLE_CONNECTIONS


async def _max_connections(database: DatabaseAccess) -> int:
    async with await psycopg.AsyncConnection.connect(database.url) as connection:
        row = await (await connection.execute("SHOW max_connections")).fetchone()
    return int(row[0]) if row is not None else 0


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


async def _mend_login(postgres: EmbeddedPostgres) -> None:
    try:
        if not await asyncio.to_thread(lambda: postgres.usable):
            await _start(postgres)  # it runs: its roles are set right
            logger.error("the password or the settings of the product's login to the database were changed; they have been reset")
    except EmbeddedPostgresError as error:
        logger.warning("the product's login to the database cannot be checked: %s", error)


async def _watch(postgres: EmbeddedPostgres) -> None:
    """Start the server again after it was killed, for example for lack of memory; requests get 503 until then. A start that keeps
    failing for the same reason is logged at once and then every 30 seconds. The watch also keeps the server's log small, and the
    product's login usable: anyone who can run SQL as that login can change its password and settings."""
    reported, last, looked = "", float("-inf"), time.monotonic()
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        if postgres.running:
            await asyncio.to_thread(postgres.trim_log)
            if time.monotonic() - looked >= LOGIN_SECONDS:
                await _mend_login(postgres)
                looked = time.monotonic()
            continue
        if not reported:
            logger.error("the embedded database has ended; it is being restarted")
        try:
            await _start(postgres)
        except EmbeddedPostgresError as error:
            reason = _TIMES.sub("", str(error))
            if reason != reported or time.monotonic() - last >= REMINDER:
                logger.error("the embedded database cannot be restarted: %s", error)
                reported, last = reason, time.monotonic()
        else:
            logger.warning("the embedded database is running again")
            reported = ""
