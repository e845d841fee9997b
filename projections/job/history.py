"""A job's log: its domain events from the event log, and the lines that its steps wrote.

Nothing is stored twice: both are read from where they are stored. The log is served at docs/reference/api/job-engine.md#job-log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from heapq import merge
from typing import Final

from pydantic_core import from_json

from domain.job.aggregate import Job
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from projections.kernel.database.database import Pool
from projections.kernel.database.page import LARGEST, within_bytes

_SHIFT: Final = 20
"""The number of an event is its version times 2^20. Lines that are written before the next event have the numbers after that."""

_EVENTS = within_bytes(
    "SELECT version, topic, state, metadata::text, recorded_at FROM stream_events"
    " WHERE stream = stream_key(%s) AND version > %s ORDER BY version LIMIT %s",
    order="version",
)
_LINES = within_bytes(
    "SELECT id, task, severity, message, created_at, program FROM job_log_lines WHERE job = %s AND id > %s ORDER BY id LIMIT %s",
    order="id",
    content="message",
)


@dataclass(frozen=True, slots=True)
class LogEvent:
    """A domain event of the job, caused by `actor`."""

    version: int
    actor: str
    event: DomainEvent
    at: datetime

    @property
    def number(self) -> int:
        return self.version << _SHIFT


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a step wrote. `program` is set if an external program wrote it."""

    number: int
    task: int
    severity: int
    message: str
    at: datetime
    program: str | None = None


@dataclass(frozen=True, slots=True)
class LogCursor:
    """The progress of a reader: the version of the last event and the number of the last line.

    A line that is committed while an event is appended may have a lower number than the event and be read after it.
    """

    version: int = 0
    line: int = 0

    def after(self, entry: LogEvent | LogLine) -> LogCursor:
        if isinstance(entry, LogEvent):
            return LogCursor(max(self.version, entry.version), self.line)
        return LogCursor(self.version, max(self.line, entry.number))


BEGINNING = LogCursor()


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries of a log. If `more`, there are later entries, which `since` returns after the last of these."""

    entries: Sequence[LogEvent | LogLine]
    more: bool

    def end(self, cursor: LogCursor) -> LogCursor:
        """Return the cursor of a reader that has read these entries."""
        return reduce(LogCursor.after, self.entries, cursor)


class JobHistory:
    """Reads the events first, then the lines: a reader that sees the end of a job also sees every line written before it."""

    def __init__(self, database: Pool, mapper: EventMapper) -> None:
        self._database = database
        self._mapper = mapper

    async def since(self, job: int, cursor: LogCursor = BEGINNING, *, limit: int = LARGEST) -> LogPage:
        """Return a page in the order of the numbers, which is the order in which the entries were written."""
        stream = Job.stream(job)
        event_rows = await self._database.rows(_EVENTS, (stream, cursor.version, limit + 1))
        line_rows = await self._database.rows(_LINES, (job, cursor.line, limit + 1))
        if line_rows and line_rows[-1][0] >> _SHIFT > (event_rows[-1][0] if event_rows else cursor.version):
            event_rows = await self._database.rows(
                _EVENTS, (stream, cursor.version, limit + 1)
            )  # a line follows an event that was appended in the meantime
        events = [
            LogEvent(version, from_json(metadata).get("actor", "system"), self._read(stream, version, topic, state), at)
            for version, topic, state, metadata, at, *_ in event_rows
        ]
        lines = [LogLine(*line[:-2]) for line in line_rows]
        # If the events are cut off, later lines wait for the next page, since the next event may precede them; and vice versa.
        cuts = [all_[-1] for all_, rows in ((events, event_rows), (lines, line_rows)) if rows and rows[0][-1] > len(rows)]
        entries: list[LogEvent | LogLine] = []
        both: list[Sequence[LogEvent | LogLine]] = [events, lines]
        for entry in merge(*both, key=_number):
            if len(entries) == limit:
                return LogPage(entries, more=True)
            entries.append(entry)
            if any(entry is cut for cut in cuts):
                return LogPage(entries, more=True)
        return LogPage(entries, more=False)

    async def events(self, job: int) -> list[DomainEvent]:
        """Return all events of a job, in their order. They are read in pages, because a job that was resumed often has many."""
        stream, history, last = Job.stream(job), list[DomainEvent](), 0
        while rows := await self._database.rows(_EVENTS, (stream, last, LARGEST)):
            history += [self._read(stream, version, topic, state) for version, topic, state, *_ in rows]
            last = rows[-1][0]
        return history

    def _read(self, stream: str, version: int, topic: str, state: bytes) -> DomainEvent:
        return self._mapper.read(topic, stream=stream, version=version, state=state)


def _number(entry: LogEvent | LogLine) -> int:
    return entry.number
