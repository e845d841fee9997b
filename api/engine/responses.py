"""Responses of the job engine: docs/reference/api/job-engine.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field
from pydantic_core import from_json

from api.audit.past_states import Moment, Renderer
from api.engine.requests import EngineModel
from api.http.response import encode
from api.kernel.version import four_part, product_version
from api.kernel.wire import Instant, Wire
from domain.job.aggregate import Job
from domain.job.values import JobState, TaskState
from domain.record.kinds.schedule import FIRST_IN, Schedule, ScheduleDetails
from domain.record.kinds.setting import EngineSettings, Setting, SettingDetails
from domain.record.ports import RecordRow
from projections.job.board import Board, TaskProgress
from projections.job.counts import ClientCounts, QueueCounts
from projections.job.queries import JobRow

_SCHEDULE = "Queues scheduled jobs whose run_at is in the past."


class QueueState(StrEnum):
    """The states of a job."""

    QUEUED = "queued"
    STARTED = "started"
    COMPLETED = "completed"
    PENDING = "pending"
    BROKEN = "broken"
    SCHEDULED = "scheduled"
    PAUSED = "paused"


class SeverityName(StrEnum):
    """The severities of the records of a job's log."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    FATAL = "FATAL"


class EngineAlive(Wire):
    result: Literal["ok"] = Field(description="ok.")


class JobAccepted(EngineModel):
    id: int = Field(description="Number of the new job.")
    result: Literal["accepted"] = Field(description="accepted.")

    @classmethod
    def of(cls, job: Job) -> JobAccepted:
        return cls.model_construct(id=job.number, result="accepted")


class JobUpdates(EngineModel):
    id: int = Field(description="Number of the job.")
    result: list[str] = Field(description="The changes, such as priority updated from 5 to 8; empty if nothing changed.")


class JobSummary(EngineModel):
    id: int = Field(description="Number of the job.")
    client: str = Field(description="Client that submitted it.")
    workflow: str = Field(description="Name of the workflow.")
    priority: int = Field(description="1 (most urgent) to 10.")
    position: int = Field(description="Position in the client's queue, 1 for the next to start; 0 while it is not queued.")
    created_at: Instant = Field(description="The time when it was accepted.")
    updated_at: Instant = Field(description="The time when it last changed.")
    run_at: Instant | None = Field(description="The earliest start; null if it never had one.")
    queue_state: QueueState = Field(description="The job's state.")
    failed: bool = Field(description="True if it ended without success; queue_state is completed then.")
    reason: str | None = Field(description="The reason why it failed; null if it did not.")
    started_at: Instant | None = Field(description="The time when the first of its tasks began its last run; null before.")
    ended_at: Instant | None = Field(
        description="The time when the last of its tasks ended; null until then, and if none was begun."
    )

    @classmethod
    def of(cls, row: JobRow) -> JobSummary:
        return cls.model_construct(**_fields(row))


class FullJob(JobSummary):
    """A job with its parameters."""

    parameters: dict[str, Any] | None = Field(
        description="Parameters as submitted, with credentials masked. Null in a list after jobs with 4 MiB of parameters."
    )

    @classmethod
    def of(cls, row: JobRow) -> FullJob:
        return cls.model_construct(**_fields(row), parameters=None if row.parameters is None else from_json(row.parameters))

    @staticmethod
    def encoded(row: JobRow) -> bytes:
        """Return a job as JSON. Its parameters are copied as text: parsed, many small values take twenty times the memory of the
        text."""
        return encode(JobSummary.of(row))[:-1] + b',"parameters":' + (row.parameters or "null").encode() + b"}"


class SingleJob(FullJob):
    top_of_queue: bool = Field(description="True if it is the client's next job to start.")

    @classmethod
    def of(cls, row: JobRow) -> SingleJob:
        return cls.model_construct(**dict(FullJob.of(row)), top_of_queue=row.position == 1)


class LogRecord(EngineModel):
    id: int = Field(description="Number of the record in the log of the job; later records have higher ones.")
    job_id: int = Field(description="Number of the job.")
    severity: int = Field(description="0 DEBUG, 1 INFO, 2 WARN, 3 ERROR, 4 FATAL.")
    severity_description: SeverityName = Field(description="Name of the severity.")
    progname: str = Field(description="The program that wrote it: api, scheduler, controller, worker or callback.")
    message: str = Field(description="The message; in the first record the request as JSON, with credentials masked.")
    created_at: Instant = Field(description="The time of the record.")
    updated_at: Instant = Field(description="The same as created_at.")
    task_id: int | None = Field(description="Number of the task; null if the record belongs to no task.")
    visible: bool = Field(description="false for DEBUG.")
    pictures: list[str] = Field(description="Paths below the media root of pictures that the step publishes; at most 20.")


class Dashboard(EngineModel):
    max_jobs: int = Field(description="Setting of the client named by the header client; without the header, of admin.")
    priority_slots: int = Field(description="Setting of the client named by the header client; without the header, of admin.")
    started: list[JobSummary] = Field(description="Running jobs by id; at most 1000.")
    queued: list[JobSummary] = Field(description="Queued jobs in the order in which they start; at most 1000.")
    scheduled: list[JobSummary] = Field(description="Scheduled jobs by their time; at most 1000.")
    version: str = Field(description="Version of the engine, three numbers.")

    @classmethod
    def of(cls, board: Board, settings: EngineSettings) -> Dashboard:
        return cls.model_construct(
            max_jobs=settings.max_jobs,
            priority_slots=settings.priority_slots,
            started=[JobSummary.of(job) for job in board.started],
            queued=[JobSummary.of(job) for job in board.queued],
            scheduled=[JobSummary.of(job) for job in board.scheduled],
            version=engine_version(),
        )


class DashboardCounts(EngineModel):
    started: int
    queued: int
    scheduled: int


class DashboardTask(EngineModel):
    job_id: int = Field(description="Number of the job.")
    task_id: int = Field(description="Number of the task in its job, from 1.")
    name: str = Field(description="Name of the step.")
    state: str = Field(description="The task's state: waiting, ready, running, publishing, completed, failed or cancelled.")
    attempts: int = Field(description="Number of attempts; interrupted attempts do not count.")
    fraction: float = Field(description="Progress of the task, from 0 to 1.")
    message: str = Field(description="The message of a running task about its progress; may be empty.")

    @classmethod
    def of(cls, task: TaskProgress) -> DashboardTask:
        return cls.model_construct(
            job_id=task.job,
            task_id=task.task,
            name=task.name,
            state=task.state.name.lower(),
            attempts=task.attempts,
            fraction=round(task.fraction, 4),
            message=task.message,
        )


class LiveDashboard(Dashboard):
    """A frame of the dashboard's stream: the first jobs of each state, the number of all jobs, and the tasks of the started
    jobs."""

    counts: DashboardCounts
    tasks: list[DashboardTask]

    @classmethod
    def extending(cls, dashboard: Dashboard, *, counts: DashboardCounts, tasks: Sequence[TaskProgress]) -> LiveDashboard:
        return cls.model_construct(**dict(dashboard), counts=counts, tasks=[DashboardTask.of(task) for task in tasks])


class DatabaseStates(EngineModel):
    cache_store: Literal["ok"] = Field(description="ok: the tables of leases and progress.")
    relational_store: Literal["ok"] = Field(description="ok: the PostgreSQL database.")


class QueueLoad(EngineModel):
    workers: int = Field(description="Processes seen in the last 10 seconds.")
    working: int = Field(description="Number of jobs, tasks or deliveries in progress.")
    pending: int = Field(description="Number of waiting jobs, tasks or deliveries.")


class QueueLoads(EngineModel):
    work: QueueLoad = Field(description="Workers and work of this queue.")
    windows_capture: QueueLoad = Field(description="Workers and work of this queue.")
    scheduler: QueueLoad = Field(description="Workers and work of this queue.")
    controller: QueueLoad = Field(description="Workers and work of this queue.")
    callback: QueueLoad = Field(description="Workers and work of this queue.")


class TaskCounts(EngineModel):
    failed: int = Field(description="Tasks that failed finally; they are included in processed.")
    pending: int = Field(description="Waiting tasks.")
    processed: int = Field(description="Tasks that are completed or failed.")


class StateCounts(EngineModel):
    """The number of jobs, by state."""

    queued: int = Field(description="Number of queued jobs.")
    started: int = Field(description="Number of started jobs.")
    completed: int = Field(description="Number of completed jobs.")
    pending: int = Field(description="Number of pending jobs.")
    broken: int = Field(description="Number of broken jobs.")
    scheduled: int = Field(description="Number of scheduled jobs.")
    paused: int = Field(description="Number of paused jobs.")
    failed: int = Field(description="Number of failed jobs; they are included in completed.")


class JobStateCounts(StateCounts):
    max_jobs: int = Field(description="Number of jobs that may run at the same time.")
    priority_slots: int = Field(description="Number of these that are reserved for urgent jobs.")


class EngineHealth(EngineModel):
    version: str = Field(description="Version of the engine, three numbers.")
    databases: DatabaseStates = Field(description="State of the stores.")
    queues: QueueLoads = Field(description="Workers and work of each queue, of all clients.")
    tasks: TaskCounts = Field(description="Tasks of the client.")
    jobs: JobStateCounts = Field(description="Jobs of the client, and its limits.")
    warnings: list[str] = Field(description="Weaknesses in the security of machines, by machine; empty if there are none.")

    @classmethod
    def of(
        cls, counts: ClientCounts, queues: Mapping[str, QueueCounts], settings: EngineSettings, *, warnings: Sequence[str]
    ) -> EngineHealth:
        return cls.model_construct(
            version=engine_version(),
            databases=DatabaseStates.model_construct(cache_store="ok", relational_store="ok"),
            queues=QueueLoads.model_construct(None, **{name: _load(queue) for name, queue in queues.items()}),
            tasks=_task_counts(counts),
            jobs=_job_counts(counts, settings),
            warnings=list(warnings),
        )


class SettingChanged(Wire):
    result: Literal["ok"] = Field(description="ok.")
    message: str = Field(description="The change, such as max_jobs set to 4.")


class ScheduleDescription(Wire):
    schedule_class: Literal["QueueScheduledJobs"] = Field(alias="class", description="QueueScheduledJobs.")
    every: list[int | dict[str, int]] = Field(
        description="Seconds between two runs, then an object with first_in, the seconds until the first run."
    )
    queue: Literal["scheduler"] = Field(description="The queue of the schedule: scheduler.")
    description: str = Field(description="A description of the schedule; says if it is inactive.")

    @classmethod
    def of(cls, interval: int, *, active: bool) -> ScheduleDescription:
        return cls.model_construct(
            schedule_class="QueueScheduledJobs",
            every=[interval, {"first_in": FIRST_IN}],
            queue="scheduler",
            description=_SCHEDULE if active else f"{_SCHEDULE} It is inactive.",
        )


class Schedules(Wire):
    result: Literal["ok"] = Field(description="ok.")
    schedules: dict[str, ScheduleDescription] = Field(description="Schedules by name.")


class ScheduleSwitched(Wire):
    result: Literal["ok"] = Field(description="ok.")
    schedules: list[str] = Field(description="Names of the schedules that were switched.")


def engine_version() -> str:
    """The product's version as three dotted numbers."""
    return four_part(product_version()).rpartition(".")[0]


def past_setting(setting: RecordRow[SettingDetails]) -> dict[str, Any]:
    """Return a past state of a setting for the audit."""
    details = setting.details
    return {"client": details.client, "name": details.name, "setting": details.setting}


def past_schedule(schedule: RecordRow[ScheduleDetails]) -> dict[str, Any]:
    """Return a past state of a schedule for the audit."""
    details = schedule.details
    return {"client": details.client, "schedule": details.name, "active": details.active}


def _fields(row: JobRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "client": row.client,
        "workflow": row.workflow,
        "priority": row.priority,
        "position": row.position,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "run_at": row.run_at,
        "queue_state": QueueState[row.state.name],
        "failed": row.failed,
        "reason": row.reason or None,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
    }


def _load(queue: QueueCounts) -> QueueLoad:
    return QueueLoad.model_construct(workers=queue.workers, working=queue.working, pending=queue.pending)


def _task_counts(counts: ClientCounts) -> TaskCounts:
    failed = counts.tasks.get(TaskState.FAILED, 0)
    pending = sum(counts.tasks.get(state, 0) for state in (TaskState.WAITING, TaskState.READY))
    return TaskCounts.model_construct(failed=failed, pending=pending, processed=counts.tasks.get(TaskState.COMPLETED, 0) + failed)


def _job_counts(counts: ClientCounts, settings: EngineSettings) -> JobStateCounts:
    by_state = {state.name.lower(): counts.jobs.jobs.get(state, 0) for state in JobState}
    limits = {"max_jobs": settings.max_jobs, "priority_slots": settings.priority_slots}
    return JobStateCounts.model_construct(None, **by_state, failed=counts.jobs.failed, **limits)


def past_states() -> Mapping[str, Renderer]:
    async def job(root: Job, moment: Moment) -> Any:
        return FullJob.of(JobRow.past(root)).model_dump(mode="json")

    async def setting(root: Setting, moment: Moment) -> Any:
        return past_setting(RecordRow.of(root))

    async def schedule(root: Schedule, moment: Moment) -> Any:
        return past_schedule(RecordRow.of(root))

    return {Job.KIND: job, Setting.KIND: setting, Schedule.KIND: schedule}
