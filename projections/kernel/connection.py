"""A connection to PostgreSQL that notices a server that says nothing, and tells the server when to give up the client.

A link that drops packets closes nothing, so nobody gets an error. What notices it on either side, and when, is in
docs/reference/guarantees.md. The kernel probes the other machine; but a proxy between them that has stopped answers such probes, so
each wait for an answer has an end too.
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

from projections.kernel.availability import Availability
from projections.kernel.primary import Primary

QUIET: Final = 5.0
"""Seconds without a notification, after which a listener asks the server for a sign of life."""
MARGIN: Final = 3.0
"""Seconds that an answer may come later than the server's own limit of the statement."""
_DEFAULTS: Final[Mapping[str, int | str]] = {
    "client_encoding": "UTF8",  # whatever the default of the database or the user
    "target_session_attrs": "read-write",  # of several hosts the primary
    "connect_timeout": 5,  # of each host
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_SESSION: Final[Mapping[str, str]] = {
    "search_path": "public",  # this and the next say what our statements mean: a user or a database may have other defaults
    "standard_conforming_strings": "on",
    "default_transaction_isolation": "read committed",  # whatever the server's default: else waiting writers fail
    "idle_session_timeout": "0",  # a listener may hear nothing for long
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
    """The server did not answer in time. Whether it did what it was asked is not known."""


def limited(conninfo: str) -> str:
    """The address with limits for connections that hang, and for the primary of several hosts. What it sets itself is kept."""
    return make_conninfo("", **{**_DEFAULTS, **conninfo_to_dict(conninfo)})


class Connection(AsyncConnection[TupleRow]):
    """`patience` is how many seconds it waits for an answer; None for maintenance, whose statements may take hours."""

    patience: float | None = None
    timeline = 0
    """That of the server."""
    _primary: Primary | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.since = time.monotonic()
        self._loop = asyncio.get_running_loop()  # asked for once: Python 3.11 makes a system call of it
        self._silent = False

    @classmethod
    async def connect(  # type: ignore[override]
        cls, conninfo: str, *, availability: Availability | None = None, **options: Any
    ) -> Self:
        """Through the breaker of its process. Raises `DatabaseLost` while the database is lost."""
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
        """`seconds` that a statement may take, by the clock of the server; beyond that the answer is not waited for. `settings` are
        of the session, such as (`lock_timeout`, `5s`)."""
        given = _session(seconds, settings)
        row = await (await self.execute(_SET, (list(given), list(given.values())))).fetchone()
        assert row is not None, "an aggregate gives a row"
        self.timeline = int(row[1], 16)
        primary.met(self.timeline, host=self.info.host, port=self.info.port)
        self._primary = primary
        if role is not None:
            await self.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        self.patience = None if seconds is None else seconds + MARGIN

    async def wait(self, *given: Any, **named: Any) -> Any:
        """As psycopg's, but for no longer than `patience`, and only while the server is the primary. Everything that waits for the
        server comes through here."""
        self.check_primary()
        limit = None if self.patience is None else self._loop.call_later(self.patience, self._hang_up)
        try:
            found = await super().wait(*given, **named)
        except psycopg.OperationalError as fault:
            if self._silent:
                raise SilentServer(f"no answer within {self.patience:g} s") from fault
            raise
        finally:
            if limit is not None:
                limit.cancel()
        self.check_primary()
        self._check_encoding()
        return found

    def _check_encoding(self) -> None:
        """Close a connection on which the server, or a proxy between, has gone over to another encoding, and raise."""
        if self.pgconn.parameter_status(b"client_encoding") != b"UTF8":
            self.pgconn.finish()
            raise psycopg.OperationalError("the server does not speak UTF8 on this connection")

    def check_primary(self) -> None:
        """Close a connection to a former primary, and raise."""
        if self._primary is not None and self._primary.timeline != self.timeline:
            self.pgconn.finish()
            raise psycopg.OperationalError("another server is the primary now")

    def _hang_up(self) -> None:
        """End the wait. To cancel it would not do: psycopg then asks the same server to stop the query."""
        self._silent = True
        with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(self.fileno())) as twin:
            twin.shutdown(socket.SHUT_RDWR)

    @property
    def idle(self) -> bool:
        """Whether a statement can be sent. After an answer that is none, the server may still wait for something, or be within a
        transaction: such a connection never becomes usable again by itself."""
        return self.pgconn.transaction_status == TransactionStatus.IDLE

    async def listen(self, channel: str) -> None:
        await self.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))

    async def heard(self, *, quiet: float = QUIET) -> AsyncIterator[Notify]:
        """The notifications of the channels that it listens to, without end. Raises when the server is gone, or says nothing."""
        while True:
            async for notification in self.notifies(timeout=quiet):
                yield notification
            await self.execute("SELECT 1")


class BlockingConnection(psycopg.Connection[TupleRow]):
    """As `Connection`, for code that blocks in a thread of its own."""

    patience: float | None = None

    def configure(self, *, seconds: float | None, settings: Sequence[tuple[str, str]] = ()) -> None:
        """As that of `Connection`."""
        given = _session(seconds, settings)
        self.execute(_SET_ONLY, (list(given), list(given.values())))
        self.patience = None if seconds is None else seconds + MARGIN

    def wait(self, gen: PQGen[RV], *given: Any, **named: Any) -> RV:
        """As psycopg's, but for no longer than `patience`."""
        return super().wait(gen if self.patience is None else self._bounded(gen, self.patience), *given, **named)

    def _bounded(self, gen: PQGen[RV], patience: float) -> PQGen[RV]:
        """The same steps: one for whatever came from the server, and one each tenth of a second without anything."""
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
