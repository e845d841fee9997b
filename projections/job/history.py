"""A job's history: what happened to it, as the log of events has it, and what its steps said. Document 3, "Job log record".

Nothing is copied: the log of a job is read from where its facts lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic_core import from_json

from domain.job.aggregate import Job
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from projections.kernel.database import Database

_EVENTS = """
SELECT position, originator_version, topic, state, metadata::text, recorded_at FROM events
WHERE originator_id = %s AND position > %s ORDER BY originator_version
"""
_LINES = "SELECT id, task, severity, message, created_at FROM job_lines WHERE job = %s AND id > %s ORDER BY id"


@dataclass(frozen=True, slots=True)
class Happened:
    """A domain event of the job, by its position in the log, and who caused it."""

    position: int
    actor: str
    event: DomainEvent
    at: datetime


@dataclass(frozen=True, slots=True)
class Said:
    """A line that a step wrote, by its number."""

    line: int
    task: int
    severity: int
    message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a reader has come: the position of the last event and the number of the last line."""

    position: int = 0
    line: int = 0

    def after(self, told: Happened | Said) -> Seen:
        if isinstance(told, Happened):
            return Seen(max(self.position, told.position), self.line)
        return Seen(self.position, max(self.line, told.line))


BEGINNING = Seen()


class JobHistory:
    """Reads both, events first: with the end of a job come all lines that were written before it."""

    def __init__(self, database: Database, mapper: EventMapper) -> None:
        self._database = database
        self._mapper = mapper

    async def since(self, job: int, seen: Seen = BEGINNING) -> Sequence[Happened | Said]:
        """In the order of time."""
        stream = Job.stream(job)
        events = await self._database.rows(_EVENTS, (stream, seen.position))
        lines = await self._database.rows(_LINES, (job, seen.line))
        told: list[Happened | Said] = [
            Happened(position, from_json(metadata).get("actor", "system"), self._read(stream, version, topic, state), at)
            for position, version, topic, state, metadata, at in events
        ]
        told.extend(Said(*line) for line in lines)
        return sorted(told, key=lambda one: one.at)

    def _read(self, stream: str, version: int, topic: str, state: bytes) -> DomainEvent:
        return self._mapper.read(topic, stream=stream, version=version, state=state)
