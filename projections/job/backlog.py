"""Counts of jobs and steps over all clients, for metrics. The cost of reading them is limited, whatever the tables hold, because a
scrape needs no key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

from domain.job.values import JobState, TaskState
from projections.job.counts import STEP_QUEUES, JobCounts, state_totals
from projections.kernel.database.database import Pool

_MOST: Final = 100_001
_UNENDED: Final = (JobState.QUEUED, JobState.STARTED, JobState.PENDING, JobState.SCHEDULED, JobState.PAUSED)
_FAILED: Final = "failed"
_OLDEST: Final = f"""
SELECT coalesce(extract(epoch FROM clock_timestamp() - min(updated_at)), 0)::float8
FROM (SELECT updated_at FROM job_view WHERE state = {JobState.QUEUED} LIMIT {_MOST}) AS queued
"""
_STEPS: Final = f"""
SELECT queue, state, count(*) FROM (
    (SELECT queue, 'ready' AS state FROM job_task_view WHERE state = {TaskState.READY} LIMIT {_MOST})
    UNION ALL
    (SELECT queue, 'running' FROM job_task_view WHERE state IN ({TaskState.RUNNING}, {TaskState.PUBLISHING}) LIMIT {_MOST})
) AS step GROUP BY queue, state
"""
_WORKERS: Final = "SELECT count(*) FROM job_workers WHERE until > clock_timestamp()"


@dataclass(frozen=True, slots=True)
class JobBacklogCounts:
    """The counts: `jobs` by the name of their state, `steps` by queue and state. `oldest_queued` is in seconds."""

    jobs: Mapping[str, int]
    oldest_queued: float
    steps: Mapping[tuple[str, str], int]
    workers: int


class JobBacklogQueries:
    """Reads the views and the leases of workers."""

    def __init__(self, database: Pool) -> None:
        self._database = database
        self._counts = JobCounts(database)

    async def all(self) -> JobBacklogCounts:
        counted = state_totals(await self._counts.jobs())
        jobs = {state.name.lower(): counted.jobs.get(state, 0) for state in _UNENDED} | {_FAILED: counted.failed}
        ((oldest,),) = await self._database.rows(_OLDEST)
        ((workers,),) = await self._database.rows(_WORKERS)
        steps = dict.fromkeys(product(STEP_QUEUES, ("ready", "running")), 0)
        steps |= {(queue, state): count for queue, state, count in await self._database.rows(_STEPS)}
        return JobBacklogCounts(jobs, float(oldest), steps, workers)
