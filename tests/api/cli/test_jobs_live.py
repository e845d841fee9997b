"""`medialedger jobs watch` and `logs --follow` as separate processes: Ctrl-C, a terminal, a pipe that is closed."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.job.values import Result
from projections.job.log_lines import Progress, write
from projections.job.queue import JobNumberSequence, QueuedRun
from tests.api.engine.jobs_given import do, start
from tests.support.engine import Engine
from tests.support.forks import ROOT, Forked

SOON = 60.0


class Screen:
    """A command and the reader of its output: a terminal of 100 columns, or a pipe."""

    def __init__(self, *words: str, environment: dict[str, str], pipe: bool) -> None:
        self._ours, theirs = os.pipe() if pipe else pty.openpty()
        self._open = True
        self._command = Forked(
            *("medialedger", "jobs", *words),
            environment=environment | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self.shown = ""

    async def shows(self, *expected: str) -> None:
        """Wait until the output so far contains all the texts."""
        async with asyncio.timeout(SOON):
            while not all(text in self.shown for text in expected):
                assert self.goes_on, self._command.communicate()[1]
                await asyncio.sleep(0.01)
                self._read()

    def _read(self) -> None:
        with suppress(OSError):  # nothing at the moment, or nobody at the other end
            self.shown += os.read(self._ours, 65_536).decode(errors="replace")

    @property
    def goes_on(self) -> bool:
        return self._command.poll() is None

    async def interrupted(self) -> tuple[int, str]:
        """Press Ctrl-C, and return the exit code and the error output."""
        self._command.send_signal(signal.SIGINT)
        return await self.ended()

    async def ended(self) -> tuple[int, str]:
        _, complaints = await asyncio.to_thread(self._command.communicate, timeout=SOON)
        if self._open:
            self._read()
        return self._command.returncode, complaints

    def turn_away(self) -> None:
        if self._open:
            os.close(self._ours)
        self._open = False

    def close(self) -> None:
        if self.goes_on:
            self._command.kill()
            self._command.communicate()
        self.turn_away()


@pytest.fixture
def engine(inner: Core) -> Engine:
    return Engine(inner, JobNumberSequence(inner.database))


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEDIALEDGER_")}
    return inherited | {"MEDIALEDGER_DATABASE_URL": database_url, "MEDIALEDGER_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}


@asynccontextmanager
async def screen_of(*words: object, environment: dict[str, str], pipe: bool = False) -> AsyncIterator[Screen]:
    screen = Screen(*map(str, words), environment=environment, pipe=pipe)
    try:
        yield screen
    finally:
        screen.close()


async def running(engine: Engine) -> int:
    job = await engine.accept("http_fetch_verify", url="https://origin.test/a.mp4")
    await start(engine.inner, job)
    await do(engine.inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    return job


async def progressed(engine: Engine, job: int, fraction: float, message: str) -> None:
    await write(engine.inner.database, lines=[], progress=[Progress(QueuedRun(job, 1, 1), fraction, message)])


async def test_a_terminal_shows_a_bar_for_each_task_that_runs(engine: Engine, environment: dict[str, str]) -> None:
    job = await running(engine)
    await progressed(engine, job, 0.25, "5 of 20 MB [red]\x1b[7m")
    async with screen_of("watch", environment=environment) as screen:
        await screen.shows(f"{job} fetch", "━", "25%", r"5 of 20 MB [red]\x1b[7m")
        await progressed(engine, job, 0.5, "10 of 20 MB")
        await screen.shows("50%", "10 of 20 MB")
        await do(engine.inner, Job.complete_task.on(job, 1, run=1, result=Result()))
        await screen.shows(f"{job}  fetch is completed, attempt 1")
        await do(engine.inner, Job.start_task.on(job, 2, run=1, worker="host 1"))
        await do(engine.inner, Job.complete_task.on(job, 2, run=1, result=Result()))
        await screen.shows(f"{job}  http_fetch_verify of admin is completed")
        assert screen.goes_on  # there may be more to watch
        assert await screen.interrupted() == (0, "")
        assert screen.shown.rpartition("\x1b[?25l")[2].count("\x1b[?25h") == 1  # the cursor is back


@pytest.mark.parametrize("words", [("logs", "--follow"), ("watch",)], ids=["logs", "watch"])
async def test_ctrl_c_ends_in_order(engine: Engine, environment: dict[str, str], words: tuple[str, ...]) -> None:
    job = await running(engine)
    async with screen_of(*words, job, environment=environment) as screen:
        await screen.shows("task fetch" if words[0] == "logs" else f"{job}  fetch is running")
        assert await screen.interrupted() == (0, "")


async def test_a_closed_pipe_is_no_error(engine: Engine, environment: dict[str, str]) -> None:
    job = await running(engine)
    async with screen_of("logs", job, "--follow", environment=environment, pipe=True) as screen:
        await screen.shows("started the task fetch")
        screen.turn_away()
        await do(engine.inner, Job.complete_task.on(job, 1, run=1, result=Result()))
        assert await screen.ended() == (0, "")
