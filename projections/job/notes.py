"""Notes in the log of a job, beside its own events and the lines of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from domain.job.values import Severity
from domain.kernel.clock import Clock
from projections.job.log_lines import Line, write
from projections.kernel.database import Database

_WHOLE_JOB = 0
"""In the place of the number of a task."""


class JobNotes:
    """The port `domain.job.ports.JobNotes`. `remark` is what the owner of a job says when it is accepted; None: nothing."""

    def __init__(self, database: Database, remark: Callable[[Sequence[Any]], str | None], *, clock: Clock) -> None:
        self._database = database
        self._remark = remark
        self._clock = clock

    async def note(self, number: int, accepted: Sequence[Any]) -> None:
        text = self._remark(accepted)
        if text is not None:
            await write(self._database, lines=[Line(number, _WHOLE_JOB, Severity.WARN, text, self._clock())], progress=())
