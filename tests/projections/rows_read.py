"""Counts the rows of a table that the server reads for a query."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from projections.kernel.database.connection import Connection
from projections.kernel.database.database import Database


class CountingDatabase(Database):
    """Asks everything in one transaction, whose reads the server counts by themselves. The common counters hold what other sessions
    read too, such as those of earlier tests, and each session adds to them at its own time."""

    transaction: Connection

    @asynccontextmanager
    async def _pooled(self) -> AsyncIterator[Connection]:
        yield self.transaction

    async def rows_read(self, table: str) -> tuple[int, int]:
        """Return the numbers of rows read so far by scans of the table and through its indexes."""
        row = await self.row(
            "SELECT seq_tup_read, coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = %s", (table,)
        )
        assert row is not None, table
        return row[0], row[1]


@asynccontextmanager
async def counting(conninfo: str) -> AsyncIterator[CountingDatabase]:
    database = CountingDatabase(conninfo, size=1)
    database.transaction = await database.connect("counting")
    try:
        async with database.transaction.transaction():
            await database.execute("SET LOCAL max_parallel_workers_per_gather = 0")  # they count what they read elsewhere
            yield database
    finally:
        await database.transaction.close()
