"""Collects what steps say and writes it down twice a second: one statement, however many steps run. Issue 7, point 2."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from domain.job.masking import blotted
from domain.job.values import Severity
from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from projections.kernel.background import Background
from projections.kernel.database import Database
from projections.queue.chronicle import Line, Progress, write
from projections.queue.claims import Run
from workers.kernel.again import again

_EVERY: Final = 0.5
_MOST: Final = 20_000
_AT_ONCE: Final = 2_000

_log = logging.getLogger(__name__)


class Chronicle(Background):
    """One per process. While the database does not answer, the latest lines are kept and older ones are lost."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lines: list[Line] = []
        self._progress: dict[tuple[int, int], Progress] = {}
        self._writing = asyncio.Lock()

    def line(self, run: Run, message: str, *, severity: int) -> None:
        self._lines.append(Line(run.job, run.task, severity, message, self._clock()))

    def progress(self, run: Run, fraction: float, *, message: str) -> None:
        self._progress[run.job, run.task] = Progress(run, fraction, message)

    async def stop(self) -> None:
        await super().stop()
        await self.flush()

    async def flush(self) -> None:
        """Write what there is; what cannot be written now is tried again later."""
        async with self._writing:
            while self._lines or self._progress:
                lines, self._lines = self._lines[:_AT_ONCE], self._lines[_AT_ONCE:]
                progress, self._progress = self._progress, {}
                try:
                    await write(self._database, lines=lines, progress=list(progress.values()))
                except Unavailable as fault:
                    _log.info("lines of jobs are kept back for a moment: %s", fault)
                    self._lines = [*lines, *self._lines][-_MOST:]
                    self._progress = {**progress, **self._progress}
                    return

    async def _run(self) -> None:
        await again(self._later, what="lines of jobs")

    async def _later(self) -> None:
        await asyncio.sleep(_EVERY)
        await self.flush()


class Voice:
    """What one run says. `secrets` are texts that must not be seen, wherever a step may have got them from: an error message for
    instance."""

    def __init__(self, chronicle: Chronicle, run: Run, *, secrets: frozenset[str]) -> None:
        self._chronicle = chronicle
        self._run = run
        self._secrets = secrets
        self.spoke = False

    def log(self, severity: int, message: str) -> None:
        self.spoke = True
        self._chronicle.line(self._run, self.clean(message), severity=min(max(severity, Severity.DEBUG), Severity.FATAL))

    def progress(self, fraction: float, message: str) -> None:
        self._chronicle.progress(self._run, fraction, message=self.clean(message))

    def clean(self, text: str) -> str:
        return blotted(text, self._secrets) if self._secrets else text

    async def said(self) -> None:
        """What it said is written down before its end is told."""
        if self.spoke:
            await self._chronicle.flush()
