"""A job's history in words: document 3, "Job log record"; decisions.md, "Job engine": the first record holds the masked request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from api.kernel.answer import iso
from domain.job import events
from domain.job.values import Severity
from domain.kernel.event import DomainEvent
from projections.job.history import Happened, Said

_API: Final = "api"
_CONTROLLER: Final = "controller"
_SCHEDULER: Final = "scheduler"
_WORKER: Final = "worker"


class Words(NamedTuple):
    program: str
    severity: Severity
    message: str


def record(told: Happened | Said, job: int) -> dict[str, Any]:
    """Ids of events are even, those of lines odd: no id changes when others come in between."""
    task: int | None
    if isinstance(told, Said):
        words, number, task = _said(told), told.line * 2 + 1, told.task or None
    else:
        words, number, task = _worded(told), told.position * 2, getattr(told.event, "task", None)
    at = iso(told.at)
    return {
        "id": number,
        "job_id": job,
        "severity": int(words.severity),
        "severity_description": words.severity.name,
        "progname": words.program,
        "message": words.message,
        "created_at": at,
        "updated_at": at,
        "task_id": task,
        "visible": words.severity is not Severity.DEBUG,
    }


def _worded(told: Happened) -> Words:
    speak = _SPEECH.get(type(told.event))
    return Words(_API, Severity.INFO, told.event.TOPIC) if speak is None else speak(told.event, told.actor)


def _said(told: Said) -> Words:
    """What belongs to no task was written while the job waited for its time or its gate."""
    return Words(_WORKER if told.task else _SCHEDULER, Severity(told.severity), told.message)


def _accepted(event: events.Accepted, actor: str) -> Words:
    """As it was sent: document 3, "Submitted job request shape"."""
    job: dict[str, Any] = {"workflow": event.submission.workflow, "priority": event.priority}
    if event.run_at is not None:
        job["run_at"] = iso(event.run_at)
    if event.gate is not None:
        job["sempahore_url"] = event.gate.url
    request: dict[str, Any] = {"client": event.submission.client, "job": job, "parameters": event.submission.parameters}
    if event.rerun_of is not None:
        request["rerun_of"] = event.rerun_of
    return Words(_API, Severity.INFO, to_json({**request, "headers": event.headers}).decode())


def _scheduled(event: events.Scheduled, actor: str) -> Words:
    return _by_client(f"{actor} scheduled the job for {iso(event.run_at)}")


def _run_time_changed(event: events.RunTimeChanged, actor: str) -> Words:
    return _by_client(f"{actor} set run_at to {iso(event.run_at)}, which is past: the job is due")


def _priority_changed(event: events.PriorityChanged, actor: str) -> Words:
    return _by_client(f"{actor} changed the priority from {event.previous} to {event.priority}")


def _gate_changed(event: events.GateChanged, actor: str) -> Words:
    what = "took the semaphore away" if event.gate is None else f"set the semaphore to {event.gate.url}"
    return _by_client(f"{actor} {what}")


def _queued(event: events.Queued, actor: str) -> Words:
    if event.resumed:
        return _by_client(f"{actor} resumed the job")
    return Words(_SCHEDULER, Severity.INFO, "The job is due and is queued")


def _started(event: events.Started, actor: str) -> Words:
    return Words(_CONTROLLER, Severity.INFO, f"The job is started in slot {event.slot}")


def _paused(event: events.Paused, actor: str) -> Words:
    return _by_client(f"{actor} paused the job")


def _broken(event: events.Broken, actor: str) -> Words:
    again = "" if event.rerun_as is None else f"; it is run again as job {event.rerun_as}"
    return Words(_API, Severity.WARN, f"{actor} broke the job off{again}")


def _completed(event: events.Completed, actor: str) -> Words:
    if event.failed:
        return Words(_WORKER, Severity.ERROR, f"The job is abandoned: {event.reason}")
    return Words(_WORKER, Severity.INFO, "The job is completed")


def _task_started(event: events.TaskStarted, actor: str) -> Words:
    return Words(_WORKER, Severity.INFO, f"{event.worker} started the task {event.name}, attempt {event.attempt}")


def _outputs_committed(event: events.OutputsCommitted, actor: str) -> Words:
    made = ", ".join(one.name for one in event.outputs)
    said = f": {event.result.message}" if event.result.message else ""
    return Words(_WORKER, Severity.INFO, f"The task {event.name} publishes {made}{said}")


def _task_completed(event: events.TaskCompleted, actor: str) -> Words:
    said = "" if event.result is None or not event.result.message else f": {event.result.message}"
    return Words(_WORKER, Severity.INFO, f"The task {event.name} is completed{said}")


def _task_failed(event: events.TaskFailed, actor: str) -> Words:
    return _retried(f"The task {event.name} failed at attempt {event.attempt}: {event.error}", event.retry_at)


def _task_lease_expired(event: events.TaskLeaseExpired, actor: str) -> Words:
    return _retried(f"The worker of the task {event.name} was lost at attempt {event.attempt}", event.retry_at)


def _task_interrupted(event: events.TaskInterrupted, actor: str) -> Words:
    return Words(_WORKER, Severity.INFO, f"The task {event.name} was given back by a worker that stops")


def _by_client(message: str) -> Words:
    return Words(_API, Severity.INFO, message)


def _retried(message: str, retry_at: datetime | None) -> Words:
    if retry_at is None:
        return Words(_WORKER, Severity.ERROR, message)
    return Words(_WORKER, Severity.WARN, f"{message}; it is tried again at {iso(retry_at)}")


_SPEECH: Final[Mapping[type[DomainEvent], Callable[[Any, str], Words]]] = {
    events.Accepted: _accepted,
    events.Scheduled: _scheduled,
    events.RunTimeChanged: _run_time_changed,
    events.PriorityChanged: _priority_changed,
    events.GateChanged: _gate_changed,
    events.Queued: _queued,
    events.Started: _started,
    events.Paused: _paused,
    events.Broken: _broken,
    events.Completed: _completed,
    events.TaskStarted: _task_started,
    events.OutputsCommitted: _outputs_committed,
    events.TaskCompleted: _task_completed,
    events.TaskFailed: _task_failed,
    events.TaskLeaseExpired: _task_lease_expired,
    events.TaskInterrupted: _task_interrupted,
}
