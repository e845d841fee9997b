"""Collects log lines and progress of steps, and writes them twice a second, in one statement for all steps."""

from __future__ import annotations

import asyncio
import logging
from typing import ClassVar, Final

from domain.job.values import Result, Severity
from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from domain.kernel.masking import clean_line, mask_secrets, mask_secrets_in_texts
from projections.job.log_lines import JobLogLine, Progress, write
from projections.job.queue import QueuedRun
from projections.kernel.background_task import BackgroundTask, start_task
from projections.kernel.database.database import Database
from workers.kernel.worker import SharedWorker

_EVERY: Final = 0.5
_MOST: Final = 20_000
_AT_ONCE: Final = 2_000

_log = logging.getLogger(__name__)


class StepLogWriter(BackgroundTask, SharedWorker):
    """Writes the log lines and the progress of the steps of a process; each process has one.

    While the database does not answer, the latest lines stay in memory and older ones are dropped.
    """

    WHAT: ClassVar[str] = "lines of jobs"

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lines: list[JobLogLine] = []
        self._progress: dict[tuple[int, int], Progress] = {}
        self._writing = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()

    def line(self, run: QueuedRun, message: str, *, severity: int) -> None:
        self._lines.append(JobLogLine(run.job, run.task, severity, message, self._clock()))

    def progress(self, run: QueuedRun, fraction: float, *, message: str) -> None:
        self._progress[run.job, run.task] = Progress(run, fraction, message)

    async def stop(self) -> None:
        await super().stop()
        await self.flush()

    async def flush(self) -> None:
        """Write all collected lines; lines that cannot be written now are retried later.

        The lines belong to all runs, so cancelling the caller, for example a run that is stopped, does not interrupt the writing.
        """
        writing = start_task(self._write(), what=self.WHAT)
        self._under_way.add(writing)
        writing.add_done_callback(self._under_way.discard)
        await asyncio.shield(writing)

    async def _write(self) -> None:
        async with self._writing:
            while self._lines or self._progress:
                lines, self._lines = self._lines[:_AT_ONCE], self._lines[_AT_ONCE:]
                progress, self._progress = self._progress, {}
                try:
                    await write(self._database, lines=lines, progress=list(progress.values()))
                except Unavailable as fault:
                    _log.info("lines of jobs are held back for a moment: %s", fault)
                    self._lines = [*lines, *self._lines][-_MOST:]
                    self._progress = {**progress, **self._progress}
                    return

    async def _turn(self) -> None:
        await asyncio.sleep(_EVERY)
        await self.flush()


class StepReporter:
    """Reports the log lines and the progress of a run. `secrets` are texts that are removed from them, for example from an error
    message."""

    def __init__(self, step_log: StepLogWriter, run: QueuedRun, *, secrets: frozenset[str]) -> None:
        self._step_log = step_log
        self._run = run
        self._secrets = secrets
        self._has_lines = False

    def log(self, severity: int, message: str) -> None:
        self._has_lines = True
        self._step_log.line(self._run, self.clean(message), severity=min(max(severity, Severity.DEBUG), Severity.FATAL))

    def progress(self, fraction: float, message: str) -> None:
        self._step_log.progress(self._run, fraction, message=self.clean(message))

    def clean(self, text: str) -> str:
        return clean_line(text, self._secrets)

    def clean_result(self, result: Result) -> Result:
        """Return the result with clean texts.

        From files and metadata, which the product works with afterwards, only the secrets that the job was given are removed.
        """
        files, metadata = result.files, result.metadata
        if self._secrets:
            files = tuple(mask_secrets(name, self._secrets) for name in files)
            metadata = mask_secrets_in_texts(metadata, self._secrets)
        return Result(message=self.clean(result.message), files=files, metadata=metadata)

    async def flush(self) -> None:
        """Write the run's lines before its end is reported."""
        if self._has_lines:
            await self._step_log.flush()
