"""A session of the encoders of a channel. An encoder that ends while others run is restarted automatically, under the same number;
the session ends when no encoder runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from domain.channel.encoding import EncoderPlan
from domain.event.values import AudioInput
from domain.kernel.clock import iso
from domain.kernel.errors import DomainError
from projections.kernel.background_task import TRANSIENT, start_forever, start_task
from projections.session.store import Drawn
from workers.ports.encoders import Encoder, EncoderFailed, JudgedStatistics, RunningEncoder
from workers.ports.playout import Programme
from workers.session.kinds import SessionEnd, StartFailed
from workers.session.session import RETRIES

AllFailing = Callable[[str], Awaitable[bool]]
"""Returns True if all publishing points of a channel are known to fail."""
Tell = Callable[[Sequence[AudioInput]], Awaitable[None]]
Warn = Callable[[str], Awaitable[None]]
"""Writes a sentence to the log of the Event."""

NO_POINT: Final = "all publishing points fail"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """Times in seconds. `look` is the pause between two checks of points and audio inputs, `failing` the time for which all points
    must fail before the encoders are restarted; it doubles each time, up to `longest`."""

    look: float = 1.0
    failing: float = 15.0
    longest: float = 60.0

    def after(self, failures: int) -> float:
        return min(self.failing * 2.0 ** min(failures, 8), self.longest)


PATIENCE: Final = Patience()


@dataclass(eq=False)
class _EncoderRun:
    """An encoder of the session, and its current run."""

    plan: EncoderPlan
    encoder: Encoder
    programme: Programme | None
    running: RunningEncoder | None = None
    failures: int = 0
    error: str = ""
    over: bool = False
    fault: str = ""
    """The last fault that was written to the log."""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    """The first start, and the task that keeps the encoder running."""

    @property
    def starting(self) -> bool:
        """True while the encoder is being started for the first time."""
        return not (self.tasks and self.tasks[0].done())


class EncoderSession:
    """A running session of encoders: it implements `RunningSession`."""

    def __init__(
        self,
        runs: Sequence[_EncoderRun],
        *,
        channel: str,
        drawn: Drawn,
        may_send: Callable[[], bool],
        warn: Warn,
        patience: Patience,
    ) -> None:
        self._runs = runs
        self._channel = channel
        self._number = drawn.number
        self._look_every = patience.look
        self._failing = patience.after(drawn.failures)
        self._may_send = may_send
        self._warn = warn
        self._end: asyncio.Future[SessionEnd] = asyncio.get_running_loop().create_future()
        self._looking: list[asyncio.Task[None]] = []
        self._reported: Sequence[AudioInput] | None = None
        self._failed_since: float | None = None

    @classmethod
    async def create(
        cls,
        encoders: Sequence[tuple[EncoderPlan, Encoder, Programme | None]],
        *,
        channel: str,
        drawn: Drawn,
        may_send: Callable[[], bool],
        tell: Tell,
        warn: Warn,
        points_fail: AllFailing | None,
        patience: Patience = PATIENCE,
    ) -> EncoderSession:
        """Start the encoders, and return the session when one of them runs: the others are still being started then. `points_fail`
        is None if the session is not to be restarted when all points fail. Raise `StartFailed` if no encoder could be started."""
        runs = [_EncoderRun(*each) for each in encoders]
        session = cls(runs, channel=channel, drawn=drawn, may_send=may_send, warn=warn, patience=patience)
        try:
            await session._start_all()
        except BaseException:
            await session.stop(final=False)
            raise
        for run in runs:
            run.tasks.append(start_task(session._watch(run), what=f"encoder of {channel}"))
        session._looking = [start_forever(lambda: session._look(tell, points_fail), what=f"look at the encoders of {channel}")]
        return session

    async def _start_all(self) -> None:
        for run in self._runs:
            run.tasks.append(start_task(self._begin(run), what=f"start of an encoder of {self._channel}"))
        starts = {run.tasks[0] for run in self._runs}
        while not self._any_runs:
            if not starts:
                raise StartFailed("; ".join(dict.fromkeys(run.error for run in self._runs)))
            _, starts = await asyncio.wait(starts, return_when=asyncio.FIRST_COMPLETED)

    @property
    def _any_runs(self) -> bool:
        return any(run.running is not None for run in self._runs)

    async def ended(self) -> SessionEnd:
        return await asyncio.shield(self._end)

    async def stop(self, *, final: bool) -> None:
        """Stop the encoders concurrently, so that a slow start of one keeps no other on the air."""
        ends = (self._end_one(run, final=final) for run in self._runs)
        stopped = await asyncio.gather(_cancel(self._looking), *ends, return_exceptions=True)
        for fault in stopped:
            if isinstance(fault, BaseException):
                raise fault

    def statistics(self) -> Mapping[str, Any]:
        return {"encoders": [self._statistics(run) for run in self._runs]}

    def _statistics(self, run: _EncoderRun) -> Mapping[str, Any]:
        plan = {"encoder": run.plan.index, "name": run.plan.name, "type": run.plan.type, "running": run.running is not None}
        if run.running is None:
            return {**plan, "last_error": run.error}
        statistics = run.running.statistics()
        points = [asdict(point) for point in statistics.points]
        return {**plan, **asdict(statistics), "since": iso(statistics.since), "points": points}

    # --- runs

    async def _begin(self, run: _EncoderRun) -> None:
        try:
            run.running = await run.encoder.start(
                run.plan, channel=self._channel, session=self._number, may_send=self._may_send, programme=run.programme
            )
        except EncoderFailed as failure:
            run.error = str(failure)
        except Exception as fault:
            _log.exception("the encoder %d of %s was not started", run.plan.index, self._channel)
            run.error = type(fault).__name__

    async def _watch(self, run: _EncoderRun) -> None:
        try:
            await self._keep_running(run)
        except Exception as fault:
            _log.exception("the encoder %d of %s", run.plan.index, self._channel)
            self._finish(SessionEnd(type(fault).__name__))

    async def _keep_running(self, run: _EncoderRun) -> None:
        await run.tasks[0]
        while True:
            if run.running is not None:
                begun = time.monotonic()
                run.error = await run.running.ended()
                run.over = run.running.over
                await self._stop(run, final=run.over)
                run.failures = 0 if time.monotonic() - begun > RETRIES.stable else run.failures
                if not self._any_runs:
                    self._finish(SessionEnd(run.error, over=all(each.over for each in self._runs)))
                if run.over or not self._any_runs:
                    return
            run.failures += 1
            seconds = RETRIES.after(run.failures)
            _log.warning("the encoder %d of %s: %s; restarting in %.0f s", run.plan.index, self._channel, run.error, seconds)
            await asyncio.sleep(seconds)
            await self._begin(run)

    async def _end_one(self, run: _EncoderRun, *, final: bool) -> None:
        await _cancel(run.tasks)
        await self._stop(run, final=final)

    async def _stop(self, run: _EncoderRun, *, final: bool) -> None:
        if run.running is not None:
            await run.running.stop(final=final)
            run.running = None

    def _finish(self, end: SessionEnd) -> None:
        if not self._end.done():
            self._end.set_result(end)

    # --- checks of the running encoders

    async def _look(self, tell: Tell, points_fail: AllFailing | None) -> None:
        with suppress(DomainError, *TRANSIENT):
            await self._report_audio_inputs(tell)
            for run in self._runs:
                await self._report_fault(run)
        if points_fail is not None and await self._all_fail(points_fail):
            now = time.monotonic()
            self._failed_since = self._failed_since or now
            if now - self._failed_since >= self._failing:
                self._finish(SessionEnd(NO_POINT, forgiven=True))
        else:
            self._failed_since = None
        await asyncio.sleep(self._look_every)

    async def _report_fault(self, run: _EncoderRun) -> None:
        """Write a fault of an encoder to the log of the Event, once."""
        statistics = run.running.statistics() if run.running is not None else None
        fault = statistics.fault if isinstance(statistics, JudgedStatistics) else ""
        if fault and fault != run.fault:
            _log.warning("the encoder %d of %s: %s", run.plan.index, self._channel, fault)
            await self._warn(f"the encoder {run.plan.index + 1} ({run.plan.name or 'without a name'}): {fault}")
        run.fault = fault

    async def _report_audio_inputs(self, tell: Tell) -> None:
        """Report the audio inputs of all encoders, each input once. Nothing is reported before all encoders were started once and
        the running ones know their inputs."""
        if any(run.starting for run in self._runs):
            return
        lists = [run.running.audio_inputs() for run in self._runs if run.running is not None]
        if not lists or any(inputs is None for inputs in lists):
            return
        audio_inputs = list({audio_input.id: audio_input for inputs in lists for audio_input in inputs or ()}.values())
        if audio_inputs != self._reported:
            await tell(audio_inputs)
            self._reported = audio_inputs

    async def _all_fail(self, points_fail: AllFailing) -> bool:
        """Return True if all points fail. While the session may not send, nothing can be judged."""
        if not self._may_send():
            return False
        points = [point for run in self._runs if run.running is not None for point in run.running.statistics().points]
        if points and not any(point.connected for point in points):
            return True
        try:
            return await points_fail(self._channel)
        except TRANSIENT:
            return False


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel the tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
