"""The text of a job's log: docs/reference/api/job-engine.md#job-log. The first record holds the masked request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from api.engine.responses import LogRecord, SeverityName
from api.engine.surface import machine
from domain.job import events
from domain.job.values import Severity
from domain.kernel.clock import iso
from domain.kernel.event import DomainEvent
from projections.job.history import LogEvent, LogLine

_API: Final = "api"
_CONTROLLER: Final = "controller"
_SCHEDULER: Final = "scheduler"
_WORKER: Final = "worker"
_PICTURES: Final = (".jpg", ".jpeg", ".png", ".gif", ".webp")
_MOST_PICTURES: Final = 20


class LogMessage(NamedTuple):
    program: str
    severity: Severity
    message: str


def record(entry: LogEvent | LogLine, job: int, *, in_full: bool) -> LogRecord:
    """Return the record of an entry. Names of machines are shown only `in_full`."""
    task: int | None
    if isinstance(entry, LogLine):
        message, task = _of_line(entry), entry.task or None
    else:
        message, task = _of_event(entry, in_full), getattr(entry.event, "task", None)
    return LogRecord.model_construct(
        id=entry.number,
        job_id=job,
        severity=int(message.severity),
        severity_description=SeverityName[message.severity.name],
        progname=message.program,
        message=message.message,
        created_at=entry.at,
        updated_at=entry.at,
        task_id=task,
        visible=message.severity is not Severity.DEBUG,
        pictures=_pictures(entry),
    )


def _pictures(entry: LogEvent | LogLine) -> list[str]:
    if isinstance(entry, LogLine) or not isinstance(entry.event, events.OutputsCommitted):
        return []
    names = (output.name for output in entry.event.outputs)
    return [name for name in names if name.lower().endswith(_PICTURES) and not name.startswith(".")][:_MOST_PICTURES]


def _of_event(entry: LogEvent, in_full: bool) -> LogMessage:
    if isinstance(entry.event, events.TaskStarted):
        return _task_started(entry.event, machine(entry.event.worker, in_full=in_full))
    render = _RENDERERS.get(type(entry.event))
    return LogMessage(_API, Severity.INFO, entry.event.TOPIC) if render is None else render(entry.event, entry.actor)


def _of_line(line: LogLine) -> LogMessage:
    """Return the message of a line. A line without a task was written while the job waited for its time or its semaphore."""
    return LogMessage(line.program or (_WORKER if line.task else _SCHEDULER), Severity(line.severity), line.message)


def _accepted(event: events.Accepted, actor: str) -> LogMessage:
    """Return the request in the form in which it was sent."""
    job: dict[str, Any] = {"workflow": event.submission.workflow, "priority": event.priority}
    if event.run_at is not None:
        job["run_at"] = iso(event.run_at)
    if event.semaphore is not None:
        job["sempahore_url"] = event.semaphore.url
    request: dict[str, Any] = {"client": event.submission.client, "job": job, "parameters": event.submission.parameters}
    if event.rerun_of is not None:
        request["rerun_of"] = event.rerun_of
    return LogMessage(_API, Severity.INFO, to_json({**request, "headers": event.headers}).decode())


def _scheduled(event: events.JobScheduled, actor: str) -> LogMessage:
    return _by_client(f"{actor} scheduled the job for {iso(event.run_at)}")


def _run_time_changed(event: events.RunTimeChanged, actor: str) -> LogMessage:
    return _by_client(f"{actor} set run_at to {iso(event.run_at)}, which is in the past: the job is due")


def _priority_changed(event: events.PriorityChanged, actor: str) -> LogMessage:
    return _by_client(f"{actor} changed the priority from {event.previous} to {event.priority}")


def _semaphore_changed(event: events.SemaphoreChanged, actor: str) -> LogMessage:
    change = "removed the semaphore" if event.semaphore is None else f"set the semaphore to {event.semaphore.url}"
    return _by_client(f"{actor} {change}")


def _queued(event: events.JobQueued, actor: str) -> LogMessage:
    if event.resumed:
        return _by_client(f"{actor} resumed the job")
    return LogMessage(_SCHEDULER, Severity.INFO, "The job is due and is queued")


def _started(event: events.JobStarted, actor: str) -> LogMessage:
    return LogMessage(_CONTROLLER, Severity.INFO, f"The job is started in slot {event.slot}")


def _paused(event: events.Paused, actor: str) -> LogMessage:
    return _by_client(f"{actor} paused the job")


def _broken(event: events.Broken, actor: str) -> LogMessage:
    again = "" if event.rerun_as is None else f"; it runs again as job {event.rerun_as}"
    return LogMessage(_API, Severity.WARN, f"{actor} broke the job{again}")


def _completed(event: events.JobCompleted, actor: str) -> LogMessage:
    if event.failed:
        return LogMessage(_WORKER, Severity.ERROR, f"The job is abandoned: {event.reason}")
    return LogMessage(_WORKER, Severity.INFO, "The job is completed")


def _task_started(event: events.TaskStarted, worker: str) -> LogMessage:
    return LogMessage(_WORKER, Severity.INFO, f"{worker} started the task {event.name}, attempt {event.attempt}")


def _outputs_committed(event: events.OutputsCommitted, actor: str) -> LogMessage:
    files = ", ".join(output.name for output in event.outputs)
    message = f": {event.result.message}" if event.result.message else ""
    return LogMessage(_WORKER, Severity.INFO, f"The task {event.name} publishes {files}{message}")


def _task_completed(event: events.TaskCompleted, actor: str) -> LogMessage:
    message = "" if event.result is None or not event.result.message else f": {event.result.message}"
    return LogMessage(_WORKER, Severity.INFO, f"The task {event.name} is completed{message}")


def _task_failed(event: events.TaskFailed, actor: str) -> LogMessage:
    return _retried(f"The task {event.name} failed at attempt {event.attempt}: {event.error}", event.retry_at)


def _task_lease_expired(event: events.TaskLeaseExpired, actor: str) -> LogMessage:
    return _retried(f"The worker of the task {event.name} was lost at attempt {event.attempt}", event.retry_at)


def _task_interrupted(event: events.TaskInterrupted, actor: str) -> LogMessage:
    return LogMessage(_WORKER, Severity.INFO, f"The task {event.name} was returned to the queue by a worker that is stopping")


def _by_client(message: str) -> LogMessage:
    return LogMessage(_API, Severity.INFO, message)


def _retried(message: str, retry_at: datetime | None) -> LogMessage:
    if retry_at is None:
        return LogMessage(_WORKER, Severity.ERROR, message)
    return LogMessage(_WORKER, Severity.WARN, f"{message}; it will be retried at {iso(retry_at)}")


_RENDERERS: Final[Mapping[type[DomainEvent], Callable[[Any, str], LogMessage]]] = {
    events.Accepted: _accepted,
    events.JobScheduled: _scheduled,
    events.RunTimeChanged: _run_time_changed,
    events.PriorityChanged: _priority_changed,
    events.SemaphoreChanged: _semaphore_changed,
    events.JobQueued: _queued,
    events.JobStarted: _started,
    events.Paused: _paused,
    events.Broken: _broken,
    events.JobCompleted: _completed,
    events.TaskStarted: _task_started,
    events.OutputsCommitted: _outputs_committed,
    events.TaskCompleted: _task_completed,
    events.TaskFailed: _task_failed,
    events.TaskLeaseExpired: _task_lease_expired,
    events.TaskInterrupted: _task_interrupted,
}
