"""The tasks of a job: docs/reference/api/job-engine.md#tasks. Reading needs no key."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from api.engine.client_filter import ClientFilter
from api.engine.model import EngineModel
from api.engine.responses import DashboardTask
from api.engine.surface import ENGINE, UNAVAILABLE
from api.http.auth import OPEN
from api.http.response import Response
from api.http.router import Router
from api.kernel.request import Request
from api.kernel.wire import Instant, Integer, Listed
from domain.job.aggregate import Job
from domain.job.task import Task
from domain.kernel.errors import NotFound
from projections.job.board import LARGEST, BoardQueries, TaskProgress
from projections.job.queries import JobFilter, JobQueries
from projections.log.streams import Streams

routes = Router(surface=ENGINE, tag="Job engine")


class TaskStateName(StrEnum):
    """The states of a task."""

    WAITING = "waiting"
    READY = "ready"
    RUNNING = "running"
    PUBLISHING = "publishing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobTask(EngineModel):
    """A task with its current attempt."""

    task_id: int = Field(description="Number of the task in its job, from 1.")
    name: str = Field(description="Name of the step.")
    state: TaskStateName = Field(description="The task's state.")
    attempts: int = Field(description="How often it was begun; an attempt that was interrupted does not count.")
    worker: str | None = Field(description="Host and process that work, or worked, on it; null before the first attempt.")
    due_at: Instant | None = Field(description="Not tried again before this time; null where it waits for nothing but its turn.")
    started_at: Instant | None = Field(description="When the last attempt began; null before the first.")
    ended_at: Instant | None = Field(description="When the last attempt ended; null while it runs.")
    fraction: float = Field(description="Progress of a running task, from 0 to 1.")
    message: str = Field(description="What a running task says of its progress; may be empty.")
    error: str | None = Field(description="Why the last attempt failed; null where none did.")

    @classmethod
    def of(cls, number: int, task: Task, *, seen: TaskProgress | None) -> JobTask:
        state = task.state if seen is None else seen.state
        return cls.model_construct(
            task_id=number,
            name=task.plan.name,
            state=TaskStateName[state.name],
            attempts=task.attempts,
            worker=task.worker or None,
            due_at=None if task.under_way else task.due_at,
            started_at=task.started_at,
            ended_at=task.ended_at,
            fraction=round(seen.fraction, 4) if seen is not None else 0.0,
            message=seen.message if seen is not None else "",
            error=task.error or None,
        )


class JobTasks(EngineModel):
    """The tasks of a job, and what the job itself does not show."""

    id: int = Field(description="Number of the job.")
    content_id: str = Field(description="What the job is about.")
    reason: str | None = Field(description="Why the job ended as it did; null while there is nothing to say.")
    semaphore_url: str | None = Field(description="Address of the semaphore that a pending job waits for; null without one.")
    tasks: list[JobTask] = Field(description="Tasks by their numbers.")


class TasksQuery(EngineModel):
    """The jobs whose tasks are wanted."""

    job_ids: Annotated[list[Integer], Listed] = Field(
        default_factory=list, description="Numbers of at most 1000 jobs, separated by commas; without any the answer is empty."
    )


@routes.get("/tasks", OPEN, response_model=list[DashboardTask], errors=UNAVAILABLE)
async def list_tasks(
    request: Request, query: TasksQuery, jobs: JobQueries, clients: ClientFilter, boards: BoardQueries
) -> Response:
    """The tasks of several jobs with their progress, by job and task. A job that `GET /engine/jobs` would not find has none."""
    wanted = query.job_ids[:LARGEST]
    client = await clients.of(request)
    if client is not None:
        wanted = [row.id for row in await jobs.search(JobFilter(limit=LARGEST, job_ids=wanted, client=client))]
    return Response(200, [DashboardTask.of(task) for task in await boards.tasks(wanted)])


@routes.get("/jobs/{job_id}/tasks", OPEN, response_model=JobTasks, errors=UNAVAILABLE)
async def get_job_tasks(
    request: Request, job_id: int, jobs: JobQueries, clients: ClientFilter, boards: BoardQueries, streams: Streams
) -> Response:
    """The tasks of one job: attempts, worker, progress and error. A job is found as `GET /engine/jobs/{job_id}` finds it."""
    row = await jobs.by_id(job_id, await clients.of(request))
    job: Any = None if row is None else await streams.load(Job.stream(job_id))
    if row is None or job is None:
        raise NotFound(Job.KIND, str(job_id))
    seen = {one.task: one for one in await boards.tasks([job_id])}
    shown = JobTasks.model_construct(
        id=job_id,
        content_id=job.submission.content_id,
        reason=job.reason or None,
        semaphore_url=None if row.semaphore is None else row.semaphore.url,
        tasks=[JobTask.of(number, task, seen=seen.get(number)) for number, task in sorted(job.tasks.items())],
    )
    return Response(200, shown)
