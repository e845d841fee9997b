"""Connections that stay open from test to test.

A new connection costs a process of the server, its caches, and the plans of all statements; most tests use three. Each test gets
kept ones as if they were new: checked, and with the settings of a new session. Tests of connections make a `Database` of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from select import select
from typing import Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from api.wiring.core import Core, core_on
from domain.kernel.clock import Clock
from projections.kernel.database.connection import Connection, with_limits
from projections.kernel.database.database import Database

_OF_EACH_CORE: Final = ("appender", "commit_notifier")
"""Others are new: one that listens, for example, would hear what earlier tests said."""


class KeptConnection(Connection):
    """Given back when it is closed."""

    home: list[KeptConnection]

    async def close(self) -> None:
        if self in self.home:
            return
        if not self.closed and self.info.transaction_status is TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                await self.execute("SET application_name = 'kept by tests'")
                self.home.append(self)
                return
        await super().close()

    async def end(self) -> None:
        await super().close()

    async def renew(self) -> bool:
        """Return True if the connection works; its session then has the settings of a new one."""
        with suppress(psycopg.Error):
            await self.execute("RESET ALL")
            return True
        await super().close()
        return False


class KeptDatabase(Database):
    """A test that closes it has closed it. At the end of a test it stays open."""

    def __init__(self, conninfo: str, *, role: str | None) -> None:
        super().__init__(conninfo, role=role)
        self._idle: defaultdict[str, list[KeptConnection]] = defaultdict(list)
        self._opened = False
        self.stays_open = False
        self.closed = False

    async def open(self) -> None:
        if not self._opened:
            await super().open()
            self._opened = True
        for pool in (self._pool, self.lists._pool):
            if _has_lost_connections(pool):
                await pool.check()

    async def close(self) -> None:
        if not self.stays_open:
            self.closed = True
            await super().close()

    async def end(self) -> None:
        if not self.closed:
            await super().close()
        for connections in self._idle.values():
            while connections:
                await connections.pop().end()

    async def _connect(self, purpose: str) -> Connection:
        if purpose not in _OF_EACH_CORE:
            return await super()._connect(purpose)
        connections = self._idle[purpose]
        while connections:
            connection = connections.pop()
            if await connection.renew():
                return connection
        connection = await KeptConnection.connect(
            with_limits(self.conninfo), autocommit=True, application_name=f"medialedger {purpose}"
        )
        connection.home = connections
        return connection


def _has_lost_connections(pool: AsyncConnectionPool[Connection]) -> bool:
    """Return True if the server has closed an idle connection: it sends nothing else to a session that asks for nothing. The pool
    itself would ask the server on each connection."""
    return any(connection.closed or select([connection], [], [], 0)[0] for connection in pool._pool)


class KeptDatabases:
    """The kept connections of one migrated database."""

    def __init__(self, conninfo: str, *, role: str | None) -> None:
        self._conninfo = conninfo
        self._role = role
        self._idle: list[KeptDatabase] = []

    @asynccontextmanager
    async def core(self, clock: Clock) -> AsyncIterator[Core]:
        """Yield the core as one process of the product has it."""
        database = self._idle.pop() if self._idle else KeptDatabase(self._conninfo, role=self._role)
        wired = core_on(database, clock=clock)
        await wired.start()
        try:
            yield wired
        finally:
            database.stays_open = True
            await wired.stop()
            database.stays_open = False
            if database.closed:
                await database.end()
            else:
                self._idle.append(database)

    async def end(self) -> None:
        for database in self._idle:
            await database.end()
