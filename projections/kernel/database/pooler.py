"""Detects a pooler, such as PgBouncer, that gives a session to another client after each transaction."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final

import psycopg

from projections.kernel.database.connection import Connection, SilentServer, with_limits

_OTHERS: Final = 5
_PATIENCE: Final = 5.0
_PID: Final = "SELECT pg_backend_pid()"


async def shares_sessions(connection: Connection, conninfo: str) -> bool:
    """Return True if this connection has no session of its own at `conninfo`. Its role, prepared statements and notifications would
    then be another client's.

    A server reports at the login which process serves the client. A pooler cannot, because the process may change. In that case
    other clients begin transactions: in transaction mode they take the session that was used last, and this connection gets another
    one.
    """
    if connection.info.backend_pid == await _backend(connection):
        return False
    connection.patience = _PATIENCE
    first = await _backend(connection)
    async with AsyncExitStack() as transactions:
        for _ in range(_OTHERS):
            other = await transactions.enter_async_context(await _connect(conninfo))
            try:
                await transactions.enter_async_context(other.transaction())
                taken = await _backend(other)
            except SilentServer:
                return False  # each client keeps its session, and there are no more
            except psycopg.Error:
                return True  # statement mode allows no transactions
            try:
                if taken == first or await _backend(connection) != first:
                    return True
            except SilentServer:
                return True  # the connection waits for the session that the other client has
    return False


async def _connect(conninfo: str) -> Connection:
    connection = await Connection.connect(with_limits(conninfo), autocommit=True, application_name="medialedger pooler")
    connection.patience = _PATIENCE
    return connection


async def _backend(connection: Connection) -> int:
    row = await (await connection.execute(_PID)).fetchone()
    assert row is not None, "a SELECT without FROM gives a row"
    return int(row[0])
