"""A session that pushes a live publication. It is retried, later each time, for as long as it is wanted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from projections.kernel.background_task import TRANSIENT, start_task
from workers.ports.pushes import Push, Pusher, PushFailed, PushRecord
from workers.ports.targets import TargetFailed
from workers.session.kinds import SessionEnd

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PushPatience:
    """Times in seconds. `first` and `longest` are the pauses between two attempts, `stable` the duration of a push after which the
    next pause is the first again. `tries` is the number of times that a target may refuse a stream that it never had until the push
    is given up."""

    first: float = 1.0
    longest: float = 30.0
    stable: float = 30.0
    tries: int = 10

    def after(self, failures: int) -> float:
        return min(self.first * 2.0 ** min(failures - 1, 16), self.longest)


PATIENCE: Final = PushPatience()
MakePush = Callable[[Callable[[], None]], Awaitable[Push]]
"""Opens the target and the source; its argument is called when the first bytes were sent."""
Show = Callable[[], Coroutine[Any, Any, None]]
"""Makes the target show its stream, and records this in the log."""


class PushSession:
    """A running push: implements `RunningSession`. `arrived` is True if the target had the stream before, so it is not given up."""

    def __init__(
        self, name: str, pusher: Pusher, *, make: MakePush, show: Show, arrived: bool, patience: PushPatience = PATIENCE
    ) -> None:
        self._name = name
        self._pusher = pusher
        self._make = make
        self._show = show
        self._arrived = arrived
        self._patience = patience
        self._record = PushRecord()
        self._end: asyncio.Future[SessionEnd] = asyncio.get_running_loop().create_future()
        self._showing: asyncio.Task[None] | None = None
        self._task = start_task(self._run(), what=f"push of {name}")

    async def ended(self) -> SessionEnd:
        return await asyncio.shield(self._end)

    async def stop(self, *, final: bool) -> None:
        tasks = [task for task in (self._task, self._showing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._record.lost("")

    def statistics(self) -> Mapping[str, Any]:
        return self._record.statistics()

    async def _run(self) -> None:
        failures = refusals = 0
        while True:
            begun = time.monotonic()
            fault = await self._try()
            self._record.lost(str(fault))
            failures = 1 if time.monotonic() - begun > self._patience.stable else failures + 1
            refusals += fault.fault == "target"
            if not self._arrived and (fault.hopeless or refusals >= self._patience.tries):
                self._finish(SessionEnd(str(fault), hopeless=True))
                return
            seconds = self._patience.after(failures)
            _log.warning("the push of %s: %s; trying again in %.0f s", self._name, fault, seconds)
            await asyncio.sleep(seconds)

    async def _try(self) -> PushFailed:
        """Push once, and return why the push ended."""
        try:
            push = await self._make(self._on_arrival)
            await self._pusher.push(push, self._record)
        except PushFailed as fault:
            return fault
        except TargetFailed as fault:
            return PushFailed("target", str(fault), hopeless=fault.kind != "retry")
        except TRANSIENT:
            return PushFailed("worker", "The database, or the target, does not answer.")
        except Exception as fault:
            _log.exception("the push of %s", self._name)
            return PushFailed("target", type(fault).__name__)
        return PushFailed("source", "The stream of the Event has ended.")

    def _on_arrival(self) -> None:
        """Handle the first bytes that the target has accepted."""
        if self._showing is None:
            self._arrived = True
            self._showing = start_task(self._show(), what=f"showing of {self._name}")

    def _finish(self, end: SessionEnd) -> None:
        if not self._end.done():
            self._end.set_result(end)
