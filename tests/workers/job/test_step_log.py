"""The lines of steps, from the step to the table."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from api.wiring.core import Core
from domain.job.values import Severity
from domain.kernel.clock import system_clock
from projections.job.log_lines import write
from projections.job.queue import QueuedRun
from workers.job import step_log
from workers.job.step_log import StepLogWriter, StepReporter

FIRST, SECOND = QueuedRun(1, 1, 1), QueuedRun(2, 1, 1)


async def test_a_run_that_is_stopped_takes_no_line_with_it(inner: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run writes the lines of all others too."""
    in_progress, resume = asyncio.Event(), asyncio.Event()

    async def slow(*given: Any, **named: Any) -> None:
        in_progress.set()
        await resume.wait()
        await write(*given, **named)

    monkeypatch.setattr(step_log, "write", slow)
    log = StepLogWriter(inner.database, clock=system_clock)
    stopped, other = (StepReporter(log, run, secrets=frozenset()) for run in (FIRST, SECOND))
    stopped.log(Severity.INFO, "its own")
    other.log(Severity.INFO, "before")
    other.progress(0.5, "half")
    ending = asyncio.create_task(stopped.flush())
    await in_progress.wait()
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    other.log(Severity.INFO, "after")
    resume.set()
    await log.stop()
    lines = await inner.database.rows("SELECT job, message FROM job_log_lines ORDER BY id")
    assert lines == [(1, "its own"), (2, "before"), (2, "after")]
    assert await inner.database.rows("SELECT job, message FROM job_progress") == [(2, "half")]
