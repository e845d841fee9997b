"""Signal handlers: the first signal stops the process in order, a second Ctrl-C by force."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Self


class StopSignals:
    """Calls an action on the first stop signal, and sets `forced` on a later Ctrl-C.

    At first the action cancels the current task, which is the start; `on_stop` replaces it. A second SIGTERM forces nothing: a
    supervisor that signals a process and its group sends SIGTERM twice.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.requested = False
        self.forced = asyncio.Event()
        self._action: Callable[[], object] = task.cancel
        self._loop = asyncio.get_running_loop()
        hangup = (signal.SIGHUP,) if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL else ()  # nohup ignores it
        self._signals = (signal.SIGTERM, signal.SIGINT, *hangup)

    def on_stop(self, action: Callable[[], object]) -> None:
        self._action = action
        if self.requested:
            action()

    def __enter__(self) -> Self:
        for number in self._signals:
            self._loop.add_signal_handler(number, self._handle, number)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number in self._signals:
            self._loop.remove_signal_handler(number)

    def _handle(self, number: int) -> None:
        if not self.requested:
            self.requested = True
            self._action()
        elif number == signal.SIGINT:
            self.forced.set()
