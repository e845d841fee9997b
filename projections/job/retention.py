"""Removal of ended jobs by age, with their secrets, and of progress that is not needed any more.

The events of a job stay in the log. A rebuild of the views restores removed jobs until they are removed again; their secrets are
gone for good, and a search by text does not find such jobs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from domain.job.aggregate import Job
from projections.job.view import ENDED
from projections.kernel.database.arrays import bigints
from projections.kernel.database.database import Database

_CHUNK: Final = 500
_COLD: Final = "10 minutes"

_OLD = f"SELECT id FROM job_view WHERE state IN {ENDED} AND updated_at < %s ORDER BY updated_at LIMIT {_CHUNK}"
# Tasks are deleted first, in a separate statement: a visible job always has its secrets, and no lock is held on rows of two
# views, which an append may take in the other order.
_TASKS = "DELETE FROM job_task_view WHERE job = ANY(%s::bigint[])"
_JOBS = f"""
WITH removed AS (
    DELETE FROM job_view WHERE id = ANY(%s::bigint[]) AND state IN {ENDED} RETURNING id
), erased AS (
    DELETE FROM vault USING removed
    WHERE vault.owner = '{Job.stream("")}' || removed.id AND vault.owner >= 'job:' AND vault.owner < 'job;'
), forgotten AS (
    DELETE FROM job_progress USING removed WHERE job_progress.job = removed.id
), unindexed AS (
    DELETE FROM job_search USING removed WHERE job_search.id = removed.id
)
SELECT count(*) FROM removed
"""
_PROGRESS = f"""
DELETE FROM job_progress p WHERE updated_at < clock_timestamp() - interval '{_COLD}'
    AND NOT EXISTS (SELECT FROM job_view v WHERE v.id = p.job AND v.state NOT IN {ENDED})
"""


async def remove_ended_jobs(database: Database, before: datetime) -> int:
    """Remove the jobs that ended before that time, and return their number."""
    removed = 0
    while old := [job for (job,) in await database.rows(_OLD, (before,))]:
        await database.execute(_TASKS, (bigints(old),))
        row = await database.row(_JOBS, (bigints(old),))
        removed += row[0] if row else 0
    return removed


async def remove_progress(database: Database, _: datetime) -> int:
    """Remove the progress of jobs that ended some minutes ago, and return the number of tasks."""
    return await database.execute(_PROGRESS)
