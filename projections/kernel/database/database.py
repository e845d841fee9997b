"""Connections to PostgreSQL, and the errors of a database that is down."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, Self

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from domain.kernel.errors import Unavailable
from projections.kernel.database import arrays
from projections.kernel.database.availability import Availability, DatabaseLost
from projections.kernel.database.connection import Connection, SilentServer, with_limits
from projections.kernel.database.fair_queue import FairQueue
from projections.kernel.database.page import LARGEST_CONTENT, ORDINARY, PageTooLarge, sized
from projections.kernel.database.primary import Primary

_PATIENCE: Final = 5.0


class LargeReads:
    """A single place for large reads. A task that reads a large result holds the place until the task ends.

    Each request has its own task, so by then its response is encoded and handed to the connection.
    """

    def __init__(self, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._place = asyncio.Semaphore()
        self._holder: asyncio.Task[Any] | None = None

    async def wait(self) -> None:
        """Wait until this task may read; return at once if it has read before. Raise `Unavailable` after too long a wait."""
        task = asyncio.current_task()
        if task is None or task is self._holder:
            return
        try:
            async with asyncio.timeout(self._patience):
                await self._place.acquire()
        except TimeoutError:
            raise Unavailable("too many large lists are being read") from None
        self._holder = task
        task.add_done_callback(self._ended)

    def _ended(self, _: object) -> None:
        self._holder = None
        self._place.release()


APP_ROLE = "medialedger_app"
_STATEMENT: Final = 10.0
"""The default limit in seconds of a statement on a connection outside the pools."""
_IDLE: Final = (("idle_in_transaction_session_timeout", "10s"),)
"""The session settings that keep a process that hangs inside a transaction from holding its locks."""
_RECONNECTING: Final = 0.25
"""The number of seconds after which a pool gives up making a new connection. The next query requests one at once, while the pool
itself would wait longer after each failure and so keep waiting when the database is back."""
_ANSWERING: Final = 2.0
_FREE: Final = 0.5
"""The number of seconds that a check of the open connections waits for a free one."""
_FAULTS = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, psycopg.errors.IdleInTransactionSessionTimeout)


class PoolLimits(NamedTuple):
    """The resources of the database that one process may use. `waiting` is the number of lists that may wait while all list
    connections are in use."""

    connections: int = 8
    list_connections: int = 4
    waiting: int = 1000
    seconds: float | None = 5.0
    """The duration that a query may take; None for maintenance, such as a rebuild, which reads the whole log."""


class Pool:
    """Pooled connections for queries. The server stops a query that takes too long, even if no client waits for it any more."""

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
        """Return the statistics of psycopg_pool: sizes, and how often and how long requests waited for a connection."""
        return self._pool.get_stats()

    async def _configure_pooled(self, connection: Connection) -> None:
        _adapt(connection)
        settings = (*self._search_path, *(() if self._seconds is None else _IDLE))
        await connection.configure(self._primary, seconds=self._seconds, settings=settings, role=self._role)

    @property
    def _search_path(self) -> Sequence[tuple[str, str]]:
        return () if self._schema is None else (("search_path", f"{self._schema}, public"),)

    @property
    def timeline(self) -> int:
        """The timeline of the primary. Data read on one timeline must not be used on another."""
        return self._primary.timeline

    async def rows(self, question: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[TupleRow]:
        """Return all rows of one query. Raise `Unavailable` if the database does not answer.

        A pooled connection may have broken since its last use, for example because the database was restarted. The query is then
        run once more on another connection, which is safe because it only reads.
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
        """Take a connection from the pool. If it breaks, the others are replaced too, since they lead to the same server."""
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
        """Return True if an open connection has reached the database since then, or reaches it now."""
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
        """Replace all connections, because those from before the loss may never answer again."""
        if not self._pool.closed:
            await self._pool.drain()

    async def row(self, question: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> TupleRow | None:
        rows = await self.rows(question, parameters)
        return rows[0] if rows else None

    async def page(
        self, page: str, count: str, *, content: Sequence[str], parameters: dict[str, Any], prepare: bool | None = None
    ) -> tuple[list[TupleRow], int]:
        """Return the rows of a page and the total, by one statement. Raise `PageTooLarge`.

        `content` names the columns that may be large; the first column is never null; `count` selects one number.
        """
        query = sized(page, count, content=content)
        size, rows, total = await self._page(query, {**parameters, "bytes": ORDINARY}, prepare=prepare)
        if size > ORDINARY:
            if size > LARGEST_CONTENT:
                raise PageTooLarge(size)
            await self._large_reads.wait()
            size, rows, total = await self._page(query, {**parameters, "bytes": LARGEST_CONTENT}, prepare=prepare)
            if size > LARGEST_CONTENT:  # the page has grown between the two queries
                raise PageTooLarge(size)
        return rows, total

    async def _page(self, query: str, parameters: dict[str, Any], *, prepare: bool | None) -> tuple[int, list[TupleRow], int]:
        with unavailable():
            async with self._pooled() as connection:
                rows = await (await connection.execute(query, parameters, binary=True, prepare=prepare)).fetchall()
        size, total = rows[0][:2]
        return size, [row[2:] for row in rows if row[2] is not None], total

    async def execute(self, statement: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> int:
        """Run one statement, and return the number of rows that it affected."""
        with unavailable():
            async with self._pooled() as connection:
                return (await connection.execute(statement, parameters)).rowcount

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Take a pooled connection for several statements. It is in autocommit mode until the caller opens a transaction."""
        with unavailable():
            async with self._pooled() as connection:
                yield connection


class ListPool(Pool):
    """The pool of lists, searches and the audit. The readers get its connections in turns, and no reader gets more than half of
    them."""

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

    Lists, searches and the audit may read much. They have separate connections, so that they never use up those of the other
    requests. Every connection assumes `role`, if there is one: it may append to the log but never change it. Tables are looked up
    in `schema` first, if there is one: its views have the form that this build knows, before the tables are rebuilt.
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
        primary, seconds = Primary(with_limits(conninfo)), limits.seconds
        available = Availability(self._try)
        super().__init__(
            primary, availability=available, role=role, schema=schema, size=limits.connections, seconds=seconds, least=1
        )
        self.conninfo = conninfo
        self.lists: Pool = ListPool(primary, availability=available, role=role, schema=schema, limits=limits)

    @classmethod
    def of_owner(cls, conninfo: str, *, size: int) -> Self:
        """Return a database for maintenance, as the user of the address."""
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
        """Return a connection outside the pool.

        `seconds` limits the duration of a statement, None for maintenance; `settings` are session settings, such as
        (`lock_timeout`, `5s`).
        """
        connection = await self._connect(purpose)
        _adapt(connection)
        await connection.configure(self._primary, seconds=seconds, settings=(*self._search_path, *settings), role=self._role)
        return connection

    async def _connect(self, purpose: str) -> Connection:
        return await Connection.connect(
            self._primary.conninfo,
            autocommit=True,
            application_name=f"medialedger {purpose}",
            availability=self.availability,
        )

    async def _try(self) -> None:
        """Make one connection, even while the database counts as lost."""
        name = "medialedger availability"
        async with await Connection.connect(self._primary.conninfo, autocommit=True, application_name=name) as connection:
            connection.patience = _ANSWERING
            await connection.configure(self._primary, seconds=_ANSWERING)


def _adapt(connection: Connection) -> None:
    arrays.register(connection)
    connection.prepare_threshold = 2


class unavailable:  # noqa: N801 - reads as a statement: `with unavailable():`
    """Raises `Unavailable` if the database is down or busy, or if a query took too long."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: object) -> None:
        if isinstance(fault, psycopg.errors.QueryCanceled):
            raise Unavailable("the database took too long to answer", retry_after=5) from fault
        if isinstance(fault, psycopg.errors.LockNotAvailable):
            raise Unavailable("the database is too busy") from fault
        if isinstance(fault, _FAULTS):
            raise Unavailable("the database does not answer") from fault
