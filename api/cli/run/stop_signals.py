"""Signal handlers: the first signal stops the process gracefully, a second one by force."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Self

_TOGETHER: Final = 1.0
"""The seconds within which two SIGTERM signals count as one."""

logger = logging.getLogger(__name__)


class StopSignals:
    """Calls an action on the first stop signal, and sets `forced` on a later Ctrl-C or SIGTERM. At first the action cancels the
    current task, which is the start; `on_stop` replaces it. A SIGTERM within a second of the first does not force the stop: a
    supervisor that signals a process and its group sends SIGTERM twice."""

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

    async def in_order(self, stop: Coroutine[Any, Any, None], *, seconds: float | None = None) -> None:
        """Wait until `stop` ends, but for at most so many seconds and not after a second signal: then it is cancelled."""
        stopping, forced = asyncio.create_task(stop), asyncio.create_task(self.forced.wait())
        await asyncio.wait({stopping, forced}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        forced.cancel()
        if not stopping.done():
            stopping.cancel()
            await asyncio.wait({stopping}, timeout=1)
            logger.error("the graceful stop was cancelled: %s", "a second signal" if self.forced.is_set() else "it took too long")
        elif (error := stopping.exception()) is not None:
            logger.error("the graceful stop failed", exc_info=error)

    def __enter__(self) -> Self:
        for number in self._signals:
            self._loop.add_signal_handler(number, self._handle, number)
        self._loop.add_signal_handler(signal.SIGUSR1, _warn_of_no_restart)  # by default it would kill
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number in self._signals:
            self._loop.remove_signal_handler(number)
            if self.requested:  # everything important is done: a further signal ends the process without a traceback
                signal.signal(number, lambda *_: os._exit(1 if self.forced.is_set() else 0))
        self._loop.remove_signal_handler(signal.SIGUSR1)

    def _handle(self, number: int) -> None:
        if not self.requested:
            self.requested = True
            self._since = self._loop.time()
            self._action()
        elif number == signal.SIGINT or (number == signal.SIGTERM and self._loop.time() - self._since > _TOGETHER):
            self.forced.set()


def _warn_of_no_restart() -> None:
    logger.warning("SIGUSR1 restarts the processes of a supervisor; nothing was done")
