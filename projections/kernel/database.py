"""Connections to PostgreSQL, and the errors of a database that is down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from domain.kernel.errors import Unavailable
from projections.kernel import arrays

APP_ROLE = "medialedger_app"
READ_COMMITTED = "SET default_transaction_isolation = 'read committed'"  # whatever the server's default: else waiting writers fail
_FAULTS = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, psycopg.errors.IdleInTransactionSessionTimeout)


class Database:
    """A pool for queries, and single connections for the appender and for listeners.

    `role`, when given, is taken on by every connection: it may append to the log and never change it.
    """

    def __init__(self, conninfo: str, *, role: str | None = None, size: int = 8) -> None:
        self.conninfo = conninfo
        self._role = role
        self._pool: AsyncConnectionPool[AsyncConnection[TupleRow]] = AsyncConnectionPool(
            conninfo,
            min_size=1,
            max_size=size,
            open=False,
            timeout=5,
            kwargs={"autocommit": True, "application_name": "medialedger"},
            configure=self._configure,
        )

    async def open(self) -> None:
        with unavailable():
            await self._pool.open(wait=True, timeout=10)

    async def close(self) -> None:
        await self._pool.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self, purpose: str, *, settings: Sequence[tuple[str, str]] = ()) -> AsyncConnection[TupleRow]:
        """A connection outside the pool. `settings` are session settings, such as (`statement_timeout`, `5s`)."""
        connection = await AsyncConnection.connect(
            self.conninfo, autocommit=True, application_name=f"medialedger {purpose}", connect_timeout=5
        )
        await self._configure(connection)
        for name, value in settings:
            await connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        return connection

    async def _configure(self, connection: AsyncConnection[TupleRow]) -> None:
        arrays.register(connection)
        connection.prepare_threshold = 2
        await connection.execute(READ_COMMITTED)
        if self._role is not None:
            await connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(self._role)))

    async def rows(self, question: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[TupleRow]:
        """All rows of one query. Raises `Unavailable` when the database does not answer.

        A pooled connection may be broken since its last use (the database was started again): then the query is run once more,
        on another connection. It only reads, so that does no harm.
        """
        with unavailable():
            try:
                return await self._rows(question, parameters)
            except psycopg.OperationalError as fault:
                if isinstance(fault, PoolTimeout) or not (fault.sqlstate or "57P").startswith("57P"):
                    raise
                await self._pool.check()
                return await self._rows(question, parameters)

    async def _rows(self, question: str, parameters: Sequence[Any] | dict[str, Any]) -> list[TupleRow]:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(question, parameters, binary=True)
            return await cursor.fetchall()

    async def row(self, question: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> TupleRow | None:
        found = await self.rows(question, parameters)
        return found[0] if found else None

    async def page(
        self, page: str, count: str, *, parameters: dict[str, Any], prepare: bool | None = None
    ) -> tuple[list[TupleRow], int]:
        """The rows of a page and the total, in one round trip."""
        with unavailable():
            async with self._pool.connection() as connection, connection.pipeline():
                rows = await connection.execute(page, parameters, binary=True, prepare=prepare)
                total = await connection.execute(count, parameters, binary=True, prepare=prepare)
                counted = await total.fetchone()
                return await rows.fetchall(), counted[0] if counted else 0

    async def execute(self, statement: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> int:
        """Run one statement; how many rows it touched."""
        with unavailable():
            async with self._pool.connection() as connection:
                return (await connection.execute(statement, parameters)).rowcount

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """A pooled connection for several statements, autocommit until the caller opens a transaction."""
        with unavailable():
            async with self._pool.connection() as connection:
                yield connection


class unavailable:  # noqa: N801 - reads as a statement: `with unavailable():`
    """Raises `Unavailable` when the database is down."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: object) -> None:
        if isinstance(fault, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable):
            raise Unavailable("the database is too busy") from fault
        if isinstance(fault, _FAULTS):
            raise Unavailable("the database does not answer") from fault
