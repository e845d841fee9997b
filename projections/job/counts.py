"""Counts for the engine's health: jobs and tasks by state, and the load of each queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from domain.job.values import JobState, TaskState
from projections.deliveries.queries import callback_backlog
from projections.kernel.database import Pool

_SEEN_SECONDS: Final = 10
_JOBS = "SELECT state, failed, count(*) FROM job_view WHERE client = %s GROUP BY state, failed"
_ALL_JOBS = "SELECT state, failed, count(*) FROM job_view GROUP BY state, failed"
_NOT_STARTED = f"({JobState.QUEUED}, {JobState.PENDING}, {JobState.SCHEDULED}, {JobState.PAUSED})"
_WAITING = f"SELECT count(*) FROM (SELECT FROM job_view WHERE client = %s AND state IN {_NOT_STARTED} LIMIT %s) AS waiting"
_TASKS = "SELECT state, count(*) FROM job_task_view WHERE client = %s GROUP BY state"
_MEMBERS = f"""
SELECT consumer, count(*), coalesce(sum(busy), 0)::bigint FROM consumer_members
WHERE consumer = ANY(%s::text[]) AND seen_at > clock_timestamp() - interval '{_SEEN_SECONDS} seconds' GROUP BY consumer
"""
_WARNINGS = f"""
SELECT DISTINCT host, warning FROM consumer_members
WHERE warning IS NOT NULL AND consumer = ANY(%s::text[]) AND seen_at > clock_timestamp() - interval '{_SEEN_SECONDS} seconds'
ORDER BY host, warning LIMIT 100
"""
_PENDING = f"""
SELECT queue, count(*) FROM job_task_view WHERE state = {TaskState.READY} GROUP BY queue
UNION ALL SELECT 'controller', count(*) FROM job_view WHERE state = {JobState.QUEUED}
UNION ALL SELECT 'scheduler', count(*) FROM job_view
    WHERE state IN ({JobState.PENDING}, {JobState.SCHEDULED}) AND (run_at IS NULL OR run_at <= clock_timestamp())
"""
STEP_QUEUES: Final = ("work", "windows_capture")
QUEUES: Final = (*STEP_QUEUES, "scheduler", "controller", "callback")


@dataclass(frozen=True, slots=True)
class ClientCounts:
    """Jobs and tasks of a client by state. `failed` jobs are among the completed ones."""

    jobs: Mapping[JobState, int]
    failed: int
    tasks: Mapping[TaskState, int]


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """`workers` are processes seen in the last seconds; `working` is the number of items they work on; `pending` the number of
    items that could start."""

    workers: int
    working: int
    pending: int


class JobCounts:
    """Counts jobs, tasks and queues."""

    def __init__(self, database: Pool) -> None:
        self._database = database

    async def states(self, client: str | None) -> tuple[Mapping[JobState, int], int]:
        """Jobs of a client, or of all, by state, and how many of the completed ones failed."""
        jobs: Counter[JobState] = Counter()
        failed = 0
        rows = self._database.rows(_JOBS, (client,)) if client is not None else self._database.rows(_ALL_JOBS)
        for state, job_failed, count in await rows:
            jobs[JobState(state)] += count
            if job_failed and state == JobState.COMPLETED:
                failed += count
        return jobs, failed

    async def of(self, client: str) -> ClientCounts:
        jobs, failed = await self.states(client)
        tasks = {TaskState(state): count for state, count in await self._database.rows(_TASKS, (client,))}
        return ClientCounts(jobs, failed, Counter(tasks))

    async def waiting(self, client: str, *, most: int) -> int:
        """Jobs of the client that are neither started nor ended, counted up to `most`."""
        row = await self._database.row(_WAITING, (client, most))
        return int(row[0]) if row else 0

    async def queues(self) -> dict[str, QueueCounts]:
        """For all clients together: workers serve all of them."""
        members = {name: (workers, busy) for name, workers, busy in await self._database.rows(_MEMBERS, (list(QUEUES),))}
        pending = dict(await self._database.rows(_PENDING))
        pending["callback"] = await callback_backlog(self._database)
        return {name: QueueCounts(*members.get(name, (0, 0)), pending.get(name, 0)) for name in QUEUES}

    async def warnings(self) -> list[str]:
        """What is less safe than it could be on the machines that run steps."""
        return [f"{host}: {warning}" for host, warning in await self._database.rows(_WARNINGS, (list(STEP_QUEUES),))]
