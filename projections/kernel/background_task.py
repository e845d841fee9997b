"""Background tasks. Every task of the product is started here, so that none can end silently.

Work that repeats from start to stop continues after any fault. A fault is logged, and counted for the metric
`medialedger_task_faults_total`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, ClassVar, Final, TypeVar

import psycopg

from domain.kernel.errors import Unavailable
from projections.kernel.connection_errors import of_lost_connection

TRANSIENT: Final = (Unavailable, psycopg.OperationalError, TimeoutError)
"""Temporary faults: a database or a broker that does not answer."""

REMINDER: Final = 30.0
"""The number of seconds after which a persistent fault is logged again."""

FAULTS: Final[Counter[str]] = Counter()
"""The number of faults of this process's tasks, by the name of the work."""

_END: Final = (SystemExit, KeyboardInterrupt, GeneratorExit)

_log = logging.getLogger(__name__)
T = TypeVar("T")


class RepeatedMessage:
    """A filter for a message that may recur: it passes once, again when it changes, and every `reminder` seconds as long as it
    lasts."""

    def __init__(self, reminder: float = REMINDER) -> None:
        self._reminder = reminder
        self._logged: str | None = None
        self._last = 0.0

    def due(self, text: str) -> bool:
        """Return True if the message is to be logged now; it then counts as logged."""
        if text == self._logged and time.monotonic() - self._last < self._reminder:
            return False
        self._logged, self._last = text, time.monotonic()
        return True

    def over(self) -> bool:
        """End the message, and return True if it was ever logged."""
        logged, self._logged = self._logged, None
        return logged is not None


class OperatorNeeded(Unavailable):
    """Raised when work cannot continue until an operator acts. The message says what to do."""


def start_task(work: Coroutine[Any, Any, T], *, what: str) -> asyncio.Task[T]:
    """Start a task whose failure is logged and counted at once, even if no caller ever asks for its result.

    Keep a reference to the task: the event loop does not. `what` names the kind of work, not this piece of it.
    """
    task = asyncio.create_task(work, name=what)
    task.add_done_callback(_report_end)
    return task


def start_forever(
    turn: Callable[[], Awaitable[object]],
    *,
    what: str,
    until: Callable[[], bool] = lambda: False,
    pause: float = 0.5,
    by_name: bool = False,
) -> asyncio.Task[None]:
    """Start a task that runs `run_forever`."""
    return start_task(run_forever(turn, what=what, until=until, pause=pause, by_name=by_name), what=what)


def is_cancelled() -> bool:
    """Return True if the current task is to end. A `CancelledError` alone may also come from a future that something else has
    cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def run_forever(
    turn: Callable[[], Awaitable[object]],
    *,
    what: str,
    until: Callable[[], bool] = lambda: False,
    pause: float = 0.5,
    by_name: bool = False,
    reminder: float = REMINDER,
) -> None:
    """Call `turn` repeatedly until `until` returns True. No fault ends the loop.

    A fault that occurs several times in a row is logged once, and again every `reminder` seconds as long as it lasts; its end is
    logged too. A lost connection to the database is logged by the breaker of the process (`availability.py`), not by each of its
    tasks.

    The task ends when it is cancelled, even if something that `turn` calls catches the cancellation; otherwise a stop that waits
    for the task would wait forever.

    `what` names the work in the log. `pause` is the number of seconds between a fault and the next try. With `by_name` only the
    type of a fault is logged, because its message may contain a secret.
    """
    message = RepeatedMessage(reminder)
    while not until():
        if is_cancelled():
            raise asyncio.CancelledError
        try:
            await turn()
        except BaseException as fault:
            if isinstance(fault, _END) or (isinstance(fault, asyncio.CancelledError) and is_cancelled()):
                raise
            FAULTS[what] += 1
            description = type(fault).__name__ if by_name else f"{type(fault).__name__}: {fault}"
            quiet = of_lost_connection(fault)
            if not quiet and message.due(description):
                _report(fault, what, description=description, by_name=by_name)
            await asyncio.sleep(pause)
        else:
            if message.over():
                _log.info("%s: works again", what)


def _report_end(task: asyncio.Task[Any]) -> None:
    fault = None if task.cancelled() else task.exception()
    if fault is not None:
        FAULTS[task.get_name()] += 1
        _log.error("%s: a task has ended by a fault", task.get_name(), exc_info=fault)


def _report(fault: BaseException, what: str, *, description: str, by_name: bool) -> None:
    if isinstance(fault, OperatorNeeded):
        _log.error("%s: stopped: %s", what, fault)
    elif isinstance(fault, TRANSIENT) or by_name:
        _log.warning("%s: %s; trying again until it works", what, description)
    else:
        _log.error("%s: failed; trying again", what, exc_info=fault)


class BackgroundTask:
    """Base class of an object with a task that repeats `_turn` and is cancelled at the stop. `WHAT` names the work in the log."""

    WHAT: ClassVar[str]
    PAUSE: ClassVar[float] = 0.5
    """The number of seconds between a fault and the next turn."""

    _task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = start_forever(self._turn, what=self.WHAT, pause=self.PAUSE)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _turn(self) -> None:
        raise NotImplementedError(type(self).__name__)
