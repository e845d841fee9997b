"""Connections to PostgreSQL, and the errors of a database that is down."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, Self

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from domain.kernel.errors import Unavailable
from projections.kernel import arrays
from projections.kernel.availability import Availability, DatabaseLost
from projections.kernel.connection import Connection, SilentServer, limited
from projections.kernel.fair_queue import FairQueue
from projections.kernel.large_reads import LargeReads
from projections.kernel.page import LARGEST_CONTENT, ORDINARY, PageTooLarge, sized
from projections.kernel.primary import Primary

APP_ROLE = "medialedger_app"
_STATEMENT: Final = 10.0
"""Seconds that a statement of a connection outside the pools may take, unless it says otherwise."""
_IDLE: Final = (("idle_in_transaction_session_timeout", "10s"),)
"""A process that hangs within a transaction must not keep its locks."""
_RECONNECTING: Final = 0.25
"""Seconds after which a pool gives up a new connection. The next query asks for one at once; the pool itself would wait longer
after each failure, and so go on waiting when the database is back."""
_ANSWERING: Final = 2.0
_FREE: Final = 0.5
"""Seconds that a look at the open connections waits for one that is not in use."""
_FAULTS = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, psycopg.errors.IdleInTransactionSessionTimeout)


class PoolLimits(NamedTuple):
    """What one process may take of the database. Of the lists that find all their connections in use, `waiting` wait for one."""

    connections: int = 8
    list_connections: int = 4
    waiting: int = 1000
    seconds: float | None = 5.0
    """How long a query may take; None for maintenance, such as a rebuild, which reads the whole log."""


class Pool:
    """Pooled connections for queries. The server stops a query that takes too long, whether or not anybody waits for it still."""

    def __init__(
        self,
        primary: Primary,
        *,
        availability: Availability,
        role: str | None,
        schema: str | None = None,
        size: int,
        seconds: float | None,
        least: int = 0,
    ) -> None:
        self._primary = primary
        self.availability = availability
        self._role = role
        self._schema = schema
        self._seconds = seconds
        self._renewed = self._answered = float("-inf")
        self._large_reads = LargeReads()
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            lambda: primary.conninfo,
            connection_class=Connection,
            min_size=least,
            max_size=size,
            open=False,
            timeout=5,
            reconnect_timeout=_RECONNECTING,
            kwargs={"autocommit": True, "application_name": "medialedger", "availability": availability},
            configure=self._configure_pooled,
        )
        availability.pools.append(self)

    async def open(self) -> None:
        with unavailable():
            await self._pool.open(wait=True, timeout=10)

    async def close(self) -> None:
        await self._pool.close()

    def stats(self) -> Mapping[str, int]:
        """As psycopg_pool counts: sizes, and how often and how long there was no free connection."""
        return self._pool.get_stats()

    async def _configure_pooled(self, connection: Connection) -> None:
        _adapt(connection)
        settings = (*self._searched, *(() if self._seconds is None else _IDLE))
        await connection.configure(self._primary, seconds=self._seconds, settings=settings, role=self._role)

    @property
    def _searched(self) -> Sequence[tuple[str, str]]:
        return () if self._schema is None else (("search_path", f"{self._schema}, public"),)

    @property
    def timeline(self) -> int:
        """The timeline of the primary. What was read on one must not be used on another."""
        return self._primary.timeline

    async def rows(self, question: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[TupleRow]:
        """All rows of one query. Raises `Unavailable` when the database does not answer.

        A pooled connection may be broken since its last use (the database was started again): then the query is run once more,
        on another connection. It only reads, so that does no harm.
        """
        with unavailable():
            try:
                return await self._rows(question, parameters)
            except (PoolTimeout, SilentServer, DatabaseLost):
                raise
            except psycopg.OperationalError as fault:
                if not (fault.sqlstate or "57P").startswith("57P"):
                    raise
                return await self._rows(question, parameters)

    async def _rows(self, question: str, parameters: Sequence[Any] | dict[str, Any]) -> list[TupleRow]:
        async with self._pooled() as connection:
            cursor = await connection.execute(question, parameters, binary=True)
            return await cursor.fetchall()

    @asynccontextmanager
    async def _pooled(self) -> AsyncIterator[Connection]:
        """A connection of the pool. When it breaks, the others are replaced too: they lead to the same server by the same way."""
        connection = await self.availability.unless_lost(self._pool.getconn)
        try:
            async with connection:
                yield connection
            self._answered = time.monotonic()
        except psycopg.OperationalError as fault:
            if connection.closed:
                self.availability.suspect(fault)
            if connection.closed and connection.since > self._renewed:
                self._renewed = time.monotonic()
                await self._pool.drain()
            raise
        finally:
            await self._pool.putconn(connection)

    async def answers(self, since: float) -> bool:
        """Whether an open connection has reached the database since then, or does."""
        if self._answered >= since or not self._pool.get_stats().get("pool_size"):
            return self._answered >= since
        try:
            async with self._pool.connection(timeout=_FREE) as connection:
                before, connection.patience = connection.patience, _ANSWERING
                await connection.execute("SELECT 1")
                connection.patience = before
        except (psycopg.Error, PoolTimeout):
            return self._answered >= since
        return True

    async def renew(self) -> None:
        """Replace all connections: those of before the loss may never answer again."""
        if not self._pool.closed:
            await self._pool.drain()

    async def row(self, question: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> TupleRow | None:
        found = await self.rows(question, parameters)
        return found[0] if found else None

    async def page(
        self, page: str, count: str, *, content: Sequence[str], parameters: dict[str, Any], prepare: bool | None = None
    ) -> tuple[list[TupleRow], int]:
        """The rows of a page and the total, by one statement. `content` are the columns that may be large; the first column is
        never null; `count` selects one number. Raises `PageTooLarge`."""
        query = sized(page, count, content=content)
        size, rows, total = await self._page(query, {**parameters, "bytes": ORDINARY}, prepare=prepare)
        if size > ORDINARY:
            if size > LARGEST_CONTENT:
                raise PageTooLarge(size)
            await self._large_reads.wait()
            size, rows, total = await self._page(query, {**parameters, "bytes": LARGEST_CONTENT}, prepare=prepare)
            if size > LARGEST_CONTENT:  # it has grown in between
                raise PageTooLarge(size)
        return rows, total

    async def _page(self, query: str, parameters: dict[str, Any], *, prepare: bool | None) -> tuple[int, list[TupleRow], int]:
        with unavailable():
            async with self._pooled() as connection:
                rows = await (await connection.execute(query, parameters, binary=True, prepare=prepare)).fetchall()
        size, total = rows[0][:2]
        return size, [row[2:] for row in rows if row[2] is not None], total

    async def execute(self, statement: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> int:
        """Run one statement; how many rows it touched."""
        with unavailable():
            async with self._pooled() as connection:
                return (await connection.execute(statement, parameters)).rowcount

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A pooled connection for several statements, autocommit until the caller opens a transaction."""
        with unavailable():
            async with self._pooled() as connection:
                yield connection


class ListPool(Pool):
    """The pool of lists, searches and the audit. The readers get its connections in turns, and none has more than half of them."""

    def __init__(
        self, primary: Primary, *, availability: Availability, role: str | None, schema: str | None, limits: PoolLimits
    ) -> None:
        size = limits.list_connections
        super().__init__(primary, availability=availability, role=role, schema=schema, size=size, seconds=limits.seconds)
        each, waiting = (size + 1) // 2, limits.waiting
        self._queue = FairQueue(size, each=each, waiting=waiting, refusal=_too_many_lists)

    def stats(self) -> Mapping[str, int]:
        return Counter(super().stats()) + Counter(self._queue.stats())

    @asynccontextmanager
    async def _pooled(self) -> AsyncIterator[Connection]:
        taken = await self.availability.unless_lost(self._queue.take)
        try:
            async with super()._pooled() as connection:
                yield connection
        finally:
            self._queue.leave(taken)


def _too_many_lists() -> Unavailable:
    return Unavailable("too many lists are being read")


class Database(Pool):
    """The pool of writes, authentication and reads by key, another pool for `lists`, and single connections.

    Lists, searches and the audit may read much. They have connections of their own, so that the others are never taken by them.
    `role`, when given, is taken on by every connection: it may append to the log and never change it. Tables are looked up in
    `schema` first, where there is one: it has views in the form that this build knows, before they are built.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        role: str | None = None,
        schema: str | None = None,
        size: int = 8,
        limits: PoolLimits | None = None,
    ) -> None:
        limits = limits or PoolLimits(size)
        primary, seconds = Primary(limited(conninfo)), limits.seconds
        available = Availability(self._try)
        super().__init__(
            primary, availability=available, role=role, schema=schema, size=limits.connections, seconds=seconds, least=1
        )
        self.conninfo = conninfo
        self.lists: Pool = ListPool(primary, availability=available, role=role, schema=schema, limits=limits)

    @classmethod
    def of_owner(cls, conninfo: str, *, size: int) -> Self:
        """For maintenance, as the user of the address."""
        return cls(conninfo, limits=PoolLimits(size, seconds=None))

    async def open(self) -> None:
        self.availability.start()
        await super().open()
        await self.lists.open()

    async def close(self) -> None:
        await self.availability.stop()
        await self.lists.close()
        await super().close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(
        self, purpose: str, *, seconds: float | None = _STATEMENT, settings: Sequence[tuple[str, str]] = ()
    ) -> Connection:
        """A connection outside the pool. `seconds` that a statement may take, None for maintenance; `settings` are of the session,
        such as (`lock_timeout`, `5s`)."""
        connection = await self._connect(purpose)
        _adapt(connection)
        await connection.configure(self._primary, seconds=seconds, settings=(*self._searched, *settings), role=self._role)
        return connection

    async def _connect(self, purpose: str) -> Connection:
        return await Connection.connect(
            self._primary.conninfo,
            autocommit=True,
            application_name=f"medialedger {purpose}",
            availability=self.availability,
        )

    async def _try(self) -> None:
        """One connection, whatever is known of the database."""
        name = "medialedger availability"
        async with await Connection.connect(self._primary.conninfo, autocommit=True, application_name=name) as connection:
            connection.patience = _ANSWERING
            await connection.configure(self._primary, seconds=_ANSWERING)


def _adapt(connection: Connection) -> None:
    arrays.register(connection)
    connection.prepare_threshold = 2


class unavailable:  # noqa: N801 - reads as a statement: `with unavailable():`
    """Raises `Unavailable` when the database is down or busy, and for a query that took too long."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: object) -> None:
        if isinstance(fault, psycopg.errors.QueryCanceled):
            raise Unavailable("the database took too long to answer", retry_after=5) from fault
        if isinstance(fault, psycopg.errors.LockNotAvailable):
            raise Unavailable("the database is too busy") from fault
        if isinstance(fault, _FAULTS):
            raise Unavailable("the database does not answer") from fault
