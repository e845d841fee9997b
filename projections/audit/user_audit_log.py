"""The event log as entries of the log store: which client made which change.

The id of an entry is twice its position in the log. All entries have the level Info.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.client.aggregate import Client
from domain.kernel.stream_name import StreamName
from projections.kernel.database.database import Pool
from projections.kernel.database.page import Page
from projections.log.bisection import position_at, position_before
from projections.log.reader import head
from projections.log_store.log_store import Level, LogEntry, LogFilter

_ENTRIES = (
    "SELECT position, recorded_at, originator_id, topic, metadata->>'actor', metadata->>'end_user' FROM events"
    " WHERE position = ANY(%s::bigint[]) ORDER BY position "
)

# Responses show milliseconds and the log stores microseconds: a time from a response means the end of its millisecond.
_REST_OF_MILLISECOND = timedelta(microseconds=999)
_LAST = datetime.max.replace(tzinfo=UTC)

# The view also includes deleted clients.
_ON_CLIENTS = f"""
SELECT v.position FROM client_view c JOIN stream_versions v ON v.stream = stream_key('{Client.KIND}:' || c.name)
WHERE v.position BETWEEN %s AND %s ORDER BY v.position
"""


class UserAuditLog:
    """Reads the event log itself, so it is always up to date."""

    def __init__(self, database: Pool) -> None:
        self._database = database

    async def find(self, key: int) -> LogEntry | None:
        """Return the entry with an id; None if it is not one of this log."""
        row = await self._database.row(_ENTRIES, ([key // 2],)) if key % 2 == 0 else None
        return None if row is None else _entry(row)

    async def all(self, selection: LogFilter) -> Page[LogEntry]:
        """Return a page of all changes."""
        first, last = await self._span(selection)
        return await self._page(selection, range(first, last + 1))

    async def of_clients(self, selection: LogFilter) -> Page[LogEntry]:
        """Return a page of the changes of clients, their roles and their keys. These are few, so all of their positions
        are read."""
        rows = await self._database.rows(_ON_CLIENTS, await self._span(selection))
        return await self._page(selection, [position for (position,) in rows])

    async def _page(self, selection: LogFilter, positions: Sequence[int]) -> Page[LogEntry]:
        if selection.descending:
            positions = positions[::-1]
        part = positions[selection.start : selection.start + selection.limit]
        rows = await self._database.rows(_ENTRIES + selection.direction, (list(part),)) if part else []
        return Page(selection.limit, len(positions), [_entry(row) for row in rows])

    async def _span(self, selection: LogFilter) -> tuple[int, int]:
        """Return the first and the last position of the time of a filter."""
        if selection.levels and Level.INFO not in selection.levels:
            return 1, 0
        pool, since, until = self._database, selection.recorded_from, selection.recorded_to
        first = 1 if since is None else 1 + await position_before(pool, since)
        last = await head(pool) if until is None else await position_at(pool, until + min(_REST_OF_MILLISECOND, _LAST - until))
        return first, last


def _entry(row: Sequence[Any]) -> LogEntry:
    position, recorded_at, stream, topic, actor, end_user = row
    kind, key = StreamName.read(stream)
    by = actor or "system"
    username = by if end_user is None else f"{by}:{end_user}"
    return LogEntry(2 * position, recorded_at, Level.INFO, message=f"{topic} {kind} {key}", logger="audit", username=username)
