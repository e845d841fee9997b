"""The log store of document 2, "Logs": what callers, and the service itself, wanted written down.

Not event-sourced. An entry is nobody's decision and nothing is folded from it, so it is not a domain fact: it is added once, in
a table of its own, and the application's role can neither change nor remove it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any

from domain.kernel.answers import RecordedAnswer
from domain.kernel.clock import Clock
from projections.kernel.database import Database
from projections.kernel.page import LARGEST, Page
from projections.kernel.where import Part, where
from projections.log.answers import keep


class Level(IntEnum):
    """How grave an entry is, numbered as decisions.md says."""

    TRACE = 0
    DEBUG = 1
    INFO = 2
    WARN = 3
    ERROR = 4
    FATAL = 5
    OFF = 6


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry. A text that nobody gave is empty."""

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


@dataclass(frozen=True, kw_only=True)
class LogFilter:
    """Which part of a log: `start` counts entries from 0, both times are inclusive, no levels are all levels."""

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


Seal = Callable[[LogEntry], RecordedAnswer | None]

_COLUMNS = (
    "SELECT id, recorded_at, level, call_site, exception, logger, machine_name, message, stack_trace, thread, username FROM logbook"
)
_ADD = """
INSERT INTO logbook (recorded_at, level, message, username, exception, stack_trace, logger, machine_name, subject, tags)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id
"""


class Logbook:
    """Adds entries and finds them again. `machine` is where the service runs."""

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
        seal: Seal | None = None,
    ) -> LogEntry:
        """Write an entry down. `subject` is the id of what it is about, `tags` are kept and not shown; `seal` makes the answer
        that is to be kept with it."""
        at = self._clock()
        values = (at, int(level), message, username, exception, stack_trace, logger, machine_name, subject, list(tags))
        async with self._database.connection() as connection, connection.transaction():
            added = await (await connection.execute(_ADD, values)).fetchone()
            assert added is not None, "RETURNING gives a row"
            entry = LogEntry(
                id=added[0],
                recorded_at=at,
                level=level,
                exception=exception,
                logger=logger,
                machine_name=machine_name,
                message=message,
                stack_trace=stack_trace,
                username=username,
            )
            answer = seal(entry) if seal is not None else None
            if answer is not None:
                await keep(connection, answer)
        return entry

    async def note(self, level: Level, message: str, *, subject: str) -> LogEntry:
        """The service's own entry about something."""
        return await self.add(level, message, username="system", logger="medialedger", machine_name=self._machine, subject=subject)

    async def find(self, key: int) -> LogEntry | None:
        found = await self._database.row(_COLUMNS + " WHERE id = %s", (key,))
        return _entry(found) if found is not None else None

    async def page(self, wanted: LogFilter) -> Page[LogEntry]:
        """Entries by id, and how many there are in all."""
        conditions, parameters = where(_parts(wanted))
        asked = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        page = f"{_COLUMNS}{asked} ORDER BY id {wanted.direction} LIMIT %(limit)s OFFSET %(start)s"
        count = f"SELECT count(*) FROM logbook{asked}"
        rows, total = await self._database.page(
            page, count, parameters={**parameters, "limit": wanted.limit, "start": wanted.start}
        )
        return Page(wanted.limit, total, [_entry(row) for row in rows])


def _parts(wanted: LogFilter) -> list[Part]:
    return [
        ("recorded_from", wanted.recorded_from, "recorded_at >= %(recorded_from)s"),
        ("recorded_to", wanted.recorded_to, "recorded_at <= %(recorded_to)s"),
        ("levels", [int(level) for level in wanted.levels], "level = ANY(%(levels)s::smallint[])"),
        ("subject", wanted.subject, "subject = %(subject)s"),
    ]


def _entry(row: Sequence[Any]) -> LogEntry:
    key, recorded_at, level, *texts = row
    return LogEntry(key, recorded_at, Level(level), *texts)
