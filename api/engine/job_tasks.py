"""The tasks of a job with their progress and all their runs. docs/reference/api/job-engine.md#tasks. Needs no key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, cast

from fastapi import APIRouter, Query
from pydantic import Field

from api.engine.client_filter import ClientFilter
from api.engine.requests import EngineModel
from api.engine.responses import DashboardTask
from api.engine.surface import UNAVAILABLE, EngineRoute, Strangers, machine
from api.http.response import Response
from api.http.routing import OPEN, Service, rules
from api.kernel.request import Request
from api.kernel.wire import Instant, Integer, Listed
from domain.job.aggregate import Job
from domain.job.task import Task
from domain.job.values import Output
from domain.kernel.errors import NotFound
from projections.job.board import LARGEST, BoardQueries, TaskProgress
from projections.job.history import JobHistory
from projections.job.queries import JobFilter, JobQueries
from projections.job.task_runs import RunOutcome, TaskRun, task_runs
from projections.log.streams import Streams

routes = APIRouter(prefix="/engine", tags=["Job engine"], route_class=EngineRoute)


class TaskStateName(StrEnum):
    """The states of a task."""

    WAITING = "waiting"
    READY = "ready"
    RUNNING = "running"
    PUBLISHING = "publishing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PublishedFile(EngineModel):
    """A file that a task published."""

    path: str = Field(description="Path below the media root.", examples=["match-17/match.mp4"])
    size: int = Field(description="Bytes.")

    @classmethod
    def of(cls, output: Output) -> PublishedFile:
        return cls.model_construct(path=output.name, size=output.size)


class TaskRunRecord(EngineModel):
    """A run of a task."""

    attempt: int = Field(description="Number of the attempt, from 1; a resumed job begins at 1 again.")
    worker: str = Field(description="The process that ran it: its host and an id.")
    started_at: Instant = Field(description="The time when it began.")
    ended_at: Instant | None = Field(description="The time when it ended; null while it runs.")
    outcome: RunOutcome = Field(description="The outcome of the run; broken: it was broken with its job.")
    error: str | None = Field(description="The error; null if it did not fail.")
    retry_at: Instant | None = Field(description="The earliest time of the next attempt; null if there is none.")

    @classmethod
    def of(cls, run: TaskRun, *, in_full: bool) -> TaskRunRecord:
        return cls.model_construct(
            attempt=run.attempt,
            worker=machine(run.worker, in_full=in_full),
            started_at=run.started_at,
            ended_at=run.ended_at,
            outcome=run.outcome,
            error=run.error or None,
            retry_at=run.retry_at,
        )


class JobTask(EngineModel):
    """A task of a job: one step of its workflow."""

    task_id: int = Field(description="Number of the task in its job, from 1.")
    name: str = Field(description="Name of the step.")
    queue: str = Field(description="The queue whose workers run it.")
    after: list[int] = Field(description="Numbers of the tasks that must be completed before it starts.")
    state: TaskStateName = Field(description="publishing: the step has ended, and its files are being moved to their places.")
    attempts: int = Field(description="Attempts since the job was last resumed.")
    worker: str | None = Field(description="Host and process of the current or last attempt; null before the first.")
    due_at: Instant | None = Field(description="The earliest time of the next attempt; null if it waits only for its turn.")
    started_at: Instant | None = Field(description="The time when the last attempt began; null before the first.")
    ended_at: Instant | None = Field(description="The time when the last attempt ended; null while it runs.")
    fraction: float = Field(description="Progress of the current run, from 0 to 1.")
    message: str = Field(description="The message of the step about its progress or result; may be empty.")
    error: str | None = Field(description="The error of the last run; null if it did not fail.")
    files: list[PublishedFile] = Field(description="Files that the task published.")
    runs: list[TaskRunRecord] = Field(description="All runs, the oldest first.")

    @classmethod
    def of(cls, job: Job, task: Task, *, progress: TaskProgress | None, runs: Sequence[TaskRun], in_full: bool) -> JobTask:
        reported = "" if progress is None else progress.message
        return cls.model_construct(
            task_id=task.plan.id,
            name=task.plan.name,
            queue=task.plan.queue,
            after=list(task.plan.after),
            state=TaskStateName[job.state_of(task).name],
            attempts=task.attempts,
            worker=machine(task.worker, in_full=in_full) or None,
            due_at=None if task.in_progress else task.due_at,
            started_at=task.started_at,
            ended_at=task.ended_at,
            fraction=0.0 if progress is None else round(progress.fraction, 4),
            message=task.result.message if task.result is not None and task.result.message else reported,
            error=task.error or None,
            files=[PublishedFile.of(output) for output in task.outputs],
            runs=[TaskRunRecord.of(run, in_full=in_full) for run in runs if run.task == task.plan.id],
        )


class JobTasks(EngineModel):
    """The tasks of a job, and fields that the job itself does not show."""

    id: int = Field(description="Number of the job.")
    content_id: str = Field(description="The content that the job works on.")
    reason: str | None = Field(description="The reason why the job ended as it did; null if there is none.")
    semaphore_url: str | None = Field(description="Address of the semaphore that a pending job waits for; null without one.")
    tasks: list[JobTask] = Field(description="The tasks, each after those that it waits for.")


class TasksQuery(EngineModel):
    """Query of the tasks of several jobs."""

    job_ids: Annotated[list[Integer], Listed] = Field(
        default_factory=list, description="Numbers of at most 1000 jobs, separated by commas; without them the answer is empty."
    )


@routes.get("/tasks", dependencies=[OPEN], response_model=list[DashboardTask])
@rules(errors=UNAVAILABLE)
async def list_tasks(
    request: Request,
    query: Annotated[TasksQuery, Query()],
    jobs: Service[JobQueries],
    clients: Service[ClientFilter],
    boards: Service[BoardQueries],
    strangers: Service[Strangers],
) -> Response:
    """The tasks of several jobs with their progress, by job and task. Jobs that `GET /engine/jobs` would hide have none here."""
    selected = query.job_ids[:LARGEST]
    client = await clients.of(request)
    if client is not None:
        selected = [row.id for row in (await jobs.search(JobFilter(limit=LARGEST, job_ids=selected, client=client))).rows]
    shown = [DashboardTask.of(task) for task in await boards.tasks(selected)]
    return Response(await strangers.body(shown, in_full=await clients.sees_all(request)))


@routes.get("/jobs/{job_id}/tasks", dependencies=[OPEN], response_model=JobTasks)
@rules(errors=UNAVAILABLE)
async def get_job_tasks(
    request: Request,
    job_id: int,
    jobs: Service[JobQueries],
    clients: Service[ClientFilter],
    streams: Service[Streams],
    history: Service[JobHistory],
    boards: Service[BoardQueries],
    strangers: Service[Strangers],
) -> Response:
    """The tasks of a job with all their runs. Each task follows the tasks that it waits for."""
    row = await jobs.by_id(job_id, await clients.of(request))
    if row is None:
        raise NotFound(Job.KIND, str(job_id))
    root, events, progress = await asyncio.gather(streams.load(Job.stream(job_id)), history.events(job_id), boards.tasks([job_id]))
    if root is None:
        raise NotFound(Job.KIND, str(job_id))
    in_full = await clients.sees_all(request)
    job, runs, by_task = cast(Job, root), task_runs(events), {task_progress.task: task_progress for task_progress in progress}
    shown = JobTasks.model_construct(
        id=job_id,
        content_id=job.submission.content_id,
        reason=job.reason or None,
        semaphore_url=None if row.semaphore is None else row.semaphore.url,
        tasks=[
            JobTask.of(job, task, progress=by_task.get(number), runs=runs, in_full=in_full) for number, task in job.tasks.items()
        ],
    )
    return Response(await strangers.body(shown, in_full=in_full))
