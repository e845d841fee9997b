"""Queries of the workers for tasks. See docs/explanation/job-engine.md#workers-and-fencing.

A result is a proposal: the job refuses to start a run that is not its next one, so a task that two workers find starts once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from domain.job.values import TaskState
from projections.job.view import ENDED
from projections.kernel.database.arrays import PackedArray, bigints
from projections.kernel.database.database import Database
from projections.kernel.sql.sequence import NumberSequence


class JobNumberSequence(NumberSequence):
    """The sequence of job ids."""

    NAME: ClassVar[str] = "job_numbers"


MOST: Final = 1000
"""The most tasks that one query returns; these are the most urgent ones."""
_COLD: Final = "10 minutes"

_UNDER_WAY = f"({TaskState.RUNNING}, {TaskState.PUBLISHING})"
_LOST = "NOT EXISTS (SELECT FROM job_workers w WHERE w.worker = q.worker AND w.until > clock_timestamp())"
_READY = f"""
SELECT q.job, q.task, q.run + CASE q.state WHEN {TaskState.READY} THEN 1 ELSE 0 END, q.state = {TaskState.PUBLISHING}, q.shard,
    q.priority, q.client, q.transaction_id
FROM job_task_view q
WHERE q.queue = %(queue)s AND q.state IN ({TaskState.READY}, {TaskState.PUBLISHING})
    AND (q.due_at IS NULL OR q.due_at <= clock_timestamp()) AND (q.state = {TaskState.READY} OR {_LOST})
"""
_ORDER = "ORDER BY q.priority, q.job, q.task LIMIT %(limit)s"
_FIRST = f"{_READY} {_ORDER}"
_FIRST_OF_SHARDS = f"{_READY} AND q.shard = ANY(%(shards)s::bigint[]) {_ORDER}"
_FIRST_OF_OTHERS = f"{_READY} AND q.client <> %(client)s {_ORDER}"
_PRESENT = f"""
SELECT q.job, q.task, q.run
FROM unnest(%(jobs)s::bigint[], %(tasks)s::bigint[], %(runs)s::bigint[]) AS h (job, task, run)
JOIN job_task_view q ON q.job = h.job AND q.task = h.task AND q.run = h.run AND q.state IN {_UNDER_WAY}
"""
_LOST_RUNS = f"""
SELECT q.job, q.task, q.run, q.client, q.transaction_id FROM job_task_view q
WHERE q.state = {TaskState.RUNNING} AND {_LOST} ORDER BY q.job, q.task LIMIT %s
"""
_OF_WORKER = f"""
SELECT q.job, q.task, q.run, q.client, q.transaction_id FROM job_task_view q
WHERE q.state IN {_UNDER_WAY} AND q.worker = %s ORDER BY q.job, q.task
"""
_ENDED = f"""
SELECT id FROM job_view
WHERE id = ANY(%s::bigint[]) AND state IN {ENDED} AND updated_at < now() - interval '{_COLD}'
"""


class QueuedRun(NamedTuple):
    """A run of a task."""

    job: int
    task: int
    run: int


class ReadyTask(NamedTuple):
    """A task with the number of its next run.

    If `publishing`, its step has ended, and only the files of this run remain to be moved to their places.
    """

    run: QueuedRun
    publishing: bool
    shard: int
    priority: int
    client: str
    transaction_id: str


class ActiveRun(NamedTuple):
    """A run that has begun and not ended."""

    run: QueuedRun
    client: str
    transaction_id: str


class TaskQueue:
    """The tasks of one queue."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = name

    async def first(self, shards: Collection[int] | None = None, *, limit: int = MOST) -> list[ReadyTask]:
        """Return the most urgent tasks that are ready and due, of these shards or of all."""
        if shards is None:
            return await self._ready(_FIRST, limit=limit)
        return await self._ready(_FIRST_OF_SHARDS, limit=limit, shards=bigints(list(shards))) if shards else []

    async def first_of_others(self, client: str, *, limit: int = MOST) -> list[ReadyTask]:
        """Return the most urgent tasks of other clients that are ready and due."""
        return await self._ready(_FIRST_OF_OTHERS, limit=limit, client=client)

    async def _ready(self, query: str, **parameters: PackedArray | int | str) -> list[ReadyTask]:
        rows = await self._database.rows(query, {"queue": self._name, **parameters})
        return [ReadyTask(QueuedRun(job, task, run), *rest) for job, task, run, *rest in rows]

    async def present(self, runs: Iterable[QueuedRun]) -> set[QueuedRun]:
        """Return the runs that are still current: not broken off, lost or ended."""
        return {QueuedRun._make(row) for row in await self._database.rows(_PRESENT, _columns(runs))}

    async def lost(self, *, limit: int = 100) -> list[ActiveRun]:
        """Return runs of steps whose worker is lost, in any queue."""
        return _active_runs(await self._database.rows(_LOST_RUNS, (limit,)))

    async def of_worker(self, worker: str) -> list[ActiveRun]:
        """Return the unfinished runs that the worker has started according to the log."""
        return _active_runs(await self._database.rows(_OF_WORKER, (worker,)))

    async def ended(self, jobs: Collection[int]) -> list[int]:
        """Return the jobs among these that ended some minutes ago."""
        return [job for (job,) in await self._database.rows(_ENDED, (bigints(list(jobs)),))] if jobs else []


def _active_runs(rows: Sequence[Sequence[Any]]) -> list[ActiveRun]:
    return [ActiveRun(QueuedRun(job, task, run), client, transaction) for job, task, run, client, transaction in rows]


def _columns(runs: Iterable[QueuedRun]) -> dict[str, PackedArray]:
    listed = list(runs)
    return {
        "jobs": bigints([run.job for run in listed]),
        "tasks": bigints([run.task for run in listed]),
        "runs": bigints([run.run for run in listed]),
    }
