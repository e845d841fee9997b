"""Queries of the dashboard: started, queued and scheduled jobs, and the progress of running steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from domain.job.values import JobState, TaskState
from projections.job.queries import EVERY_CLIENT, SUMMARY, JobRow, placed
from projections.kernel.database.arrays import bigints
from projections.kernel.database.database import Pool

LARGEST: Final = 1000
"""The most jobs of each state that are shown."""

_ONE_CLIENT = "SELECT %(client)s::text"


def _of_state(state: JobState, order: str) -> str:
    """Return a query for the first jobs of each client by an index, and the first of all of these."""
    return f"""(
    SELECT {SUMMARY}, row_number() OVER (ORDER BY {order}) AS turn FROM clients c CROSS JOIN LATERAL (
        SELECT * FROM job_view v WHERE v.client = c.name AND v.state = {state} ORDER BY {order} LIMIT {LARGEST}
    ) AS first ORDER BY {order} LIMIT {LARGEST}
)"""


def _question(clients: str) -> str:
    shown = " UNION ALL ".join(
        (_of_state(JobState.STARTED, "id"), _of_state(JobState.QUEUED, "priority, id"), _of_state(JobState.SCHEDULED, "run_at, id"))
    )
    return placed(f"WITH clients (name) AS ({clients}) {shown}")


_TASKS = """
SELECT t.job, t.task, t.name, t.state, t.attempts, coalesce(p.fraction, 0)::float8, coalesce(p.message, '')
FROM job_task_view t LEFT JOIN job_progress p ON p.job = t.job AND p.task = t.task AND p.run = t.run
WHERE t.job = ANY(%s::bigint[]) ORDER BY t.job, t.task
"""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The progress of a task's current run. `fraction` is from 0 to 1."""

    job: int
    task: int
    name: str
    state: TaskState
    attempts: int
    fraction: float
    message: str


@dataclass(frozen=True, slots=True)
class Board:
    """Summaries of jobs: started jobs by number, queued jobs in the order in which they start, scheduled jobs by their time."""

    started: Sequence[JobRow]
    queued: Sequence[JobRow]
    scheduled: Sequence[JobRow]


class BoardQueries:
    """Queries for all clients, or for one."""

    def __init__(self, database: Pool) -> None:
        self._database = database

    async def board(self, client: str | None) -> Board:
        """Return the board. It is read in one statement, so no job is in two lists."""
        question = _question(EVERY_CLIENT if client is None else _ONE_CLIENT)
        rows = [JobRow.of(row) for row in await self._database.rows(question, {"client": client} if client is not None else {})]

        def of_state(state: JobState) -> list[JobRow]:
            return [row for row in rows if row.state is state]

        return Board(of_state(JobState.STARTED), of_state(JobState.QUEUED), of_state(JobState.SCHEDULED))

    async def tasks(self, jobs: Sequence[int]) -> list[TaskProgress]:
        """Return the tasks of these jobs, each in the order of its graph."""
        if not jobs:
            return []
        rows = await self._database.rows(_TASKS, (bigints(jobs),))
        return [
            TaskProgress(job, task, name, TaskState(state), attempts, 1.0 if state == TaskState.COMPLETED else fraction, message)
            for job, task, name, state, attempts, fraction, message in rows
        ]
