"""Counts of jobs and tasks by state, and the load of each queue.

The counts of jobs are totals that the view maintains: a million jobs are counted as fast as ten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from domain.job.values import JobState, TaskState
from projections.job.view import DIMENSION, JOB_VIEW, SEPARATOR
from projections.kernel.database.database import Pool
from projections.kernel.sql.tallies import totals
from projections.webhook.queries import callback_backlog

_SEEN_SECONDS: Final = 10
TOTALS: Final = totals(JOB_VIEW.name, JOB_VIEW.version, dimension=DIMENSION)
COUNTED: Final = "SELECT client, workflow, state, failed, count(*) FROM job_view GROUP BY client, workflow, state, failed"
"""The query that counts rows, for the time when the table is that of another build with other totals."""
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
class StateTotals:
    """The numbers of jobs by state. `failed` jobs are also counted as completed."""

    jobs: Mapping[JobState, int]
    failed: int

    @property
    def all(self) -> int:
        return sum(self.jobs.values())


@dataclass(frozen=True, slots=True)
class JobTotal:
    """The number of jobs of a client and workflow in a state."""

    client: str
    workflow: str
    state: JobState
    failed: bool
    count: int


@dataclass(frozen=True, slots=True)
class ClientCounts:
    """The numbers of a client's jobs and tasks by state."""

    jobs: StateTotals
    tasks: Mapping[TaskState, int]


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """The load of a queue. `workers` are processes seen in the last seconds; `working` is the number of items that they work on;
    `pending` the number of items that could start."""

    workers: int
    working: int
    pending: int


class JobCounts:
    """Counts jobs, tasks and queues."""

    def __init__(self, database: Pool) -> None:
        self._database = database

    async def jobs(self) -> list[JobTotal]:
        """Return the totals of all jobs by client, workflow, state and failure."""
        rows = await self._database.rows(TOTALS, {"deleted": False})
        if (None, None) in rows:
            rows = await self._database.rows(COUNTED)
            return [JobTotal(client, workflow, JobState(state), *rest) for client, workflow, state, *rest in rows]
        return [_job_total(value, count) for value, count in rows if count]

    async def of(self, client: str) -> ClientCounts:
        jobs = state_totals(total for total in await self.jobs() if total.client == client)
        tasks = {TaskState(state): count for state, count in await self._database.rows(_TASKS, (client,))}
        return ClientCounts(jobs, Counter(tasks))

    async def waiting(self, client: str, *, most: int) -> int:
        """Return the number of the client's jobs that are neither started nor ended, counted up to `most`."""
        row = await self._database.row(_WAITING, (client, most))
        return int(row[0]) if row else 0

    async def queues(self) -> dict[str, QueueCounts]:
        """Return the load of each queue over all clients, since workers serve all of them."""
        members = {name: (workers, busy) for name, workers, busy in await self._database.rows(_MEMBERS, (list(QUEUES),))}
        pending = dict(await self._database.rows(_PENDING))
        pending["callback"] = await callback_backlog(self._database)
        return {name: QueueCounts(*members.get(name, (0, 0)), pending.get(name, 0)) for name in QUEUES}

    async def warnings(self) -> list[str]:
        """Return warnings about machines that run steps with less protection than possible."""
        return [f"{host}: {warning}" for host, warning in await self._database.rows(_WARNINGS, (list(STEP_QUEUES),))]


def state_totals(job_totals: Iterable[JobTotal]) -> StateTotals:
    jobs: Counter[JobState] = Counter()
    failed = 0
    for total in job_totals:
        jobs[total.state] += total.count
        if total.failed and total.state is JobState.COMPLETED:
            failed += total.count
    return StateTotals(jobs, failed)


def _job_total(value: str, count: int) -> JobTotal:
    client, rest = value.split(SEPARATOR, 1)
    workflow, state, failed = rest.rsplit(SEPARATOR, 2)
    return JobTotal(client, workflow, JobState(int(state)), failed == "1", count)
