"""Reading the log in its order.

Positions are dense and their order is commit order, so a reader has to remember one position only. A gap would be damage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.kernel.stream_name import StreamName
from projections.kernel.arrays import bigints
from projections.kernel.database import Database

_COLUMNS = """
SELECT position, originator_id, originator_version, topic, event_id, state, metadata::text, recorded_at FROM events
"""
_PAGE = _COLUMNS + "WHERE position > %s ORDER BY position LIMIT %s"
_WINDOW = _COLUMNS + "WHERE position > %s AND position <= %s AND split_part(topic, '.', 1) = ANY(%s::text[]) ORDER BY position"
_SOME = """
SELECT count(*) FROM (
    SELECT FROM events WHERE position > %s AND position <= %s AND split_part(topic, '.', 1) = ANY(%s::text[]) LIMIT %s
) AS first
"""
HEAD = "SELECT coalesce(max(last_position), 0) FROM commits"
_AT = _COLUMNS + "WHERE position = ANY(%s::bigint[]) ORDER BY position"


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

    @property
    def kind(self) -> str:
        return self.topic.partition(".")[0]

    @property
    def key(self) -> str:
        """The aggregate's id."""
        return StreamName.read(self.stream).key


async def read(database: Database, after: int, *, limit: int = 500) -> Sequence[LoggedEvent]:
    """Up to `limit` events after position `after`."""
    return [LoggedEvent(*row) for row in await database.rows(_PAGE, (after, limit))]


async def head(database: Database) -> int:
    """The position of the last event; 0 for an empty log."""
    found = await database.row(HEAD)
    return int(found[0]) if found else 0


async def window(database: Database, after: int, *, through: int, kinds: Collection[str] | None = None) -> Sequence[LoggedEvent]:
    """The events after `after` up to `through`, of all aggregates or of these kinds."""
    if kinds is None:
        return await read(database, after, limit=through - after)
    return [LoggedEvent(*row) for row in await database.rows(_WINDOW, (after, through, list(kinds)))]


async def some_of(database: Database, after: int, *, through: int, kinds: Collection[str], most: int) -> int:
    """How many events of these kinds there are after `after` up to `through`, counted up to `most`."""
    found = await database.row(_SOME, (after, through, list(kinds), most))
    return int(found[0]) if found else 0


async def at(database: Database, positions: Sequence[int]) -> Sequence[LoggedEvent]:
    """The events at these positions."""
    return [LoggedEvent(*row) for row in await database.rows(_AT, (bigints(positions),))]
