"""The runs of a job's tasks, from its events: the worker, the time and the outcome of each run. See
docs/reference/api/job-engine.md#tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from domain.job import events
from domain.job.aggregate import Job
from domain.kernel.event import DomainEvent
from projections.kernel.database.database import Database

_PARENT = "SELECT metadata->>'trace_parent' FROM stream_events WHERE stream = stream_key(%s) AND version = 1"


class JobTraces:
    """Reads trace contexts of jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def parent(self, job: int) -> str | None:
        """Return the trace context of a job; None if it was submitted without a trace."""
        rows = await self._database.rows(_PARENT, (Job.stream(job),))
        return None if not rows else rows[0][0]


class RunOutcome(StrEnum):
    """The outcome of a task's run, or RUNNING while it has not ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    LOST = "lost"
    INTERRUPTED = "interrupted"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class TaskRun:
    """A run of a task. `retry_at` is the time from which the task may be retried; None if it is not. A broken run ended with its
    job."""

    task: int
    run: int
    attempt: int
    worker: str
    started_at: datetime
    outcome: RunOutcome = RunOutcome.RUNNING
    ended_at: datetime | None = None
    error: str = ""
    retry_at: datetime | None = None


_LOST = "The worker was lost."


def task_runs(history: Iterable[DomainEvent]) -> list[TaskRun]:
    """Return the runs in the order in which they began, given all events of one job."""
    runs: dict[tuple[int, int], TaskRun] = {}
    for event in history:
        if isinstance(event, events.TaskStarted):
            begun = TaskRun(event.task, event.run, event.attempt, event.worker, event.timestamp)
            runs[(event.task, event.run)] = begun
        elif isinstance(event, events.Broken | events.JobCompleted):
            for key, run in runs.items():
                if run.outcome is RunOutcome.RUNNING:
                    runs[key] = replace(run, outcome=RunOutcome.BROKEN, ended_at=event.timestamp)
        else:
            _end(runs, event)
    return list(runs.values())


def _end(runs: dict[tuple[int, int], TaskRun], event: DomainEvent) -> None:
    match event:
        case events.TaskCompleted():
            ended: dict[str, Any] = {"outcome": RunOutcome.COMPLETED}
        case events.TaskFailed():
            ended = {"outcome": RunOutcome.FAILED, "error": event.error, "retry_at": event.retry_at}
        case events.TaskLeaseExpired():
            ended = {"outcome": RunOutcome.LOST, "error": _LOST, "retry_at": event.retry_at}
        case events.TaskInterrupted():
            ended = {"outcome": RunOutcome.INTERRUPTED}
        case _:
            return
    key = (event.task, event.run)
    if key in runs:
        runs[key] = replace(runs[key], ended_at=event.timestamp, **ended)
