"""A session under one order: started, watched, restarted after a fault, and stopped."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from typing import Any, Final, TypeVar

from projections.kernel.background_task import TRANSIENT, RepeatedMessage, start_task
from projections.kernel.connection_errors import of_lost_connection
from projections.session.store import Drawn, Hold, SessionState, SessionStore, Wanted
from workers.kernel.metrics import SessionMetrics
from workers.session.kinds import CannotRun, RunningSession, SessionEnd, SessionKind, StartFailed
from workers.session.reports import Reports

_PAUSE: Final = 0.5

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SessionRetries:
    """The limits of retries. `first` and `longest` are the seconds between a failure and the next start, `most` the failures in a
    row after which a session is given up, `stable` the seconds of running after which earlier failures no longer count. `waiting`
    is the longest pause of a session that waits for something else."""

    first: float = 1.0
    longest: float = 60.0
    most: int = 10
    stable: float = 60.0
    waiting: float = 5.0

    def after(self, failures: int) -> float:
        return min(self.first * 2.0 ** min(failures - 1, 16), self.longest)


RETRIES: Final = SessionRetries()


class Stop(Enum):
    """The reason for which a session is stopped."""

    ORDERED = auto()
    REPLACED = auto()
    """There is a further order for the same key."""
    HANDED_OVER = auto()
    LOST = auto()
    """Another worker has taken over the session."""


class Session:
    """A session under one order. `may_send` is that of the worker; a session that was lost does not send either."""

    def __init__(
        self,
        wanted: Wanted,
        kind: SessionKind,
        *,
        store: SessionStore,
        hold: Hold,
        host: str,
        reports: Reports,
        may_send: Callable[[], bool],
        metrics: SessionMetrics,
        retries: SessionRetries,
        ended: Callable[[], None],
    ) -> None:
        self.wanted = wanted
        self.hold = hold
        self.number = 0
        self.given_up = False
        self._kind = kind
        self._store = store
        self._host = host
        self._reports = reports
        self._worker_may_send = may_send
        self._metrics = metrics
        self._retries = retries
        self._ended = ended
        self._wait_log = RepeatedMessage()
        """The reasons that were logged while the session waits, each once."""
        self._waits = 0
        """The number of waits in a row."""
        self._running: RunningSession | None = None
        self._stop: Stop | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = start_task(self._run(), what=f"session of {self.wanted.key}")
        self._task.add_done_callback(lambda _: self._ended())

    @property
    def done(self) -> bool:
        """True if nothing of the session runs any more."""
        return self._task is None or self._task.done()

    @property
    def stopping(self) -> bool:
        return self._stop is not None

    def stop(self, why: Stop) -> None:
        """Ask the session to stop. It is `done` when everything that ran has ended. The first reason counts, unless a later one is
        a loss."""
        if self._stop is None or why is Stop.LOST:
            self._stop = why
            self._stopping.set()

    async def finish(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task})

    def statistics(self) -> Mapping[str, Any] | None:
        try:
            return None if self._running is None else self._running.statistics()
        except Exception as fault:
            if self._wait_log.due(repr(fault)):
                _log.exception("the session of %s has no statistics", self.wanted.key)
            return None

    def _may_send(self) -> bool:
        return self._stop is not Stop.LOST and self._worker_may_send()

    async def _run(self) -> None:
        failures: int | None = None
        while self._stop is None:
            drawn = await self._draw(failures)
            if drawn is None:
                return
            failures = drawn.failures if failures is None else failures
            begun = time.monotonic()
            end = await self._run_once(replace(drawn, failures=failures))
            if end is None:
                return
            if isinstance(end, CannotRun) or end.over or end.hopeless:
                self._give_up(end, failures + 1)
                return
            failures = 1 if time.monotonic() - begun > self._retries.stable else failures + (not end.waits)
            if failures >= self._retries.most and not (end.forgiven or end.waits):
                self._give_up(end, failures)
                return
            await self._wait(end, failures)

    async def _draw(self, failures: int | None) -> Drawn | None:
        """Draw a number; repeat until the database answers or the session is to stop. `failures` is the number of failures here,
        which may not be stored yet."""
        while self._stop is None:
            try:
                drawn = await self._store.draw(self.wanted, self.hold, host=self._host, waited=self._waits > 0, failures=failures)
            except Exception as fault:
                if not of_lost_connection(fault) and self._wait_log.due(str(fault)):
                    _log.warning("the session of %s waits for its number: %s", self.wanted.key, fault)
                await self._pause(min(self._retries.first, _PAUSE))
                continue
            if drawn is not None:
                self.number = drawn.number
            return drawn
        return None

    async def _run_once(self, drawn: Drawn) -> SessionEnd | CannotRun | None:
        """Run the session once, and return why it ended; None if it was stopped."""
        number = drawn.number
        started = await self._run_unless_stopped(self._try_start(drawn), what=f"start of a session of {self.wanted.key}")
        if isinstance(started, SessionEnd | CannotRun):
            return started
        end = None
        if started is not None:
            self._running = started
            if self._stop is None:
                self._reports.add(partial(self._store.settle, self.wanted.key, number, state=SessionState.RUNNING))
                self._reports.add(partial(self._kind.report_start, self.wanted, number))
            end = await self._run_unless_stopped(_end_of(started), what=f"end of a session of {self.wanted.key}")
        await self._silence(final=self._stop is Stop.ORDERED or (end is not None and (end.over or end.hopeless)))
        if end is None or self._stop is not None:
            self._settle_stop(number)
            return None
        self._reports.add(partial(self._kind.report_stop, self.wanted.owner, number, reason=end.reason))
        return end

    async def _try_start(self, drawn: Drawn) -> RunningSession | SessionEnd | CannotRun:
        number, kind = drawn.number, self._store.kind
        try:
            running = await self._kind.start(self.wanted, drawn, may_send=self._may_send)
        except CannotRun as nothing:
            return nothing
        except StartFailed as failure:
            if not failure.waits:
                self._metrics.start_failed(kind)
            return SessionEnd(str(failure), waits=failure.waits)
        except TRANSIENT:
            return SessionEnd("the database does not answer", forgiven=True, waits=True)
        except Exception as fault:
            _log.exception("the session %d of %s was not started", number, self.wanted.key)
            self._metrics.start_failed(kind)
            return SessionEnd(f"{type(fault).__name__}")
        self._metrics.started(kind)
        self._end_wait()
        return running

    async def _run_unless_stopped(self, work: Coroutine[Any, Any, T], *, what: str) -> T | None:
        """Return the result of the work; None if the session is to stop before that. The work is then cancelled, and has ended when
        this returns."""
        task = start_task(work, what=what)
        stop = start_task(self._stopping.wait(), what=f"stop of a session of {self.wanted.key}")
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (task, stop):
                each.cancel()
            await asyncio.wait({task, stop})
        return None if task.cancelled() else task.result()

    async def _silence(self, *, final: bool) -> None:
        """Return only when nothing is sent any more: the next session of the key starts after this."""
        running = self._running
        while running is not None:
            try:
                await running.stop(final=final)
            except Exception:
                _log.exception("the session %d of %s does not stop; trying again", self.number, self.wanted.key)
                await asyncio.sleep(_PAUSE)
            else:
                self._running = running = None

    def _settle_stop(self, number: int) -> None:
        if self._stop is Stop.LOST:
            return
        handed_over = self._stop is Stop.HANDED_OVER
        state = SessionState.HANDED_OVER if handed_over else SessionState.STOPPED
        reason = "its worker was stopped" if handed_over else ""
        self._reports.add(partial(self._store.settle, self.wanted.key, number, state=state, reason=reason))
        self._reports.add(partial(self._kind.report_stop, self.wanted.owner, number, reason=reason))

    def _give_up(self, end: SessionEnd | CannotRun, failures: int) -> None:
        self.given_up = True
        if isinstance(end, CannotRun) or not end.over:
            self._metrics.given_up(self._store.kind)
        ran = None if isinstance(end, CannotRun) else self.number
        self._reports.add(partial(self._report_failure, self.number, ran, reason=end.reason, failures=failures))

    async def _report_failure(self, number: int, ran: int | None, *, reason: str, failures: int) -> None:
        """Report a failure. The row is written first: a worker that takes over before the owner was notified reports it again, and
        starts nothing. If a worker has already taken over and begun the next session, there is nothing to report: the order is
        being carried out."""
        key = self.wanted.key
        if await self._store.settle(key, number, state=SessionState.FAILED, reason=reason, failures=failures):
            await self._kind.report_failure(self.wanted, ran, reason=reason)

    async def _wait(self, end: SessionEnd, failures: int) -> None:
        key, number = self.wanted.key, self.number
        if end.waits:
            self._waits += 1
            seconds = self._retries.first if end.forgiven else min(self._retries.after(self._waits), self._retries.waiting)
            if self._wait_log.due(end.reason):
                _log.info("the session of %s waits: %s", key, end.reason)
        else:
            self._end_wait()
            self._metrics.restarted(self._store.kind)
            seconds = self._retries.first if end.forgiven else self._retries.after(failures)
            _log.warning("the session %d of %s ended: %s; restarting in %.0f s", number, key, end.reason, seconds)
        self._reports.add(
            partial(self._store.settle, key, number, state=SessionState.WAITING, reason=end.reason, failures=failures)
        )
        await self._pause(seconds)
        if self._stop is not None:
            self._settle_stop(self.number)

    def _end_wait(self) -> None:
        """Record that the session no longer waits."""
        self._waits = 0
        self._wait_log.over()

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


async def _end_of(running: RunningSession) -> SessionEnd:
    try:
        return await running.ended()
    except Exception as fault:
        _log.exception("a session has ended by a fault")
        return SessionEnd(type(fault).__name__)
