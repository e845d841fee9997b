"""What the use cases of jobs need from the outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from domain.job.values import TaskPlan
from domain.kernel.aggregate import AggregateRoot

LoadAggregate = Callable[[str], Awaitable[AggregateRoot | None]]
"""Gives the aggregate of a stream."""


class JobNumbers(Protocol):
    """Ids for new jobs, in ascending order. A number that is not used is lost, which does no harm."""

    async def draw(self) -> int: ...


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
        """Raises `Malformed` at `job.workflow`, or at the path of a parameter such as `parameters.url`; never with its value."""
        ...
