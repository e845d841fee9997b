"""Lines and progress that steps report while they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from domain.job.values import Severity
from domain.kernel.clock import Clock
from projections.job.queue import QueuedRun
from projections.kernel.database.arrays import bigints, instants, texts
from projections.kernel.database.database import Database
from projections.kernel.sql.line_order import numbered_lines

LONGEST_LINE: Final = 8_000
_WRITE = f"""
WITH progress AS (
    INSERT INTO job_progress (job, task, run, fraction, message)
    SELECT job, task, run, millionths / 1e6, message
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[]) AS p (job, task, run, millionths, message)
    ON CONFLICT (job, task) DO UPDATE SET run = excluded.run, fraction = excluded.fraction, message = excluded.message,
        updated_at = excluded.updated_at
        WHERE excluded.run >= job_progress.run
), lines AS MATERIALIZED (
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::timestamptz[])
        WITH ORDINALITY AS l (job, task, severity, message, created_at, turn)
), {numbered_lines("lines")}
INSERT INTO job_log_lines (id, job, task, severity, message, created_at)
SELECT id, job, task, severity, message, created_at FROM numbered
"""


@dataclass(frozen=True, slots=True)
class JobLogLine:
    job: int
    task: int
    severity: int
    message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run. `fraction` is from 0 to 1."""

    run: QueuedRun
    fraction: float
    message: str


async def write(database: Database, *, lines: Sequence[JobLogLine], progress: Sequence[Progress]) -> None:
    """Write lines and progress in one statement. Progress of an older run than the stored one is ignored."""
    latest = list({(report.run.job, report.run.task): report for report in progress}.values())
    await database.execute(
        _WRITE,
        (
            bigints([report.run.job for report in latest]),
            bigints([report.run.task for report in latest]),
            bigints([report.run.run for report in latest]),
            bigints([int(min(max(report.fraction, 0.0), 1.0) * 1e6) for report in latest]),
            texts([report.message for report in latest]),
            bigints([report.job for report in lines]),
            bigints([report.task for report in lines]),
            bigints([report.severity for report in lines]),
            texts([report.message[:LONGEST_LINE].replace("\0", "\ufffd") for report in lines]),
            instants([report.at for report in lines]),
        ),
    )


_WHOLE_JOB = 0
"""The value that replaces the number of a task."""


class StoredJobNotes:
    """The adapter of the port `domain.job.ports.JobNotes`. `remark` returns the text that the owner of a job adds when it is
    accepted, or None."""

    def __init__(self, database: Database, remark: Callable[[Sequence[Any]], str | None], *, clock: Clock) -> None:
        self._database = database
        self._remark = remark
        self._clock = clock

    async def note(self, number: int, accepted: Sequence[Any]) -> None:
        text = self._remark(accepted)
        if text is not None:
            await write(self._database, lines=[JobLogLine(number, _WHOLE_JOB, Severity.WARN, text, self._clock())], progress=())
