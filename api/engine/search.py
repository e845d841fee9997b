"""Searching for jobs: document 3, GET /jobs; decisions.md, "Job engine". Needs no key."""

from __future__ import annotations

from api.engine.surface import ENGINE
from api.engine.wire import JobsQuery, JobWire, shown
from api.kernel.answer import Answer
from api.kernel.auth import OPEN
from api.kernel.call import Call
from api.kernel.routes import Routes
from projections.job.queries import JobFilter, JobQueries
from projections.kernel.page import LARGEST

routes = Routes(surface=ENGINE, tag="Job engine")


@routes.get("/jobs", OPEN, answers=list[JobWire])
async def search_jobs(call: Call, query: JobsQuery, jobs: JobQueries) -> Answer:
    """Jobs that every filter finds, the latest first unless another order is asked for. The header client filters too."""
    named = call.header("client")
    if None not in (named, query.client) and named != query.client:
        return Answer(200, [])
    wanted = JobFilter(
        limit=min(query.items, LARGEST),
        order_by=query.order_by,
        descending=not query.asc,
        state=query.state,
        failed=query.failed,
        created_from=query.created_from,
        created_to=query.created_to,
        search=query.search,
        job_ids=query.job_ids,
        client=named if query.client is None else query.client,
    )
    return Answer(200, [shown(job) for job in await jobs.found(wanted)])
