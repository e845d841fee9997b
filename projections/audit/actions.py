"""The log of events as a log store shows it: who did what. Document 2, "Logs": `useraudit` and `usermanagement`.

decisions.md, "Health, logs": ids are log positions; the one has all writes with their client's name, the other those on clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from domain.client.aggregate import Client
from projections.kernel.database import Database
from projections.kernel.page import Page
from projections.log.tail import head
from projections.logbook.logbook import Level, LogEntry, LogFilter

_ENTRIES = (
    "SELECT position, recorded_at, originator_id, topic, metadata->>'actor' FROM events"
    " WHERE position = ANY(%s::bigint[]) ORDER BY position "
)

# The last position that was recorded before a moment: positions have no holes and times never decrease, so halving finds it in a
# handful of look-ups, whatever the planner knows of the table.
_BEFORE = """
WITH RECURSIVE halved (low, high) AS (
    SELECT 0::bigint, position FROM log_head
  UNION ALL
    SELECT CASE WHEN early THEN middle ELSE low END, CASE WHEN early THEN high ELSE middle - 1 END
    FROM (SELECT low, high, middle, (SELECT recorded_at < {moment} FROM events WHERE position = middle) AS early
          FROM (SELECT low, high, (low + high + 1) / 2 AS middle FROM halved WHERE low < high) AS step) AS seen
)
SELECT low FROM halved WHERE low = high
"""
_BEFORE_FROM = _BEFORE.format(moment="%s::timestamptz")
# Answers show milliseconds and the log keeps microseconds: a time that was read in an answer means its last one.
_UP_TO = _BEFORE.format(moment="%s::timestamptz + interval '1 millisecond'")

# What happened to clients lies together in the index of streams.
_ON_CLIENTS = f"""
SELECT position FROM events
WHERE originator_id >= '{Client.KIND}:' AND originator_id < '{Client.KIND};' AND position BETWEEN %s AND %s
ORDER BY position
"""


class Actions:
    """Reads the log of events directly, so it is never behind. All of it is of level Info."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self, wanted: LogFilter) -> Page[LogEntry]:
        """Everything that was done."""
        first, last = await self._span(wanted)
        return await self._page(wanted, range(first, last + 1))

    async def on_clients(self, wanted: LogFilter) -> Page[LogEntry]:
        """What was done to clients, their roles and their keys: little, so all of their positions are read."""
        rows = await self._database.rows(_ON_CLIENTS, await self._span(wanted))
        return await self._page(wanted, [position for (position,) in rows])

    async def _page(self, wanted: LogFilter, positions: Sequence[int]) -> Page[LogEntry]:
        if wanted.descending:
            positions = positions[::-1]
        part = positions[wanted.start : wanted.start + wanted.limit]
        rows = await self._database.rows(_ENTRIES + wanted.direction, (list(part),)) if part else []
        return Page(wanted.limit, len(positions), [_entry(row) for row in rows])

    async def _span(self, wanted: LogFilter) -> tuple[int, int]:
        """The first and the last position of the time that is asked for."""
        if wanted.levels and Level.INFO not in wanted.levels:
            return 1, 0
        first = 1 if wanted.recorded_from is None else 1 + await self._before(_BEFORE_FROM, wanted.recorded_from)
        last = await head(self._database) if wanted.recorded_to is None else await self._before(_UP_TO, wanted.recorded_to)
        return first, last

    async def _before(self, question: str, moment: datetime) -> int:
        found = await self._database.row(question, (moment,))
        return int(found[0]) if found else 0


def _entry(row: Sequence[Any]) -> LogEntry:
    position, recorded_at, stream, topic, actor = row
    kind, _, key = stream.partition(":")
    return LogEntry(position, recorded_at, Level.INFO, message=f"{topic} {kind} {key}", logger="audit", username=actor or "system")
