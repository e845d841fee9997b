"""Ports of the use cases of jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from domain.job.values import TaskPlan
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.command import Command

LoadAggregate = Callable[[str], Awaitable[AggregateRoot | None]]
"""Loads the aggregate of a stream."""


class JobNumbers(Protocol):
    """Ids for new jobs, in ascending order. A number that is not used is lost, which is harmless."""

    async def draw(self) -> int: ...


class JobNotes(Protocol):
    """Notes in the log of a job, in addition to its own events and the lines of its steps."""

    async def note(self, number: int, accepted: Sequence[Any]) -> None:
        """Write the owner's remarks about a job, given the aggregates that its acceptance has changed."""
        ...


@dataclass(frozen=True, slots=True)
class CheckedJob:
    """A job whose workflow is known and whose parameters are valid for it. `parameters` are as they were sent, with secrets."""

    workflow: str
    content_id: str
    parameters: Mapping[str, Any] = field(repr=False)
    callback_urls: Sequence[str] = field(repr=False)
    tasks: tuple[TaskPlan, ...]


class Workflows(Protocol):
    """The workflows of this installation."""

    def checked_job(self, name: str, parameters: object) -> CheckedJob:
        """Check a job. Raises `Malformed` at `job.workflow`, or at the path of a parameter such as `parameters.url`; never with
        its value."""
        ...


@dataclass(frozen=True, slots=True)
class OwnedJob:
    """A job with its owner, a stream. `parameters` and `run_at` are the values that the owner derives from the request."""

    owner: str
    parameters: Mapping[str, Any] = field(repr=False)
    run_at: datetime | None


class JobOwners(Protocol):
    """Finds the aggregate that a job works for, if its submitter named none, and returns the commands for it. They are executed
    in the append that accepts the job, so an owner that refuses also refuses the job."""

    async def of(self, job: CheckedJob, *, run_at: datetime | None) -> OwnedJob | None:
        """Return the owner of a job, or None if it has none. Raises `Malformed` if the owner, or what the job needs of it, does
        not exist."""
        ...

    def accepted(
        self, job: CheckedJob, number: int, *, owner: str, rerun_of: int | None = None, version: int = 0
    ) -> Sequence[Command[Any]]:
        """Return the commands for a new job, or for one that is resumed: `version` is then the version of the job afterwards.
        Empty for owners whose commands the submitter makes."""
        ...
