"""Notes in the log of a job, next to its own events and the lines of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from domain.job.values import Severity
from domain.kernel.clock import Clock
from projections.job.log_lines import Line, write
from projections.kernel.database import Database

_WHOLE_JOB = 0
"""The value that replaces the number of a task."""


class JobNotes:
    """The adapter of the port `domain.job.ports.JobNotes`. `remark` returns the text that the owner of a job adds when it is
    accepted, or None."""

    def __init__(self, database: Database, remark: Callable[[Sequence[Any]], str | None], *, clock: Clock) -> None:
        self._database = database
        self._remark = remark
        self._clock = clock

    async def note(self, number: int, accepted: Sequence[Any]) -> None:
        text = self._remark(accepted)
        if text is not None:
            await write(self._database, lines=[Line(number, _WHOLE_JOB, Severity.WARN, text, self._clock())], progress=())
