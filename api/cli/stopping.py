"""Signals, in the one place that listens to them: the first asks the process to stop, a second Ctrl-C insists."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Stopping:
    """What "stop" means changes on the way: as long as nothing is served it cancels the start, later it drains the server.

    Only Ctrl-C insists: a supervisor that signals a process and its group sends SIGTERM twice and means it once.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.asked = False
        self.forced = asyncio.Event()
        self._ask: Callable[[], object] = task.cancel
        self._loop = asyncio.get_running_loop()
        hang_up = (signal.SIGHUP,) if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL else ()  # nohup ignores it
        self._signals = (signal.SIGTERM, signal.SIGINT, *hang_up)

    def when_asked(self, action: Callable[[], object]) -> None:
        self._ask = action
        if self.asked:
            action()

    def __enter__(self) -> Self:
        for number in self._signals:
            self._loop.add_signal_handler(number, self._signalled, number)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number in self._signals:
            self._loop.remove_signal_handler(number)

    def _signalled(self, number: int) -> None:
        if not self.asked:
            self.asked = True
            self._ask()
        elif number == signal.SIGINT:
            self.forced.set()
