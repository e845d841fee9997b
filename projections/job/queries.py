"""Queries for single jobs and for searches, with the position of each job in its client's queue.

Positions are counted along the index of the queue, once for all jobs of a page: with 100,000 queued jobs a page costs one scan up
to its last job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from domain.job.aggregate import Job
from domain.job.values import JobState, Semaphore
from projections.job.view import JOB_SEARCH, ended_at, started_at
from projections.kernel.database.arrays import bigints
from projections.kernel.database.database import Database
from projections.kernel.sizes import MIB
from projections.kernel.sql.distinct import distinct
from projections.kernel.sql.slices import in_slices
from projections.kernel.sql.where import Part, where

_ROW: Final = "id, version, client, workflow, state, failed, reason, priority, run_at, created_at, updated_at"
_TIMES: Final = "started_at, ended_at"
WHOLE: Final = f"{_ROW}, semaphore, parameters, {_TIMES}"
SUMMARY: Final = f"{_ROW}, NULL::text AS semaphore, NULL::text AS parameters, {_TIMES}"

MOST_PARAMETERS: Final = 4 * MIB
"""The bytes of parameters in one list. The parameters of later jobs are left out."""

_TESTED: Final = 20_000
_COMPARED: Final = 200
"""The number of characters of a reason by which a list is ordered. A place in the list includes them, and it is part of an address.
"""

_RANKED = (
    "LEFT JOIN (SELECT id, row_number() OVER (PARTITION BY client ORDER BY priority, id) AS place"
    f" FROM job_view WHERE state = {JobState.QUEUED}) AS ranked USING (id)"
)
EVERY_CLIENT: Final = distinct("client", table="job_view")
CursorValue = str | int | bool | datetime | None
_TYPES: Final[Mapping[type, str]] = {str: "text", int: "bigint", bool: "boolean", datetime: "timestamptz"}
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
    "reason": f"left(nullif(reason, ''), {_COMPARED})",
    "started_at": "started_at",
    "ended_at": "ended_at",
}
"""SQL expressions by the name of the field in the API."""

UNPAGED: Final = frozenset({"parameters"})
"""The fields whose values do not appear in the cursor of a page, because they may have 64 KiB."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job. `position` is 1 for the client's next job to start, and 0 while a job is not queued.

    `parameters` is JSON; it is None in a summary, like `semaphore_text`, and in a list also after too many bytes of earlier
    parameters. `reason` is empty unless the job has failed; `started_at` and `ended_at` are those of the runs of its tasks.
    """

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
        """Return the row of an aggregate as of any moment. Its position in the queue is then unknown: 0."""
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
            started_at(job),
            ended_at(job),
        )

    def value(self, field: str) -> CursorValue:
        """Return the value by which a list in the order of this field is ordered."""
        if field == "queue_state":
            return self.state.name.lower()
        if field == "reason":
            return (self.reason or "")[:_COMPARED] or None
        content: CursorValue = getattr(self, field)
        return content

    @property
    def semaphore(self) -> Semaphore | None:
        return None if self.semaphore_text is None else Semaphore.model_validate_json(self.semaphore_text)


class JobCursor(NamedTuple):
    """The last job of a page: its id, and the value that it had in the field that orders the list, if any. The job may have been
    removed or changed since."""

    id: int
    value: CursorValue = None


@dataclass(frozen=True, kw_only=True)
class JobFilter:
    """A filter of jobs, all of whose conditions must hold.

    `order_by` is one of `ORDERS`. `failed` with a state other than completed matches nothing. `after` leaves out the jobs up to
    that one in the requested order.
    """

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
    after: JobCursor | None = None


class JobPage(NamedTuple):
    """A page of jobs. If `more`, the filter matches further jobs after these."""

    rows: Sequence[JobRow]
    more: bool

    def end(self, order_by: str) -> JobCursor:
        """Return the cursor after which the next page begins."""
        last = self.rows[-1]
        return JobCursor(last.id, None if order_by == "id" else last.value(order_by))


class JobQueries:
    """Queries for single jobs and for searches."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_id(self, number: int, client: str | None = None, *, place: bool = False) -> JobRow | None:
        """Return the job; with `client`, only if it belongs to that client. Its position is counted only with `place`."""
        parts: list[Part] = [("number", number, "id = %(number)s"), ("client", client, "client = %(client)s")]
        conditions, parameters = where(parts)
        source = f"FROM job_view WHERE {' AND '.join(conditions)}"
        pool = self._database.lists if place else self._database  # a place requires a count along the queue
        query = (
            placed(f"SELECT {WHOLE}, 0 AS turn {source}")
            if place
            else f"SELECT {_ROW}, semaphore, parameters, 0, {_TIMES} {source}"
        )
        row = await pool.row(query, parameters)
        return None if row is None else JobRow.of(row)

    async def search(self, selection: JobFilter) -> JobPage:
        """Return a page of matching jobs. Nulls come last; equal values are ordered by id in the same direction."""
        if selection.failed is not None and selection.state not in (None, JobState.COMPLETED):
            return JobPage([], more=False)
        conditions, parameters = where(_parts(selection))
        if selection.search:
            candidates = await JOB_SEARCH.candidates(self._database.lists, selection.search.lower(), most=_TESTED)
            if candidates is not None:
                conditions.append("id = ANY(%(candidates)s)")
                parameters["candidates"] = candidates
        if selection.after is not None:
            later, cursor_parameters = _later(selection, selection.after)
            conditions.append(later)
            parameters |= cursor_parameters
        parameters["limit"] = selection.limit + 1
        rows = await in_slices(
            partial(map, JobRow.of), await self._database.lists.rows(placed(_page(selection, conditions)), parameters)
        )
        return JobPage(rows[: selection.limit], more=len(rows) > selection.limit)


def _page(selection: JobFilter, conditions: Sequence[str]) -> str:
    """Return the query for the jobs of a page in their order, with the column `turn`."""
    direction = "DESC" if selection.descending else "ASC"
    order = f"id {direction}"
    if selection.order_by != "id":
        order = f"{ORDERS[selection.order_by]} {direction} NULLS LAST, {order}"
    condition = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    source = f"SELECT * FROM job_view {_RANKED if selection.order_by == 'position' else ''} {condition}"
    first = f"ORDER BY {order} LIMIT %(limit)s"
    if (
        selection.order_by == "id"
        and selection.client is None
        and not selection.job_ids
        and (selection.state is not None or selection.failed)
    ):
        source = _by_state(
            selection, f"{source} AND client = wanted.client AND state = wanted.state AND failed = wanted.failed {first}"
        )
    return f"SELECT {WHOLE}, row_number() OVER (ORDER BY {order}) AS turn FROM ({source}) AS found {first}"


def _by_state(selection: JobFilter, each: str) -> str:
    """Return the query for the first jobs of each client by the index of states. It finds a few failed jobs among a million without
    reading the others."""
    states = ", ".join(str(int(state)) for state in (JobState if selection.state is None else (selection.state,)))
    ended = ", ".join(("false", "true") if selection.failed is None else (str(selection.failed).lower(),))
    return f"""
SELECT first.* FROM (
    SELECT c.client, s.state, f.failed FROM ({EVERY_CLIENT}) AS c (client)
    CROSS JOIN unnest(ARRAY[{states}]::smallint[]) AS s (state) CROSS JOIN unnest(ARRAY[{ended}]) AS f (failed)
) AS wanted CROSS JOIN LATERAL ({each}) AS first
"""


def placed(page: str) -> str:
    """Return a query for job rows in the order of their column `turn`, with the position of each as the last column."""
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


def _parts(selection: JobFilter) -> list[Part]:
    return [
        ("state", None if selection.state is None else int(selection.state), "state = %(state)s"),
        ("failed", selection.failed is True, "failed"),
        ("succeeded", selection.failed is False, "NOT failed"),
        ("from", selection.created_from, "created_at >= %(from)s"),
        ("to", selection.created_to, "created_at <= %(to)s"),
        ("search", selection.search.lower() if selection.search else None, "strpos(search_text, %(search)s) > 0"),
        ("ids", bigints(selection.job_ids) if selection.job_ids else None, "id = ANY(%(ids)s)"),
        ("workflow", selection.workflow, "workflow = %(workflow)s"),
        ("client", selection.client, "client = %(client)s"),
    ]


def _later(selection: JobFilter, cursor: JobCursor) -> tuple[str, dict[str, Any]]:
    """Return a condition for the jobs after the cursor, and its parameters."""
    field, beyond = ORDERS[selection.order_by], "<" if selection.descending else ">"
    later, parameters = f"id {beyond} %(after)s", {"after": cursor.id}
    if selection.order_by == "id":
        return later, parameters
    if cursor.value is None:
        return f"{field} IS NULL AND {later}", parameters
    placeholder = f"%(value)s::{_TYPES[type(cursor.value)]}"
    return f"({field} {beyond} {placeholder} OR {field} IS NULL OR ({field} = {placeholder} AND {later}))", parameters | {
        "value": cursor.value
    }
