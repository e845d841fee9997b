"""Signal handlers: the first signal stops the process in order, a second by force."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

_TOGETHER: Final = 1.0
"""Seconds."""

logger = logging.getLogger(__name__)


class StopSignals:
    """Calls an action on the first stop signal, and sets `forced` on a later Ctrl-C or SIGTERM.

    At first the action cancels the current task, which is the start; `on_stop` replaces it. A SIGTERM within a second of the first
    forces nothing: a supervisor that signals a process and its group sends SIGTERM twice.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.requested = False
        self._since = 0.0
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
        self._loop.add_signal_handler(signal.SIGUSR1, _say_nothing_is_restarted)  # by default it would kill
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number in self._signals:
            self._loop.remove_signal_handler(number)
        self._loop.remove_signal_handler(signal.SIGUSR1)

    def _handle(self, number: int) -> None:
        if not self.requested:
            self.requested = True
            self._since = self._loop.time()
            self._action()
        elif number == signal.SIGINT or (number == signal.SIGTERM and self._loop.time() - self._since > _TOGETHER):
            self.forced.set()


def _say_nothing_is_restarted() -> None:
    logger.warning("SIGUSR1 restarts the processes of a supervisor; nothing was done")
