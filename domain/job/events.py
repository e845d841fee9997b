"""Domain events of a job and its tasks.

Heartbeats and progress are not among them, because they are of no interest a minute later.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from domain.job.values import Output, Result, Semaphore, Submission
from domain.kernel.event import DomainEvent, FirstEvent


class Accepted(FirstEvent):
    """A job was accepted. It does not start before `run_at`. `rerun_of` is the job that this one repeats. `headers` are those of
    the request, without credentials; `transaction_id` is that of the request, and of everything that the engine does for the
    job."""

    TOPIC: ClassVar[str] = "job.accepted"

    submission: Submission
    priority: int
    run_at: datetime | None = None
    semaphore: Semaphore | None = None
    rerun_of: int | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    transaction_id: str = ""


class JobScheduled(DomainEvent):
    """The job waits for a later time."""

    TOPIC: ClassVar[str] = "job.scheduled"

    run_at: datetime


class RunTimeChanged(DomainEvent):
    """`run_at` has a new value in the past: the job is due."""

    TOPIC: ClassVar[str] = "job.run_time_changed"

    run_at: datetime


class PriorityChanged(DomainEvent):
    TOPIC: ClassVar[str] = "job.priority_changed"

    previous: int
    priority: int


class SemaphoreChanged(DomainEvent):
    TOPIC: ClassVar[str] = "job.semaphore_changed"

    semaphore: Semaphore | None


class JobQueued(DomainEvent):
    """The job is due and its semaphore is open, or a client resumed it."""

    TOPIC: ClassVar[str] = "job.queued"

    resumed: bool = False


class JobStarted(DomainEvent):
    """The controller gave the job a slot, and a `low_slot` too if its priority is not below the threshold."""

    TOPIC: ClassVar[str] = "job.started"

    slot: int
    low_slot: int | None


class Paused(DomainEvent):
    """The job was paused. A running step may end, but no other starts."""

    TOPIC: ClassVar[str] = "job.paused"


class Broken(DomainEvent):
    """The job was cancelled. Running steps are stopped at once. After a rerun, `rerun_as` is the job that repeats it."""

    TOPIC: ClassVar[str] = "job.broken"

    rerun_as: int | None = None


class JobCompleted(DomainEvent):
    """The job ended. `failed` says that it was abandoned, for this `reason`. `cause` is a word of its workflow for the owner."""

    TOPIC: ClassVar[str] = "job.completed"
    STANDS_EMPTY: ClassVar[bool] = True

    failed: bool
    reason: str = ""
    cause: str = ""


class TaskStarted(DomainEvent):
    """A worker started a run of a task. `worker` is the name of its host with an id of the process."""

    TOPIC: ClassVar[str] = "job.task_started"

    task: int
    name: str
    run: int
    attempt: int
    worker: str


class OutputsCommitted(DomainEvent):
    """The step ended. Of all runs of the task, the files of this run are published."""

    TOPIC: ClassVar[str] = "job.outputs_committed"

    task: int
    name: str
    run: int
    outputs: tuple[Output, ...]
    result: Result


class TaskCompleted(DomainEvent):
    """A task was completed. `result` is None for a task with outputs: it is in `outputs_committed`."""

    TOPIC: ClassVar[str] = "job.task_completed"

    task: int
    name: str
    run: int
    result: Result | None = None


class TaskFailed(DomainEvent):
    """A run failed. `retry_at` is the time from which the next run may start; None if the task is given up."""

    TOPIC: ClassVar[str] = "job.task_failed"

    task: int
    name: str
    run: int
    attempt: int
    error: str
    retry_at: datetime | None


class TaskLeaseExpired(DomainEvent):
    """The worker of a run did not renew its lease. This counts as a failed attempt."""

    TOPIC: ClassVar[str] = "job.task_lease_expired"

    task: int
    name: str
    run: int
    attempt: int
    retry_at: datetime | None


class TaskInterrupted(DomainEvent):
    """The worker stopped and returned the task. This does not count as an attempt."""

    TOPIC: ClassVar[str] = "job.task_interrupted"

    task: int
    name: str
    run: int


EVENTS: tuple[type[DomainEvent], ...] = (
    Accepted,
    JobScheduled,
    RunTimeChanged,
    PriorityChanged,
    SemaphoreChanged,
    JobQueued,
    JobStarted,
    Paused,
    Broken,
    JobCompleted,
    TaskStarted,
    OutputsCommitted,
    TaskCompleted,
    TaskFailed,
    TaskLeaseExpired,
    TaskInterrupted,
)
