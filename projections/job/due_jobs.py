"""Queries of the scheduler: jobs that wait for their time or their semaphore.

The database's clock decides what is due, so that all schedulers agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from domain.job.values import Semaphore
from projections.job.view import DUE_FROM, WAITING
from projections.kernel.database.arrays import bigints, texts
from projections.kernel.database.database import Database
from projections.kernel.sql.distinct import distinct

AT_ONCE: Final = 200
"""The most jobs of a client that are read in one round; the next round follows at once."""

_CLIENTS = distinct("client", table="job_view", where=f"state IN {WAITING}")
_DUE = f"""
SELECT j.* FROM unnest(%(clients)s::text[]) AS a (client) CROSS JOIN LATERAL (
    SELECT id, version, client, run_at, semaphore, transaction_id FROM job_view v
    WHERE v.client = a.client AND v.state IN {WAITING} AND {DUE_FROM} <= now() AND NOT EXISTS (
        SELECT FROM unnest(%(ids)s::bigint[], %(versions)s::bigint[]) AS k (id, version) WHERE k.id = v.id AND k.version = v.version
    )
    ORDER BY {DUE_FROM}, id LIMIT {AT_ONCE}
) AS j
"""
_STILL = f"""
SELECT id, version, client, run_at, semaphore, transaction_id FROM job_view
WHERE id = %s AND state IN {WAITING} AND {DUE_FROM} <= now()
"""
_NEXT = f"""
SELECT extract(epoch FROM min(j.due) - clock_timestamp())::float8 FROM unnest(%s::text[]) AS a (client) CROSS JOIN LATERAL (
    SELECT {DUE_FROM} AS due FROM job_view v WHERE v.client = a.client AND v.state IN {WAITING} AND {DUE_FROM} > now()
    ORDER BY {DUE_FROM} LIMIT 1
) AS j
"""


class DueJob(NamedTuple):
    """A job whose time has come, as of a version."""

    job: int
    version: int
    client: str
    run_at: datetime | None
    semaphore: Semaphore | None
    transaction_id: str


class DueJobs:
    """Reads jobs that wait for their time or semaphore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def clients(self) -> list[str]:
        """Return the clients with waiting jobs, due or not."""
        return [client for (client,) in await self._database.rows(_CLIENTS)]

    async def due(self, clients: Sequence[str], versions: Mapping[int, int]) -> list[DueJob]:
        """Return due jobs, except those that `versions` has with their current version. The jobs of a client that have been due
        longest come first."""
        parameters = {
            "clients": texts(clients),
            "ids": bigints(list(versions)),
            "versions": bigints(list(versions.values())),
        }
        return _due_jobs(await self._database.rows(_DUE, parameters))

    async def still(self, job: int) -> DueJob | None:
        """Return the job as of now; None if it is not due or does not wait any more."""
        jobs = _due_jobs(await self._database.rows(_STILL, (job,)))
        return jobs[0] if jobs else None

    async def next_in(self, clients: Collection[str]) -> float | None:
        """Return the seconds until the next job of these clients is due; None if no job waits for its time."""
        row = await self._database.row(_NEXT, (texts(list(clients)),))
        return None if row is None else row[0]


def _due_jobs(rows: Iterable[tuple[Any, ...]]) -> list[DueJob]:
    """Return the jobs of rows, with times in UTC. In the session's time zone, times in the hour that a change of clocks repeats
    would compare as different."""
    return [
        DueJob(
            job, version, client, run_at and run_at.astimezone(UTC), text and Semaphore.model_validate_json(text), transaction_id
        )
        for job, version, client, run_at, text, transaction_id in rows
    ]
