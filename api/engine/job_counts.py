"""How many jobs are in each state: docs/reference/api/job-engine.md#counts."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from pydantic import Field

from api.engine.client_filter import ClientFilter
from api.engine.responses import StateCounts
from api.engine.surface import ENGINE, UNAVAILABLE
from api.http.auth import OPEN
from api.http.response import Response
from api.http.router import Router
from api.kernel.request import Request
from domain.job.values import JobState
from projections.job.counts import JobCounts

routes = Router(surface=ENGINE, tag="Job engine")

_FRESH: Final = 1.0
_MOST: Final = 1000


class JobTotals(StateCounts):
    """How many jobs there are, by state and in all."""

    total: int = Field(description="How many jobs there are in all.", examples=[9])


class CountedJobs:
    """The counts of each client for a second: many consoles cost one query."""

    def __init__(self, counts: JobCounts) -> None:
        self._counts = counts
        self._known: dict[str | None, tuple[float, JobTotals]] = {}
        self._counting = asyncio.Lock()

    async def of(self, client: str | None) -> JobTotals:
        async with self._counting:
            counted_at, found = self._known.get(client, (float("-inf"), None))
            if found is None or time.monotonic() - counted_at > _FRESH:
                if len(self._known) >= _MOST:
                    self._known.clear()
                found = await self._count(client)
                self._known[client] = (time.monotonic(), found)
            return found

    async def _count(self, client: str | None) -> JobTotals:
        jobs, failed = await self._counts.states(client)
        states = {state.name.lower(): jobs.get(state, 0) for state in JobState}
        return JobTotals(total=sum(jobs.values()), failed=failed, **states)


@routes.get("/jobs/counts", OPEN, response_model=JobTotals, errors=UNAVAILABLE)
async def count_jobs(request: Request, counted: CountedJobs, clients: ClientFilter) -> Response:
    """How many jobs are in each state, a second ago at most. The header client limits it, as it does the list of jobs."""
    return Response(200, await counted.of(await clients.of(request)), headers=(("cache-control", "no-store"),))
