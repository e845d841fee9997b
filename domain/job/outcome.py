"""Outcomes: notifications of a job's owner. The functions are pure.

The owner is notified of each end, of a resumption after an end, and of a rerun, which makes the new job its present one. It is
notified at least once and in the log's order, and ignores a job that is not its present one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from pydantic import Field

from domain.job import events
from domain.job.aggregate import Job
from domain.job.values import Output, TaskState, Value
from domain.kernel.event import DomainEvent


class OutcomeKind(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    BROKEN = "broken"
    RESUMED = "resumed"
    RERUN = "rerun"


class JobOutcome(Value):
    """An outcome of a job. `job` is the number of the job; for a rerun it is the new job, and `rerun_of` the old one. `files` are
    published files. `metadata` merges the metadata of all steps; a later step overrides an earlier one.

    `version` is the version of the job at this outcome; an owner that has followed a later one ignores it. `content_id` is the
    content of the job.
    """

    kind: OutcomeKind
    job: int
    version: int = 0
    content_id: str = ""
    reason: str = ""
    cause: str = ""
    """The workflow's word for what is at fault, for a failure."""
    files: tuple[Output, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    rerun_of: int | None = None


TOPICS: Final = frozenset({events.Accepted.TOPIC, events.JobCompleted.TOPIC, events.Broken.TOPIC, events.JobQueued.TOPIC})
"""The topics of events that can be an outcome."""


def outcome(event: DomainEvent, job: Job) -> JobOutcome | None:
    """Return the outcome that a domain event of a job represents, or None. `job` is the job after the event, or later."""
    match event:
        case events.Accepted(rerun_of=int(old)):
            return JobOutcome(kind=OutcomeKind.RERUN, job=job.number, rerun_of=old)
        case events.JobQueued(resumed=True):
            return JobOutcome(kind=OutcomeKind.RESUMED, job=job.number)
        case events.Broken():
            return JobOutcome(kind=OutcomeKind.BROKEN, job=job.number, reason="the job was cancelled")
        case events.JobCompleted(failed=True, reason=reason, cause=cause):
            return JobOutcome(kind=OutcomeKind.FAILED, job=job.number, reason=reason, cause=cause)
        case events.JobCompleted():
            return _completed(job)
    return None


def _completed(job: Job) -> JobOutcome:
    """Return the outcome of a completed job, without files that steps stored for later steps."""
    done = [task for task in job.tasks.values() if task.state is TaskState.COMPLETED and task.result is not None]
    files = tuple(output for task in done for output in task.outputs if task.result and output.name in task.result.files)
    metadata = {name: value for task in done if task.result for name, value in task.result.metadata.items()}
    return JobOutcome(kind=OutcomeKind.COMPLETED, job=job.number, files=files, metadata=metadata)
