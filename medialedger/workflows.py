"""Workflows of jobs: entry points of the group `medialedger.workflows`."""

from domain.job.values import Severity
from workers.job.context import StepCancelled, StepContext, StepFailed, StepResult
from workers.job.media_paths import RelativePath, Segment
from workers.job.workflow import JobParameters, Step, WebUrl, Workflow

__all__ = [
    "JobParameters",
    "RelativePath",
    "Segment",
    "Severity",
    "Step",
    "StepCancelled",
    "StepContext",
    "StepFailed",
    "StepResult",
    "WebUrl",
    "Workflow",
]
