"""Queries for single jobs and for searches, with the position of each job in its client's queue.

A position is counted along the index of the queue, once for all jobs of a page: with 100,000 queued jobs a page costs one scan up
to its last job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic_core import to_json

from domain.job.aggregate import Job
from domain.job.values import JobState, Semaphore
from projections.job.search import JOB_SEARCH
from projections.job.view import ENDED
from projections.kernel.arrays import bigints
from projections.kernel.database import Database
from projections.kernel.sizes import MIB
from projections.kernel.where import Part, where

_ROW: Final = "id, version, client, workflow, state, failed, reason, priority, run_at, created_at, updated_at"
WHOLE: Final = f"{_ROW}, semaphore, parameters"
SUMMARY: Final = f"{_ROW}, NULL::text AS semaphore, NULL::text AS parameters"

_TIMES: Final = f"""(SELECT min(t.started_at) FROM job_task_view t WHERE t.job = page.id),
    CASE WHEN page.state IN {ENDED} THEN (SELECT max(t.ended_at) FROM job_task_view t WHERE t.job = page.id) END"""
"""Of the tasks of a job of the page, so that they are read of few jobs."""

MOST_PARAMETERS: Final = 4 * MIB
"""Bytes of parameters in one list. Of the jobs after that they are left out."""

_TESTED: Final = 20_000
_RANKED = (
    "LEFT JOIN (SELECT id, row_number() OVER (PARTITION BY client ORDER BY priority, id) AS place"
    f" FROM job_view WHERE state = {JobState.QUEUED}) AS ranked USING (id)"
)
_STATE_NAMES = ", ".join(f"'{state.name.lower()}'" for state in JobState)
ORDERS: Final[Mapping[str, str]] = {
    "id": "id",
    "client": "client",
    "workflow": "workflow",
    "priority": "priority",
    "position": "coalesce(place, 0)",
    "parameters": "parameters",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "run_at": "run_at",
    "queue_state": f"(ARRAY[{_STATE_NAMES}])[state + 1]",
    "failed": "failed",
}

"""SQL expressions by the name of the field in the API."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job. `position` is 1 for the client's next job to start, and 0 while a job is not queued. `parameters` is JSON;
    it is None in a summary, and so is `semaphore_text`; in a list also where there were too many before. `reason` is empty where
    it has not failed; `started_at` and `ended_at` are those of the runs of its tasks."""

    id: int
    version: int
    client: str
    workflow: str
    state: JobState
    failed: bool
    reason: str | None
    priority: int
    run_at: datetime | None
    created_at: datetime
    updated_at: datetime
    semaphore_text: str | None
    parameters: str | None
    position: int
    started_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> JobRow:
        number, version, client, workflow, state, *rest = row
        return cls(number, version, client, workflow, JobState(state), *rest)

    @classmethod
    def past(cls, job: Job) -> JobRow:
        """From an aggregate as of any moment. Its position in the queue is not known then: 0."""
        return cls(
            job.number,
            job.version,
            job.submission.client,
            job.submission.workflow,
            job.state,
            job.failed,
            job.reason,
            job.priority,
            job.run_at,
            job.created_on,
            job.modified_on,
            None if job.semaphore is None else job.semaphore.model_dump_json(),
            to_json(job.submission.parameters).decode(),
            0,
            min((task.started_at for task in job.tasks.values() if task.started_at), default=None),
            max((task.ended_at for task in job.tasks.values() if task.ended_at), default=None) if job.ended else None,
        )

    @property
    def semaphore(self) -> Semaphore | None:
        return None if self.semaphore_text is None else Semaphore.model_validate_json(self.semaphore_text)


@dataclass(frozen=True, kw_only=True)
class JobFilter:
    """All filters must match. `order_by` is one of `ORDERS`. `failed` with a state other than completed finds nothing."""

    limit: int
    order_by: str = "id"
    descending: bool = True
    state: JobState | None = None
    failed: bool | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    search: str | None = None
    job_ids: Sequence[int] = ()
    workflow: str | None = None
    client: str | None = None


class JobQueries:
    """Queries for single jobs and for searches."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_id(self, number: int, client: str | None = None, *, place: bool = False) -> JobRow | None:
        """The job; with `client`, only if it belongs to that client. Its position is counted only with `place`."""
        parts: list[Part] = [("number", number, "id = %(number)s"), ("client", client, "client = %(client)s")]
        conditions, named = where(parts)
        asked = f"FROM job_view AS page WHERE {' AND '.join(conditions)}"
        pool = self._database.lists if place else self._database  # a place is counted along the queue
        query = placed(f"SELECT {WHOLE}, 0 AS turn {asked}") if place else f"SELECT {WHOLE}, 0, {_TIMES} {asked}"
        found = await pool.row(query, named)
        return None if found is None else JobRow.of(found)

    async def search(self, wanted: JobFilter) -> list[JobRow]:
        """Nulls come last; equal values are ordered by id in the same direction."""
        if wanted.failed is not None and wanted.state not in (None, JobState.COMPLETED):
            return []
        conditions, named = where(_parts(wanted))
        direction = "DESC" if wanted.descending else "ASC"
        order = f"id {direction}"
        if wanted.order_by != "id":
            order = f"{ORDERS[wanted.order_by]} {direction} NULLS LAST, {order}"
        ranked = _RANKED if wanted.order_by == "position" else ""
        if wanted.search:
            candidates = await JOB_SEARCH.candidates(self._database.lists, wanted.search.lower(), most=_TESTED)
            if candidates is not None:
                conditions.append("id = ANY(%(candidates)s)")
                named["candidates"] = candidates
        asked = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        turn = f"row_number() OVER (ORDER BY {order}) AS turn"
        page = f"SELECT {WHOLE}, {turn} FROM job_view {ranked} {asked} ORDER BY {order} LIMIT %(limit)s"
        rows = await self._database.lists.rows(placed(page), {**named, "limit": wanted.limit})
        return [JobRow.of(row) for row in rows]


def placed(page: str) -> str:
    """A query for job rows in the order of their column `turn`, with the position of each as the last column."""
    return f"""
WITH RECURSIVE page AS ({page}), asked AS (
    SELECT client, priority, id, lag(priority, 1, 0::smallint) OVER w AS past_priority, lag(id, 1, 0::bigint) OVER w AS past_id
    FROM page WHERE state = {JobState.QUEUED} WINDOW w AS (PARTITION BY client ORDER BY priority, id)
), places AS (
    SELECT a.id, (sum(n.counted) OVER (PARTITION BY a.client ORDER BY a.priority, a.id))::bigint AS position
    FROM asked a CROSS JOIN LATERAL (
        SELECT count(*) AS counted FROM job_view q
        WHERE q.client = a.client AND q.state = {JobState.QUEUED}
            AND (q.priority, q.id) > (a.past_priority, a.past_id) AND (q.priority, q.id) <= (a.priority, a.id)
    ) AS n
)
SELECT {_ROW}, semaphore,
    CASE WHEN sum(octet_length(parameters)) OVER (ORDER BY turn) <= {MOST_PARAMETERS} THEN parameters END AS parameters,
    coalesce(position, 0), {_TIMES}
FROM page LEFT JOIN places USING (id) ORDER BY turn
"""


def _parts(wanted: JobFilter) -> list[Part]:
    return [
        ("state", None if wanted.state is None else int(wanted.state), "state = %(state)s"),
        ("failed", wanted.failed is True, "failed"),
        ("succeeded", wanted.failed is False, "NOT failed"),
        ("from", wanted.created_from, "created_at >= %(from)s"),
        ("to", wanted.created_to, "created_at <= %(to)s"),
        ("search", wanted.search.lower() if wanted.search else None, "strpos(search_text, %(search)s) > 0"),
        ("ids", bigints(wanted.job_ids) if wanted.job_ids else None, "id = ANY(%(ids)s)"),
        ("workflow", wanted.workflow, "workflow = %(workflow)s"),
        ("client", wanted.client, "client = %(client)s"),
    ]
