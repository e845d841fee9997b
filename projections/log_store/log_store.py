"""The log store: messages of callers and of the service itself.

It is not event-sourced: no rule depends on an entry and no state is derived from it. Entries are rows of a table; the database role
of the application can add them, but not change or delete them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from domain.kernel.idempotency import IdempotencyKey, IdempotencyRecord
from projections.kernel.database.database import Database
from projections.kernel.database.page import LARGEST, Page
from projections.kernel.sql.where import Part, where
from projections.log.idempotency import record_key

_log = logging.getLogger(__name__)


class Level(IntEnum):
    """The level of an entry. The numbers are part of the API."""

    TRACE = 0
    DEBUG = 1
    INFO = 2
    WARN = 3
    ERROR = 4
    FATAL = 5
    OFF = 6


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry. Missing texts are empty. The id of an entry of the log store is odd, that of an entry of the audit log even, so an
    id names one entry on all paths."""

    id: int
    recorded_at: datetime
    level: Level
    call_site: str = ""
    exception: str = ""
    logger: str = ""
    machine_name: str = ""
    message: str = ""
    stack_trace: str = ""
    thread: str = ""
    username: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """An entry of the service itself to add. `subject` is the id of what it is about."""

    level: Level
    message: str
    subject: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class LogFilter:
    """A selection of entries. `start` counts entries from 0, both times are inclusive, and no levels means all levels."""

    start: int = 0
    size: int = 20
    recorded_from: datetime | None = None
    recorded_to: datetime | None = None
    levels: tuple[Level, ...] = ()
    subject: str | None = None
    descending: bool = False

    @property
    def limit(self) -> int:
        return min(self.size, LARGEST)

    @property
    def direction(self) -> str:
        return "DESC" if self.descending else "ASC"


_SERVICE: Final = "system"
_LOGGER: Final = "medialedger"
_COLUMNS = (
    "SELECT id, recorded_at, level, call_site, exception, logger, machine_name, message, stack_trace, thread, username FROM logbook"
)
_ADD = """
INSERT INTO logbook (recorded_at, level, message, username, exception, stack_trace, logger, machine_name, subject, tags)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id
"""


class Logbook:
    """Adds and finds entries. `machine` is the host of the service."""

    def __init__(self, database: Database, clock: Clock, *, machine: str) -> None:
        self._database = database
        self._clock = clock
        self._machine = machine

    async def add(
        self,
        level: Level,
        message: str,
        *,
        username: str,
        exception: str = "",
        stack_trace: str = "",
        logger: str = "",
        machine_name: str = "",
        subject: str | None = None,
        tags: Sequence[str] = (),
        idempotency: IdempotencyKey | None = None,
    ) -> LogEntry:
        """Add an entry, and return it. `subject` is the id of what it is about; `tags` are stored and not shown.

        The idempotency key is stored in the same transaction, with the entry's id as the result.
        """
        at = self._clock()
        values = (at, int(level), message, username, exception, stack_trace, logger, machine_name, subject, list(tags))
        async with self._database.connection() as connection, connection.transaction():
            added = await (await connection.execute(_ADD, values)).fetchone()
            assert added is not None, "RETURNING gives a row"
            entry = LogEntry(
                id=_id(added[0]),
                recorded_at=at,
                level=level,
                exception=exception,
                logger=logger,
                machine_name=machine_name,
                message=message,
                stack_trace=stack_trace,
                username=username,
            )
            if idempotency is not None:
                await record_key(connection, IdempotencyRecord(idempotency, (), {"id": entry.id}))
        return entry

    async def note(self, level: Level, message: str, *, subject: str) -> LogEntry:
        """Add an entry of the service itself."""
        return await self.add(level, message, username=_SERVICE, logger=_LOGGER, machine_name=self._machine, subject=subject)

    async def insert(self, connection: AsyncConnection[TupleRow], notes: Sequence[Note]) -> None:
        """Add entries of the service itself in the transaction of the caller."""
        for note in notes:
            entry = (note.at, int(note.level), note.message, _SERVICE, "", "", _LOGGER, self._machine, note.subject)
            await connection.execute(_ADD, (*entry, list[str]()))

    async def warn(self, message: str, *, subject: str) -> None:
        """Add a warning of the service about a change that was made. If it cannot be stored, it is logged."""
        try:
            await self.note(Level.WARN, message, subject=subject)
        except Unavailable as fault:
            _log.warning("%s (of %s; not in the log store: %s)", message, subject, fault)

    async def find(self, key: int) -> LogEntry | None:
        row = await self._database.row(_COLUMNS + " WHERE id = %s", (_number(key),)) if key % 2 else None
        return _entry(row) if row is not None else None

    async def page(self, selection: LogFilter) -> Page[LogEntry]:
        """Return a page of entries by id, and the number of all that match."""
        conditions, parameters = where(_parts(selection))
        condition = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        page = f"{_COLUMNS}{condition} ORDER BY id {selection.direction} LIMIT %(limit)s OFFSET %(start)s"
        count = f"SELECT count(*) FROM logbook{condition}"
        rows, total = await self._database.lists.page(
            page,
            count,
            content=("message", "exception", "stack_trace"),
            parameters={**parameters, "limit": selection.limit, "start": selection.start},
        )
        return Page(selection.limit, total, [_entry(row) for row in rows])


def _id(number: int) -> int:
    return 2 * number - 1


def _number(key: int) -> int:
    return (key + 1) // 2


def _parts(selection: LogFilter) -> list[Part]:
    return [
        ("recorded_from", selection.recorded_from, "recorded_at >= %(recorded_from)s"),
        ("recorded_to", selection.recorded_to, "recorded_at <= %(recorded_to)s"),
        ("levels", [int(level) for level in selection.levels], "level = ANY(%(levels)s::smallint[])"),
        ("subject", selection.subject, "subject = %(subject)s"),
    ]


def _entry(row: Sequence[Any]) -> LogEntry:
    number, recorded_at, level, *texts = row
    return LogEntry(_id(number), recorded_at, Level(level), *texts)
