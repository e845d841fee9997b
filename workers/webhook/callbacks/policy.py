"""Notices of jobs for their callbacks: see docs/reference/api/job-engine.md#callbacks. These are pure functions.

There is a notice when a job starts, ends, is paused or resumed, and when an attempt of a task starts, is completed or fails. There
is none when a worker gives a task back: the same attempt starts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from domain.job import events
from domain.job.aggregate import Job
from domain.job.task import Task
from domain.job.values import Result, TaskState
from domain.kernel.clock import iso
from domain.kernel.event import DomainEvent

JOB_STATUSES: Final = ("started", "queued", "paused", "broken", "completed", "failed")
TASK_STATUSES: Final = ("task_started", "task_completed", "task_failed")
_LOST: Final = "its worker gave no sign of life"


@dataclass(frozen=True, slots=True)
class _Notice:
    """The fields of a payload that differ between the notices of a job. Only notices of tasks have `task` and `attempt`."""

    status: str
    message: str = ""
    files: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    task: str | None = None
    attempt: int = 0


def payload(event: DomainEvent, job: Job) -> dict[str, Any] | None:
    """Return the payload for a domain event; None if there is no notice of the event. `job` is the job after the event."""
    notice = _of_job(event, job) or _of_task(event, job)
    if notice is None:
        return None
    submission = job.submission
    body: dict[str, Any] = {
        "job_id": job.number,
        "status": notice.status,
        "workflow": submission.workflow,
        "content_id": submission.content_id,
        "message": notice.message,
        "files": list(notice.files),
        "metadata": dict(notice.metadata),
        "custom_data": submission.parameters.get("custom_data"),
        "time": iso(event.timestamp),
        "client": submission.client,
    }
    return body if notice.task is None else {**body, "task": notice.task, "attempt": notice.attempt}


def sample(*, client: str, at: datetime) -> dict[str, Any]:
    """Return a sample to test a receiver. No job has the number 0."""
    return {
        "job_id": 0,
        "status": "completed",
        "workflow": "",
        "content_id": "",
        "message": "This is a test.",
        "files": [],
        "metadata": {},
        "custom_data": None,
        "time": iso(at),
        "client": client,
    }


def _of_job(event: DomainEvent, job: Job) -> _Notice | None:
    match event:
        case events.JobStarted():
            return _Notice("started")
        case events.JobQueued(resumed=True):
            return _Notice("queued", "it was resumed")
        case events.Paused():
            return _Notice("paused")
        case events.Broken(rerun_as=again):
            return _Notice("broken", "" if again is None else f"it is repeated as job {again}")
        case events.JobCompleted(failed=failed, reason=reason):
            return _end_notice("failed" if failed else "completed", reason, job.tasks.values())
    return None


def _of_task(event: DomainEvent, job: Job) -> _Notice | None:
    match event:
        case events.TaskStarted(name=name, attempt=attempt):
            return _Notice("task_started", task=name, attempt=attempt)
        case events.TaskCompleted(task=task_id, name=name):
            task = job.tasks[task_id]
            result = task.result or Result()
            return _Notice("task_completed", result.message, result.files, result.metadata, task=name, attempt=task.attempts)
        case events.TaskFailed(name=name, attempt=attempt, error=error, retry_at=retry_at):
            return _Notice("task_failed", _with_retry(error, retry_at), task=name, attempt=attempt)
        case events.TaskLeaseExpired(name=name, attempt=attempt, retry_at=retry_at):
            return _Notice("task_failed", _with_retry(_LOST, retry_at), task=name, attempt=attempt)
    return None


def _end_notice(status: str, reason: str, tasks: Iterable[Task]) -> _Notice:
    """Return the notice of an ended job with the files of all completed tasks. A failed job has them too: they are published."""
    results = [(task.plan.name, task.result) for task in tasks if task.result is not None and task.state is TaskState.COMPLETED]
    files = tuple(name for _, result in results for name in result.files)
    metadata = {name: result.metadata for name, result in results}
    messages = [result.message for _, result in results if result.message]
    return _Notice(status, reason or (messages[-1] if messages else ""), files, metadata)


def _with_retry(error: str, retry_at: datetime | None) -> str:
    return f"{error}; it is tried again at {iso(retry_at)}" if retry_at is not None else f"{error}; it is not tried again"
