"""Supervised processes of the product: a process that ends is started again at once.

They end with the harness, even if it is killed; only PostgreSQL remains then, which the stage stops.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from tests.support.waiting import ROOT

READY = 300.0
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_PAUSE = 0.5
_LIBC = ctypes.CDLL(None)


class Supervised:
    """A process of the product, such as the second sender. `unexpected_ends` counts how often it ended on its own."""

    def __init__(self, name: str, command: Sequence[str], *, environment: Mapping[str, str], logs: Path) -> None:
        self.name = name
        self.unexpected_ends = 0
        self._command = command
        self.environment = environment
        self._logs = logs
        self._starts = 0
        self._log = logs
        self._process: asyncio.subprocess.Process | None = None
        self._expected = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._supervise(), name=self.name)

    async def stop(self) -> None:
        """Kill the process: only stored data counts."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was started"
        return self._process.pid

    @property
    def ready(self) -> bool:
        """True once the process has printed how it can be stopped, at the end of its start."""
        alive = self._process is not None and self._process.returncode is None
        return alive and "SIGTERM" in self._log.read_text(errors="replace")

    async def until_ready(self) -> None:
        deadline = monotonic() + READY
        while not self.ready:
            if monotonic() > deadline:
                raise TimeoutError(f"{self.name} is not ready; see {self._log}")
            await asyncio.sleep(0.05)

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._expected = True
            self._process.kill()

    def terminate(self) -> None:
        """Stop the process as for an update: it hands over its work and exits."""
        if self._process is not None and self._process.returncode is None:
            self._expected = True
            self._process.terminate()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _supervise(self) -> None:
        while True:
            await self._launch()
            assert self._process is not None
            await self._process.wait()
            if not self._expected:
                self.unexpected_ends += 1
                await asyncio.sleep(_PAUSE)

    async def _launch(self) -> None:
        self._starts += 1
        self._expected = False
        self._log = self._logs / f"{self.name}.{self._starts}.log"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEDIALEDGER_")}
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "api.cli.main", *self._command),
                cwd=ROOT,
                env={**inherited, "PYTHONPATH": str(ROOT), **self.environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,
            )


def end_with_parent() -> None:
    _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)
