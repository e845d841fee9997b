"""What can happen to a job and its tasks. Document 3, "Job" and "States and transitions".

Heartbeats and progress are not among them: they are nobody's facts a minute later.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from domain.job.values import Gate, Output, Result, Submission
from domain.kernel.event import DomainEvent, FirstEvent


class Accepted(FirstEvent):
    """`run_at`: not before then. `rerun_of` is the job that this one repeats. `headers` are those of the request, without
    credentials, and `transaction_id` is its: whatever the engine then does for the job goes under it."""

    TOPIC: ClassVar[str] = "job.accepted"

    submission: Submission
    priority: int
    run_at: datetime | None = None
    gate: Gate | None = None
    rerun_of: int | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    transaction_id: str = ""


class Scheduled(DomainEvent):
    """It waits for a later time than it did."""

    TOPIC: ClassVar[str] = "job.scheduled"

    run_at: datetime


class RunTimeChanged(DomainEvent):
    """`run_at` is another, and lies in the past: it is due."""

    TOPIC: ClassVar[str] = "job.run_time_changed"

    run_at: datetime


class PriorityChanged(DomainEvent):
    TOPIC: ClassVar[str] = "job.priority_changed"

    previous: int
    priority: int


class GateChanged(DomainEvent):
    TOPIC: ClassVar[str] = "job.gate_changed"

    gate: Gate | None


class Queued(DomainEvent):
    """It is due, its gate is open, or somebody resumed it."""

    TOPIC: ClassVar[str] = "job.queued"

    resumed: bool = False


class Started(DomainEvent):
    """The controller gave it a slot; `low_slot` as well, where its priority does not reach the reserved ones."""

    TOPIC: ClassVar[str] = "job.started"

    slot: int
    low_slot: int | None


class Paused(DomainEvent):
    """A step that runs may end; no other begins."""

    TOPIC: ClassVar[str] = "job.paused"


class Broken(DomainEvent):
    """Steps that run are stopped at once. `rerun_as` is the job that repeats it, if that is why."""

    TOPIC: ClassVar[str] = "job.broken"

    rerun_as: int | None = None


class Completed(DomainEvent):
    """`failed`: it was abandoned, for this `reason`."""

    TOPIC: ClassVar[str] = "job.completed"

    failed: bool
    reason: str = ""


class TaskStarted(DomainEvent):
    """A worker began a run of a task. `worker` is its host's name and a mark of the process."""

    TOPIC: ClassVar[str] = "job.task_started"

    task: int
    name: str
    run: int
    attempt: int
    worker: str


class OutputsCommitted(DomainEvent):
    """The step has ended; of all runs of this task it is this one whose files are published."""

    TOPIC: ClassVar[str] = "job.outputs_committed"

    task: int
    name: str
    run: int
    outputs: tuple[Output, ...]
    result: Result


class TaskCompleted(DomainEvent):
    """Of a task with outputs the result is in `outputs_committed` already."""

    TOPIC: ClassVar[str] = "job.task_completed"

    task: int
    name: str
    run: int
    result: Result | None = None


class TaskFailed(DomainEvent):
    """A run failed. `retry_at` is when the next one may begin; None: the task is given up."""

    TOPIC: ClassVar[str] = "job.task_failed"

    task: int
    name: str
    run: int
    attempt: int
    error: str
    retry_at: datetime | None


class TaskLeaseExpired(DomainEvent):
    """Nothing was heard of a run's worker for too long. Counts as a failed attempt."""

    TOPIC: ClassVar[str] = "job.task_lease_expired"

    task: int
    name: str
    run: int
    attempt: int
    retry_at: datetime | None


class TaskInterrupted(DomainEvent):
    """The worker was asked to stop and gave the task back. Counts as no attempt."""

    TOPIC: ClassVar[str] = "job.task_interrupted"

    task: int
    name: str
    run: int


EVENTS: tuple[type[DomainEvent], ...] = (
    Accepted,
    Scheduled,
    RunTimeChanged,
    PriorityChanged,
    GateChanged,
    Queued,
    Started,
    Paused,
    Broken,
    Completed,
    TaskStarted,
    OutputsCommitted,
    TaskCompleted,
    TaskFailed,
    TaskLeaseExpired,
    TaskInterrupted,
)
