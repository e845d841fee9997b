"""A connection to PostgreSQL that detects a silent server, and limits how long the server waits for a silent client.

A link that drops packets closes nothing, so neither side gets an error. docs/reference/guarantees.md describes how either side
detects it, and when. The kernel probes the other machine, but a hung proxy between them may still answer such probes, so each wait
for an answer is limited too.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self, cast

import psycopg
from psycopg import AsyncConnection, Notify, sql
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from projections.kernel.database.availability import Availability
from projections.kernel.database.primary import Primary

QUIET: Final = 5.0
"""The number of seconds without a notification after which a listener asks the server for a sign of life."""
_INTERVAL: Final = 1.0
MARGIN: Final = 3.0
"""The number of seconds that an answer may take beyond the server's own limit of the statement."""
_DEFAULTS: Final[Mapping[str, int | str]] = {
    "client_encoding": "UTF8",  # regardless of the default of the database or the user
    "target_session_attrs": "read-write",  # selects the primary among several hosts
    "connect_timeout": 5,  # for each host
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_SESSION: Final[Mapping[str, str]] = {
    "search_path": "public",  # this and the next fix the meaning of our statements: users and databases may have other defaults
    "standard_conforming_strings": "on",
    "default_transaction_isolation": "read committed",  # regardless of the server's default, under which waiting writers might fail
    "idle_session_timeout": "0",  # a listener may receive nothing for a long time
    "tcp_keepalives_idle": "4",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10s",
}
_SET: Final = """
SELECT count(set_config(name, value, false)), left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
FROM unnest(%s::text[], %s::text[]) AS given (name, value)
"""
_SET_ONLY: Final = "SELECT count(set_config(name, value, false)) FROM unnest(%s::text[], %s::text[]) AS given (name, value)"


class SilentServer(psycopg.OperationalError):
    """Raised when the server did not answer in time. The outcome of the statement is unknown."""


def with_limits(conninfo: str) -> str:
    """Return the address with limits for connections that hang, and with the selection of the primary among several hosts. The
    parameters of the address take precedence."""
    return make_conninfo("", **{**_DEFAULTS, **conninfo_to_dict(conninfo)})


class Connection(AsyncConnection[TupleRow]):
    """A connection whose waits are limited. `patience` is the number of seconds to wait for an answer; None for maintenance, whose
    statements may take hours."""

    patience: float | None = None
    timeline = 0
    """The timeline of the server."""
    _primary: Primary | None = None

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.since = time.monotonic()
        self._loop = asyncio.get_running_loop()  # looked up once, because Python 3.11 makes a system call for it
        self._silent = False

    @classmethod
    async def connect(  # type: ignore[override]
        cls, conninfo: str, *, availability: Availability | None = None, **options: Any
    ) -> Self:
        """Connect through the breaker of the process. Raise `DatabaseLost` while the database is lost."""
        make = partial(super().connect, conninfo, **options)
        if availability is None:
            return await make()
        try:
            return await availability.unless_lost(make)
        except psycopg.OperationalError as fault:
            availability.suspect(fault)
            raise

    async def configure(
        self, primary: Primary, *, seconds: float | None, settings: Sequence[tuple[str, str]] = (), role: str | None = None
    ) -> None:
        """Set the parameters of the session.

        `seconds` limits the duration of a statement on the server; the client waits a little longer for the answer. `settings` are
        session settings, such as (`lock_timeout`, `5s`).
        """
        arguments = _session(seconds, settings)
        row = await (await self.execute(_SET, (list(arguments), list(arguments.values())))).fetchone()
        assert row is not None, "an aggregate gives a row"
        self.timeline = int(row[1], 16)
        primary.met(self.timeline, host=self.info.host, port=self.info.port)
        self._primary = primary
        if role is not None:
            await self.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        self.patience = None if seconds is None else seconds + MARGIN

    async def wait(self, *arguments: Any, **keywords: Any) -> Any:
        """Wait like psycopg, but for no longer than `patience`, and only while the server is the primary. Every wait for the server
        passes through this method. psycopg wakes up ten times a second, so that a program without an event loop can be
        interrupted; here once a second is enough."""
        self.check_primary()
        keywords.setdefault("interval", _INTERVAL)
        limit = None if self.patience is None else self._loop.call_later(self.patience, self._hang_up)
        try:
            result = await super().wait(*arguments, **keywords)
        except psycopg.OperationalError as fault:
            if self._silent:
                raise SilentServer(f"no answer within {self.patience:g} s") from fault
            raise
        finally:
            if limit is not None:
                limit.cancel()
        self.check_primary()
        self._check_encoding()
        return result

    def _check_encoding(self) -> None:
        """Close the connection and raise if the server, or a proxy in front of it, has switched to another encoding."""
        if self.pgconn.parameter_status(b"client_encoding") != b"UTF8":
            self.pgconn.finish()
            raise psycopg.OperationalError("the server does not use UTF8 on this connection")

    def check_primary(self) -> None:
        """Close the connection and raise if it leads to a former primary."""
        if self._primary is not None and self._primary.timeline != self.timeline:
            self.pgconn.finish()
            raise psycopg.OperationalError("another server is the primary now")

    def _hang_up(self) -> None:
        """End the wait by shutting down the socket. A cancellation would not help, since psycopg then asks the same server to stop
        the query."""
        self._silent = True
        with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(self.fileno())) as twin:
            twin.shutdown(socket.SHUT_RDWR)

    @property
    def idle(self) -> bool:
        """True if a statement can be sent.

        After an incomplete answer the server may still wait for something, or be inside a transaction; such a connection never
        becomes usable again.
        """
        return self.pgconn.transaction_status == TransactionStatus.IDLE

    async def listen(self, channel: str) -> None:
        await self.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))

    async def receive(self, *, quiet: float = QUIET) -> AsyncIterator[Notify]:
        """Yield the notifications of the channels that it listens to, without end. Raise if the server is gone or silent."""
        while True:
            async for notification in self.notifies(timeout=quiet):
                yield notification
            await self.execute("SELECT 1")


class BlockingConnection(psycopg.Connection[TupleRow]):
    """The counterpart of `Connection` for code that blocks in a separate thread."""

    patience: float | None = None

    def configure(self, *, seconds: float | None, settings: Sequence[tuple[str, str]] = ()) -> None:
        """Set the parameters of the session, like `Connection.configure`."""
        arguments = _session(seconds, settings)
        self.execute(_SET_ONLY, (list(arguments), list(arguments.values())))
        self.patience = None if seconds is None else seconds + MARGIN

    def wait(self, gen: PQGen[RV], *arguments: Any, **keywords: Any) -> RV:
        """Wait like psycopg, but for no longer than `patience`."""
        return super().wait(gen if self.patience is None else self._with_limit(gen, self.patience), *arguments, **keywords)

    def _with_limit(self, gen: PQGen[RV], patience: float) -> PQGen[RV]:
        """Run psycopg's wait generator, but raise `SilentServer` after `patience` seconds. A step ends with input from the server,
        or after a tenth of a second without any."""
        until = time.monotonic() + patience
        try:
            state = next(gen)
            while True:
                ready = yield state
                if time.monotonic() > until:
                    self.pgconn.finish()
                    raise SilentServer(f"no answer within {patience:g} s")
                state = gen.send(ready)
        except StopIteration as end:
            return cast("RV", end.value)


def _session(seconds: float | None, settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    limit = "0" if seconds is None else f"{int(seconds * 1000)}ms"
    return {**_SESSION, "statement_timeout": limit, **dict(settings)}
