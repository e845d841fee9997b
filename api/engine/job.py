"""Jobs: submit, change, rerun and read: docs/reference/api/job-engine.md. Reading needs no key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query

from api.engine.client_filter import ClientFilter
from api.engine.job_counts import WaitingJobs
from api.engine.requests import (
    ChangeJobRequest,
    JobsQuery,
    SubmitJobRequest,
    headers_for_log,
    job_changes,
    job_filter,
    new_job,
    place,
)
from api.engine.responses import EngineAlive, FullJob, JobAccepted, JobUpdates, SingleJob
from api.engine.surface import MOST_PARAMETERS, UNAVAILABLE, EngineRoute, Strangers
from api.http.response import Response
from api.http.routing import OPEN, Service, rules
from api.kernel.auth import WRITE, check_owner
from api.kernel.pages import next_after
from api.kernel.request import Request
from domain.event.vod_jobs import why_hidden
from domain.job.aggregate import Job
from domain.job.handlers import JobHandlers
from domain.job.values import JobState, Semaphore
from domain.kernel.clock import iso
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from projections.job.queries import UNPAGED, JobQueries, JobRow
from projections.kernel.sql.slices import in_slices

routes = APIRouter(prefix="/engine", tags=["Job engine"], route_class=EngineRoute)

_OK: Literal["ok"] = "ok"
_TOO_MANY: Final = {429: "The client has reached its limit of waiting jobs; see Retry-After"}


@routes.get("/", dependencies=[OPEN], response_model=EngineAlive)
async def check_engine(request: Request) -> Response:
    """Confirm that the engine answers."""
    return Response(EngineAlive.model_construct(result=_OK))


async def job_submitted(request: Request, outcome: Outcome[Job]) -> Response:
    return _accepted(outcome.aggregate, outcome)


def _accepted(job: Job, outcome: Outcome[Job]) -> Response:
    """Return the accepted job, with the header Warning if the film of the job will not be shown."""
    hidden = why_hidden(outcome.aggregates)
    headers = () if hidden is None else (("Warning", f"299 - {json.dumps(hidden)}"),)
    return Response(JobAccepted.of(job), headers=headers)


@routes.post("/job", dependencies=[WRITE], response_model=JobAccepted)
@rules(respond=job_submitted, errors=_TOO_MANY)
async def submit_job(
    request: Request, body: SubmitJobRequest, handlers: Service[JobHandlers], waiting: Service[WaitingJobs]
) -> Outcome[Job]:
    """Submit a job. It is queued immediately unless it has a start time or a semaphore."""
    job = new_job(request, body)
    await waiting.admit(job.client)
    return await handlers.submit_job(job, invocation=request.invocation)


async def job_updated(request: Request, outcome: Outcome[Job]) -> Response:
    job, before = outcome.aggregate, outcome.previous[-1]
    updates = [] if outcome.position is None else _updates(before, job)
    return Response(JobUpdates.model_construct(id=job.number, result=updates), etag=job.version)


@routes.put("/job/{job_id}", dependencies=[WRITE], response_model=JobUpdates)
@rules(respond=job_updated)
async def update_job(
    request: Request, job_id: int, body: ChangeJobRequest, handlers: Service[JobHandlers], jobs: Service[JobQueries]
) -> Outcome[Job]:
    """Pause, resume or break a job, or change its priority, time or semaphore; all changes or none are made."""
    changes = job_changes(request, body)
    await _check_owner(request, jobs, job_id)
    return await handlers.update_job(job_id, changes, invocation=request.invocation)


async def job_rerun(request: Request, outcome: Outcome[Job]) -> Response:
    return _accepted(outcome.aggregates[0], outcome)


@routes.post("/jobs/{job_id}/rerun", dependencies=[WRITE], response_model=JobAccepted)
@rules(respond=job_rerun, errors=_TOO_MANY)
async def rerun_job(
    request: Request, job_id: int, handlers: Service[JobHandlers], jobs: Service[JobQueries], waiting: Service[WaitingJobs]
) -> Outcome[Job]:
    """Break a job, whatever its state, and submit another with the same parameters. The id in the response is the new job's."""
    await waiting.admit(await _check_owner(request, jobs, job_id))
    return await handlers.rerun_job(job_id, headers=headers_for_log(request), invocation=request.invocation)


@routes.get("/jobs/{job_id}", dependencies=[OPEN], response_model=SingleJob)
@rules(errors=UNAVAILABLE)
async def get_job(
    request: Request, job_id: int, jobs: Service[JobQueries], clients: Service[ClientFilter], strangers: Service[Strangers]
) -> Response:
    """The job with this number. With the header client, jobs of other clients are not found; an admin finds every job."""
    job = await jobs.by_id(job_id, await clients.of(request), place=True)
    if job is None:
        raise NotFound(Job.KIND, str(job_id))
    shown = await strangers.body(SingleJob.of(job), in_full=await clients.sees_all(request))
    return Response(shown, etag=job.version)


@routes.get("/jobs", dependencies=[OPEN], response_model=list[FullJob])
@rules(errors=UNAVAILABLE)
async def list_jobs(
    request: Request,
    query: Annotated[JobsQuery, Query()],
    jobs: Service[JobQueries],
    clients: Service[ClientFilter],
    strangers: Service[Strangers],
) -> Response:
    """The jobs that match every filter, by default the newest first.

    The header client filters too, unless it names an admin. The header Link holds the address of the next page, if there is one.
    """
    client = await clients.of(request)
    selection = job_filter(query, client=client)
    if None not in (client, query.client) and client != query.client:
        return Response([])
    page = await jobs.search(selection)
    headers: tuple[tuple[str, str], ...] = ()
    if page.more and query.order_by not in UNPAGED:
        headers = (next_after(request, place(page.end(query.order_by))),)
    if not await clients.sees_all(request):
        shown = [FullJob.of(row) for row in _with_less(page.rows)]
        return Response(await strangers.body(shown, in_full=False), headers=headers)
    jobs_as_json = await in_slices(partial(map, FullJob.encoded), page.rows)
    return Response(b"[" + b",".join(jobs_as_json) + b"]", headers=headers)


def _with_less(rows: Sequence[JobRow]) -> Iterator[JobRow]:
    """Yield the rows, without the parameters of the jobs after the first `MOST_PARAMETERS` bytes of parameters."""
    size = 0
    for row in rows:
        size += len(row.parameters or "")
        yield row if size <= MOST_PARAMETERS else replace(row, parameters=None)


async def _check_owner(request: Request, jobs: JobQueries, job_id: int) -> str:
    """Return the job's client. Raise an error unless the caller is that client or an admin."""
    job = await jobs.by_id(job_id)
    if job is None:
        raise NotFound(Job.KIND, str(job_id))
    check_owner(request, job.client, what="job")
    return job.client


def _updates(before: Job, job: Job) -> list[str]:
    pairs: list[tuple[str, Any, Any]] = [
        ("priority", before.priority, job.priority),
        ("sempahore_url", before.semaphore, job.semaphore),
        ("run_at", before.run_at, job.run_at),
        ("queue_state", before.state, job.state),
    ]
    return [f"{name} updated from {_text(old)} to {_text(new)}" for name, old, new in pairs if old != new]


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, JobState):
        return value.name.lower()
    if isinstance(value, Semaphore):
        return value.url
    return str(value) if isinstance(value, int) else iso(value)
