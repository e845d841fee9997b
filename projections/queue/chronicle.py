"""What steps say while they run: lines for their job's log, and how far they are. Document 3, "Job log record"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from projections.kernel.arrays import bigints, instants, texts
from projections.kernel.database import Database
from projections.queue.claims import Run

LONGEST_LINE: Final = 8_000
_WRITE = """
WITH progress AS (
    INSERT INTO job_progress (job, task, run, fraction, message)
    SELECT job, task, run, millionths / 1e6, message
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[]) AS p (job, task, run, millionths, message)
    ON CONFLICT (job, task) DO UPDATE SET run = excluded.run, fraction = excluded.fraction, message = excluded.message,
        updated_at = excluded.updated_at
        WHERE excluded.run >= job_progress.run
)
INSERT INTO job_lines (job, task, severity, message, created_at)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::timestamptz[])
"""
_PRUNE = """
DELETE FROM job_lines WHERE id = ANY(ARRAY(SELECT l.id FROM job_lines l WHERE l.created_at < %s ORDER BY l.id LIMIT %s))
"""
_CHUNK: Final = 5_000


@dataclass(frozen=True, slots=True)
class Line:
    job: int
    task: int
    severity: int
    message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """`fraction` is from 0 to 1."""

    run: Run
    fraction: float
    message: str


async def write(database: Database, *, lines: Sequence[Line], progress: Sequence[Progress]) -> None:
    """One statement for all. The progress of an older run of a task than the one that is known is left out."""
    latest = list({(one.run.job, one.run.task): one for one in progress}.values())
    await database.execute(
        _WRITE,
        (
            bigints([one.run.job for one in latest]),
            bigints([one.run.task for one in latest]),
            bigints([one.run.run for one in latest]),
            bigints([int(min(max(one.fraction, 0.0), 1.0) * 1e6) for one in latest]),
            texts([one.message for one in latest]),
            bigints([one.job for one in lines]),
            bigints([one.task for one in lines]),
            bigints([one.severity for one in lines]),
            texts([one.message[:LONGEST_LINE].replace("\0", "\ufffd") for one in lines]),
            instants([one.at for one in lines]),
        ),
    )


async def prune(database: Database, before: datetime) -> int:
    """Delete the lines that are older; how many."""
    gone = 0
    while (deleted := await database.execute(_PRUNE, (before, _CHUNK))) > 0:
        gone += deleted
    return gone
