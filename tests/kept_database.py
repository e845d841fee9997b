"""Connections that stay open from test to test.

A new connection costs a process of the server, its caches, and the plans of all statements; most tests use three. Each test gets
kept ones as if they were new: checked, and with the settings of a new session. Tests of connections make a `Database` of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from projections.kernel.connection import Connection, limited
from projections.kernel.database import Database


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
        """Whether it works; then its session has the settings of a new one."""
        with suppress(psycopg.Error):
            await self.execute("RESET ALL")
            return True
        await super().close()
        return False


class KeptDatabase(Database):
    """`close` keeps the connections, and `end` closes them."""

    def __init__(self, conninfo: str, *, role: str | None) -> None:
        super().__init__(conninfo, role=role)
        self._kept: defaultdict[str, list[KeptConnection]] = defaultdict(list)
        self._opened = False

    async def open(self) -> None:
        if not self._opened:
            await super().open()
            self._opened = True
        await self._pool.check()

    async def close(self) -> None:
        """A test that uses the database after its end is not found here; tests of that have a `Database`."""

    async def end(self) -> None:
        if self._opened:
            await super().close()
        for kept in self._kept.values():
            while kept:
                await kept.pop().end()

    async def _connect(self, purpose: str) -> Connection:
        kept = self._kept[purpose]
        while kept:
            connection = kept.pop()
            if await connection.renew():
                return connection
        connection = await KeptConnection.connect(
            limited(self.conninfo), autocommit=True, application_name=f"medialedger {purpose}"
        )
        connection.home = kept
        return connection


class KeptDatabases:
    """Of one migrated database."""

    def __init__(self, conninfo: str, *, role: str | None) -> None:
        self._conninfo = conninfo
        self._role = role
        self._idle: list[KeptDatabase] = []

    @asynccontextmanager
    async def one(self) -> AsyncIterator[KeptDatabase]:
        """For one test and one core."""
        database = self._idle.pop() if self._idle else KeptDatabase(self._conninfo, role=self._role)
        yield database
        self._idle.append(database)

    async def end(self) -> None:
        for database in self._idle:
            await database.end()
