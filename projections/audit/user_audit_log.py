"""The event log as entries of the log store: which client made which change.

An entry's id is the log position. All entries are of level Info.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from domain.client.aggregate import Client
from domain.kernel.stream_name import StreamName
from projections.kernel.database import Database
from projections.kernel.page import Page
from projections.log.reader import head
from projections.logbook.logbook import Level, LogEntry, LogFilter

_ENTRIES = (
    "SELECT position, recorded_at, originator_id, topic, metadata->>'actor' FROM events"
    " WHERE position = ANY(%s::bigint[]) ORDER BY position "
)

# The last position that was recorded before a time, by binary search: positions have no gaps and times never decrease. It takes a
# few look-ups and does not depend on statistics of the table.
_BEFORE = """
WITH RECURSIVE halved (low, high) AS (
    SELECT 0::bigint, coalesce(max(last_position), 0) FROM commits
  UNION ALL
    SELECT CASE WHEN early THEN middle ELSE low END, CASE WHEN early THEN high ELSE middle - 1 END
    FROM (SELECT low, high, middle, (SELECT recorded_at < {moment} FROM events WHERE position = middle) AS early
          FROM (SELECT low, high, (low + high + 1) / 2 AS middle FROM halved WHERE low < high) AS step) AS seen
)
SELECT low FROM halved WHERE low = high
"""
_BEFORE_FROM = _BEFORE.format(moment="%s::timestamptz")
# Responses show milliseconds and the log stores microseconds: a time from a response means the end of its millisecond.
_UP_TO = _BEFORE.format(moment="%s::timestamptz + interval '1 millisecond'")

# The events of clients are next to each other in the index of streams.
_FIRST, _END = StreamName.bounds(Client.KIND)
_ON_CLIENTS = f"""
SELECT position FROM events
WHERE originator_id >= '{_FIRST}' AND originator_id < '{_END}' AND position BETWEEN %s AND %s
ORDER BY position
"""


class UserAuditLog:
    """Reads the event log itself, so it is always up to date."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self, selection: LogFilter) -> Page[LogEntry]:
        """Every change."""
        first, last = await self._span(selection)
        return await self._page(selection, range(first, last + 1))

    async def of_clients(self, selection: LogFilter) -> Page[LogEntry]:
        """Changes of clients, their roles and their keys. These are few, so all of their positions are read."""
        rows = await self._database.rows(_ON_CLIENTS, await self._span(selection))
        return await self._page(selection, [position for (position,) in rows])

    async def _page(self, selection: LogFilter, positions: Sequence[int]) -> Page[LogEntry]:
        if selection.descending:
            positions = positions[::-1]
        part = positions[selection.start : selection.start + selection.limit]
        rows = await self._database.rows(_ENTRIES + selection.direction, (list(part),)) if part else []
        return Page(selection.limit, len(positions), [_entry(row) for row in rows])

    async def _span(self, selection: LogFilter) -> tuple[int, int]:
        """The first and the last position of the time of a filter."""
        if selection.levels and Level.INFO not in selection.levels:
            return 1, 0
        first = 1 if selection.recorded_from is None else 1 + await self._before(_BEFORE_FROM, selection.recorded_from)
        last = await head(self._database) if selection.recorded_to is None else await self._before(_UP_TO, selection.recorded_to)
        return first, last

    async def _before(self, question: str, moment: datetime) -> int:
        row = await self._database.row(question, (moment,))
        return int(row[0]) if row else 0


def _entry(row: Sequence[Any]) -> LogEntry:
    position, recorded_at, stream, topic, actor = row
    kind, key = StreamName.read(stream)
    return LogEntry(position, recorded_at, Level.INFO, message=f"{topic} {kind} {key}", logger="audit", username=actor or "system")
