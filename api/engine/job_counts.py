"""Numbers of jobs by state: docs/reference/api/job-engine.md#counts."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Query
from pydantic import Field

from api.engine.client_filter import ClientFilter
from api.engine.requests import JobCountsQuery
from api.engine.responses import StateCounts
from api.engine.surface import UNAVAILABLE, EngineRoute
from api.http.errors import TooManyRequests
from api.http.response import Response
from api.http.routing import OPEN, Service, rules
from api.kernel.request import Request
from domain.job.values import JobState
from projections.job.counts import JobCounts, JobTotal, state_totals
from projections.job.settings import EngineSettingsQueries

# The limit on waiting jobs: docs/reference/api/job-engine.md#settings. They are counted at most once per second for each client,
# by one request at a time. Concurrent requests use the last count and the number accepted since, so slightly more jobs than the
# limit may be accepted at the same moment.

_LATER: Final = 10
_MOST_CLIENTS: Final = 10_000


class _Counted(NamedTuple):
    waiting: int
    most: int
    at: float


class WaitingJobs:
    """Refuses further jobs of a client that has reached its limit of waiting jobs."""

    def __init__(
        self, counts: JobCounts, settings: EngineSettingsQueries, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._counts = counts
        self._settings = settings
        self._monotonic = monotonic
        self._of: dict[str, _Counted] = {}

    async def admit(self, client: str) -> None:
        """Count a job of the client. Raise `TooManyRequests` at the limit."""
        now = self._monotonic()
        counted = self._of.get(client)
        if counted is None or now - counted.at >= _FRESH:
            if counted is not None:
                self._of[client] = counted._replace(at=now)
            counted = await self._count(client, now)
        if counted.waiting >= counted.most:
            detail = f"{counted.most} jobs of the client are waiting, which is its limit"
            raise TooManyRequests(detail, retry_after=_LATER)
        self._of[client] = counted._replace(waiting=counted.waiting + 1)

    async def _count(self, client: str, now: float) -> _Counted:
        most = (await self._settings.of([client]))[client].max_waiting_jobs
        counted = _Counted(await self._counts.waiting(client, most=most), most, now)
        if len(self._of) >= _MOST_CLIENTS:
            self._of.clear()
        self._of[client] = counted
        return counted


routes = APIRouter(prefix="/engine", tags=["Job engine"], route_class=EngineRoute)

_FRESH: Final = 1.0


class WorkflowTotals(StateCounts):
    """The number of jobs of a workflow, by state and in total."""

    workflow: str = Field(description="Name of the workflow.")
    total: int = Field(description="Total number of jobs of the workflow.", examples=[9])


class JobTotals(StateCounts):
    """The number of jobs, by state and in total."""

    total: int = Field(description="Total number of jobs.", examples=[9])
    workflows: list[WorkflowTotals] = Field(description="The numbers of each workflow that has jobs, by name.")


class CountedJobs:
    """The counts of jobs, read at most once per second, so that many consoles cost one query."""

    def __init__(self, counts: JobCounts) -> None:
        self._counts = counts
        self._counted_at = float("-inf")
        self._totals: Sequence[JobTotal] = ()
        self._counting = asyncio.Lock()

    async def now(self) -> Sequence[JobTotal]:
        async with self._counting:
            if time.monotonic() - self._counted_at > _FRESH:
                self._totals = await self._counts.jobs()
                self._counted_at = time.monotonic()
            return self._totals


@routes.get("/jobs/counts", dependencies=[OPEN], response_model=JobTotals)
@rules(errors=UNAVAILABLE)
async def count_jobs(
    request: Request, query: Annotated[JobCountsQuery, Query()], counted: Service[CountedJobs], clients: Service[ClientFilter]
) -> Response:
    """The number of jobs in each state, in total and for each workflow, at most one second old.

    The header client filters the counts as it filters the list of jobs.
    """
    allowed = await clients.of(request)
    jobs = [
        job
        for job in await counted.now()
        if allowed in (None, job.client) and query.client in (None, job.client) and query.workflow in (None, job.workflow)
    ]
    of_workflow: defaultdict[str, list[JobTotal]] = defaultdict(list)
    for job in jobs:
        of_workflow[job.workflow].append(job)
    workflows = [WorkflowTotals(workflow=name, **_shown(of_workflow[name])) for name in sorted(of_workflow)]
    return Response(JobTotals(workflows=workflows, **_shown(jobs)))


def _shown(jobs: Iterable[JobTotal]) -> dict[str, int]:
    totals = state_totals(jobs)
    states = {state.name.lower(): totals.jobs.get(state, 0) for state in JobState}
    return {"total": totals.all, "failed": totals.failed, **states}
