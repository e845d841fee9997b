"""Reading the log in its order, to its end and beyond: the seam that followers build on.

Positions are dense and their order is commit order, so "after p" is all a reader has to remember; a hole would be damage.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.database import Database
from projections.log.announce import CHANNEL

POLL = 0.25

_PAGE = """
SELECT position, originator_id, originator_version, topic, event_id, state, metadata::text, recorded_at
FROM events WHERE position > %s ORDER BY position LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as the log holds it, still encoded."""

    position: int
    stream: str
    version: int
    topic: str
    event_id: UUID
    state: bytes
    metadata: str
    recorded_at: datetime


async def read(database: Database, after: int, *, limit: int = 500) -> Sequence[LoggedEvent]:
    """Up to `limit` events behind position `after`."""
    return [LoggedEvent(*row) for row in await database.rows(_PAGE, (after, limit))]


async def head(database: Database) -> int:
    """The position of the last event; 0 for an empty log."""
    found = await database.row("SELECT position FROM log_head")
    return int(found[0]) if found else 0


async def follow(database: Database, after: int, *, limit: int = 500) -> AsyncIterator[Sequence[LoggedEvent]]:
    """Pages of the log for ever: at once while there is more, then whenever it grows (NOTIFY, or a slow poll where that fails)."""
    listener = await _listening(database)
    try:
        while True:
            page = await read(database, after, limit=limit)
            if page:
                after = page[-1].position
                yield page
            else:
                listener = await _wait(database, listener)
    finally:
        await listener.close()


async def _listening(database: Database) -> AsyncConnection[TupleRow]:
    connection = await database.connect("listener")
    await connection.execute(f"LISTEN {CHANNEL}".encode())
    return connection


async def _wait(database: Database, listener: AsyncConnection[TupleRow]) -> AsyncConnection[TupleRow]:
    try:
        async for _ in listener.notifies(timeout=POLL, stop_after=1):
            pass
    except psycopg.OperationalError:
        await asyncio.sleep(POLL)
        with suppress(psycopg.Error):
            return await _listening(database)
    return listener
