"""The queue of tasks and the leases of workers. Explained in docs/explanation/job-engine.md#leases-and-fencing.

A lease belongs to one run of one task and is timed by the database's clock; it does not limit how long a step may run. That a run
has begun, and how it ended, are events of the job: it refuses them from a run that is not the current one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from domain.job.values import TaskState
from projections.job.view import ENDED
from projections.kernel.arrays import PackedArray, bigints
from projections.kernel.database import Database

LEASE: Final = 30.0
BEAT: Final = 10.0
_LEFT_OVER: Final = "1 hour"
_COLD: Final = "10 minutes"

_UNDER_WAY = f"({TaskState.RUNNING}, {TaskState.PUBLISHING})"
_NEXT_RUN = f"q.run + CASE q.state WHEN {TaskState.READY} THEN 1 ELSE 0 END"
_CLAIM = f"""
WITH free AS (
    SELECT q.job, q.task, {_NEXT_RUN} AS run, q.state, q.client, q.transaction_id FROM job_task_view q
    WHERE q.queue = ANY(%(queues)s::text[]) AND q.state IN ({TaskState.READY}, {TaskState.PUBLISHING})
        AND (q.due_at IS NULL OR q.due_at <= clock_timestamp())
        AND NOT EXISTS (
            SELECT FROM job_leases l
            WHERE l.job = q.job AND l.task = q.task AND l.run = {_NEXT_RUN} AND l.until > clock_timestamp()
        )
    ORDER BY q.priority, q.job, q.task LIMIT %(limit)s FOR UPDATE OF q SKIP LOCKED
), taken AS (
    INSERT INTO job_leases (job, task, run, member, until)
    SELECT job, task, run, %(member)s, clock_timestamp() + make_interval(secs => %(lease)s) FROM free
    ON CONFLICT (job, task, run) DO UPDATE SET member = excluded.member, until = excluded.until
        WHERE job_leases.until <= clock_timestamp()
    RETURNING job, task, run
)
SELECT job, task, run, state = {TaskState.PUBLISHING}, client, transaction_id
FROM taken JOIN free USING (job, task, run) ORDER BY job, task
"""
_RENEW = """
UPDATE job_leases l SET until = clock_timestamp() + make_interval(secs => %(lease)s)
FROM unnest(%(jobs)s::bigint[], %(tasks)s::bigint[], %(runs)s::bigint[]) AS h (job, task, run)
WHERE l.job = h.job AND l.task = h.task AND l.run = h.run AND l.member = %(member)s AND l.until > clock_timestamp()
RETURNING l.job, l.task, l.run
"""
_PRESENT = f"""
SELECT q.job, q.task, q.run
FROM unnest(%(jobs)s::bigint[], %(tasks)s::bigint[], %(runs)s::bigint[]) AS h (job, task, run)
JOIN job_task_view q ON q.job = h.job AND q.task = h.task AND q.run = h.run AND q.state IN {_UNDER_WAY}
"""
_EXPIRED = f"""
SELECT q.job, q.task, q.run, q.client, q.transaction_id FROM job_task_view q
LEFT JOIN job_leases l ON l.job = q.job AND l.task = q.task AND l.run = q.run
WHERE q.state = {TaskState.RUNNING} AND coalesce(l.until, '-infinity') <= clock_timestamp()
ORDER BY q.job, q.task LIMIT %s
"""
_ENDED = f"""
SELECT id FROM job_view
WHERE id = ANY(%s::bigint[]) AND state IN {ENDED} AND updated_at < now() - interval '{_COLD}'
"""
_RELEASE = """
DELETE FROM job_leases l USING unnest(%(jobs)s::bigint[], %(tasks)s::bigint[], %(runs)s::bigint[]) AS h (job, task, run)
WHERE l.job = h.job AND l.task = h.task AND l.run = h.run AND l.member = %(member)s
"""


class Run(NamedTuple):
    """A run of a task."""

    job: int
    task: int
    run: int


class Claimed(NamedTuple):
    """A claimed run. `publishing`: the step has ended, and only its files must be moved to their places."""

    run: Run
    publishing: bool
    client: str
    transaction_id: str


class Expired(NamedTuple):
    """A run whose lease has expired."""

    run: Run
    client: str
    transaction_id: str


class TaskQueue:
    """The queue as one worker process sees it. `lease` is in seconds."""

    def __init__(self, database: Database, *, member: UUID, lease: float = LEASE) -> None:
        self._database = database
        self.member = member
        self.lease = lease

    async def claim(self, queues: Sequence[str], *, limit: int) -> list[Claimed]:
        """Claim tasks that are ready, the most urgent first."""
        named = {"queues": list(queues), "limit": limit, "member": self.member, "lease": self.lease}
        return [Claimed(Run(job, task, run), *rest) for job, task, run, *rest in await self._written(_CLAIM, named)]

    async def renew(self, held: Iterable[Run]) -> set[Run]:
        """Renew leases; gives the runs that this member still holds."""
        named = {**_columns(held), "member": self.member, "lease": self.lease}
        return {Run._make(row) for row in await self._written(_RENEW, named)}

    async def present(self, runs: Iterable[Run]) -> set[Run]:
        """The runs that are still current: not broken off, lost or ended."""
        return {Run._make(row) for row in await self._database.rows(_PRESENT, _columns(runs))}

    async def expired(self, *, limit: int = 100) -> list[Expired]:
        """Runs with expired leases, of any worker."""
        return [Expired(Run(job, task, run), *rest) for job, task, run, *rest in await self._database.rows(_EXPIRED, (limit,))]

    async def release(self, runs: Iterable[Run]) -> None:
        """Give the leases of these runs back."""
        await self._database.execute(_RELEASE, {**_columns(runs), "member": self.member})

    async def ended(self, jobs: Collection[int]) -> list[int]:
        """The jobs among these that ended some minutes ago."""
        return [job for (job,) in await self._database.rows(_ENDED, (bigints(list(jobs)),))] if jobs else []

    async def tidy(self) -> None:
        """Delete leases that expired long ago."""
        await self._database.execute(f"DELETE FROM job_leases WHERE until < clock_timestamp() - interval '{_LEFT_OVER}'")

    async def _written(self, statement: str, named: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Without a retry: a claim whose answer was lost is free again when its lease expires."""
        async with self._database.connection() as connection:
            cursor = await connection.execute(statement, named, binary=True)
            return await cursor.fetchall()


def _columns(runs: Iterable[Run]) -> dict[str, PackedArray]:
    listed = list(runs)
    return {
        "jobs": bigints([one.job for one in listed]),
        "tasks": bigints([one.task for one in listed]),
        "runs": bigints([one.run for one in listed]),
    }
