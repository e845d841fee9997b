"""A job's log: its domain events from the event log, and the lines that its steps wrote.

Nothing is stored twice: both are read where they are. Served at docs/reference/api/job-engine.md#job-log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from heapq import merge

from pydantic_core import from_json

from domain.job.aggregate import Job
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from projections.kernel.database import Pool
from projections.kernel.page import LARGEST, within_bytes

_EVENTS = within_bytes(
    "SELECT position, originator_version, topic, state, metadata::text, recorded_at FROM stream_events"
    " WHERE stream = stream_key(%s) AND position > %s ORDER BY version LIMIT %s",
    order="originator_version",
)
_LINES = within_bytes(
    "SELECT id, task, severity, message, created_at, program FROM job_log_lines WHERE job = %s AND id > %s ORDER BY id LIMIT %s",
    order="id",
    content="message",
)


@dataclass(frozen=True, slots=True)
class LogEvent:
    """A domain event of the job with its position in the event log. `actor` caused it."""

    position: int
    actor: str
    event: DomainEvent
    at: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a step wrote, by its number. `program` is set where another program wrote it."""

    line: int
    task: int
    severity: int
    message: str
    at: datetime
    program: str | None = None


@dataclass(frozen=True, slots=True)
class LogCursor:
    """How far a reader has read: the position of the last event and the number of the last line."""

    position: int = 0
    line: int = 0

    def after(self, entry: LogEvent | LogLine) -> LogCursor:
        if isinstance(entry, LogEvent):
            return LogCursor(max(self.position, entry.position), self.line)
        return LogCursor(self.position, max(self.line, entry.line))


BEGINNING = LogCursor()


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries of a log; `more`: there are later ones, which `since` finds after the last of these."""

    entries: Sequence[LogEvent | LogLine]
    more: bool

    def end(self, cursor: LogCursor) -> LogCursor:
        """The cursor of a reader that has read these entries."""
        return reduce(LogCursor.after, self.entries, cursor)


class JobHistory:
    """Reads the events first, then the lines: a reader who gets the end of a job also gets every line written before it."""

    def __init__(self, database: Pool, mapper: EventMapper) -> None:
        self._database = database
        self._mapper = mapper

    async def since(self, job: int, cursor: LogCursor = BEGINNING, *, limit: int = LARGEST) -> LogPage:
        """A page in the order of time. Events, and lines, are each in their own order."""
        stream = Job.stream(job)
        found = await self._database.rows(_EVENTS, (stream, cursor.position, limit + 1))
        written = await self._database.rows(_LINES, (job, cursor.line, limit + 1))
        events = [
            LogEvent(position, from_json(metadata).get("actor", "system"), self._read(stream, version, topic, state), at)
            for position, version, topic, state, metadata, at, *_ in found
        ]
        lines = [LogLine(*line[:-2]) for line in written]
        # Where the events are cut, later lines wait: the next event may be earlier. The same the other way round.
        cuts = [all_[-1] for all_, rows in ((events, found), (lines, written)) if rows and rows[0][-1] > len(rows)]
        entries: list[LogEvent | LogLine] = []
        both: list[Sequence[LogEvent | LogLine]] = [events, lines]
        for entry in merge(*both, key=_time):
            if len(entries) == limit:
                return _page(entries, more=True)
            entries.append(entry)
            if any(entry is cut for cut in cuts):
                return _page(entries, more=True)
        return _page(entries, more=False)

    async def events(self, job: int) -> list[DomainEvent]:
        """All events of a job, in their order. They are read in pages: one that was resumed often has many."""
        stream, found, position = Job.stream(job), list[DomainEvent](), 0
        while rows := await self._database.rows(_EVENTS, (stream, position, LARGEST)):
            found += [self._read(stream, version, topic, state) for _, version, topic, state, *_ in rows]
            position = rows[-1][0]
        return found

    def _read(self, stream: str, version: int, topic: str, state: bytes) -> DomainEvent:
        return self._mapper.read(topic, stream=stream, version=version, state=state)


def _page(entries: list[LogEvent | LogLine], *, more: bool) -> LogPage:
    return LogPage(sorted(entries, key=_time), more)


def _time(entry: LogEvent | LogLine) -> datetime:
    return entry.at
