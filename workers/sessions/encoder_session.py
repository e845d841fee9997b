"""One session of the encoders of a channel. One that ends while others go on is started again by itself, under the same number; the
session ends when none is left."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from domain.configuration.encoding import EncoderPlan
from domain.kernel.clock import iso
from domain.kernel.errors import DomainError
from domain.media_event.values import AudioInput
from projections.kernel.background_task import TRANSIENT, start_forever, start_task
from projections.sessions.store import Drawn
from workers.playout.programme import Programme
from workers.ports import Encoder, EncoderFailed, JudgedStatistics, RunningEncoder
from workers.sessions.kinds import Ended, StartFailed
from workers.sessions.session import RETRIES

AllFailing = Callable[[str], Awaitable[bool]]
"""Whether all publishing points of a channel fail, as far as it is known."""
Tell = Callable[[Sequence[AudioInput]], Awaitable[None]]
Warn = Callable[[str], Awaitable[None]]
"""Writes a sentence to the log of the Event."""

NO_POINT: Final = "all publishing points fail"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds. `look` is between two looks at points and audio inputs, `failing` how long all points must fail before the
    encoders are started again; after each time twice as long, up to `longest`."""

    look: float = 1.0
    failing: float = 15.0
    longest: float = 60.0

    def after(self, failures: int) -> float:
        return min(self.failing * 2.0 ** min(failures, 8), self.longest)


PATIENCE: Final = Patience()


@dataclass(eq=False)
class _Kept:
    """An encoder of the session, and its present run."""

    plan: EncoderPlan
    encoder: Encoder
    programme: Programme | None
    running: RunningEncoder | None = None
    failures: int = 0
    error: str = ""
    over: bool = False
    fault: str = ""
    """The last one that the log was told of."""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    """The first start, and what keeps it running."""

    @property
    def starting(self) -> bool:
        """For the first time."""
        return not (self.tasks and self.tasks[0].done())


class EncoderSession:
    """The port `RunningSession`."""

    def __init__(
        self,
        kept: Sequence[_Kept],
        *,
        channel: str,
        drawn: Drawn,
        may_send: Callable[[], bool],
        warn: Warn,
        patience: Patience,
    ) -> None:
        self._kept = kept
        self._channel = channel
        self._number = drawn.number
        self._look_every = patience.look
        self._failing = patience.after(drawn.failures)
        self._may_send = may_send
        self._warn = warn
        self._end: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._looking: list[asyncio.Task[None]] = []
        self._told: Sequence[AudioInput] | None = None
        self._failed_since: float | None = None

    @classmethod
    async def started(
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
        """When one encoder runs: the others are still being started then. `points_fail`: None where the session is not to be
        started again when they do. Raises `StartFailed` when no encoder could be started."""
        kept = [_Kept(*each) for each in encoders]
        session = cls(kept, channel=channel, drawn=drawn, may_send=may_send, warn=warn, patience=patience)
        try:
            await session._start_all()
        except BaseException:
            await session.stop(final=False)
            raise
        for each in kept:
            each.tasks.append(start_task(session._kept_running(each), what=f"encoder of {channel}"))
        session._looking = [start_forever(lambda: session._look(tell, points_fail), what=f"look at the encoders of {channel}")]
        return session

    async def _start_all(self) -> None:
        for each in self._kept:
            each.tasks.append(start_task(self._begin(each), what=f"start of an encoder of {self._channel}"))
        left = {each.tasks[0] for each in self._kept}
        while not self._any_runs:
            if not left:
                raise StartFailed("; ".join(dict.fromkeys(each.error for each in self._kept)))
            _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)

    @property
    def _any_runs(self) -> bool:
        return any(each.running is not None for each in self._kept)

    async def ended(self) -> Ended:
        return await asyncio.shield(self._end)

    async def stop(self, *, final: bool) -> None:
        """Each encoder by itself: one whose start takes long to end keeps no other one on the air."""
        ends = (self._end_one(each, final=final) for each in self._kept)
        stopped = await asyncio.gather(_cancelled(self._looking), *ends, return_exceptions=True)
        for fault in stopped:
            if isinstance(fault, BaseException):
                raise fault

    def statistics(self) -> Mapping[str, Any]:
        return {"encoders": [self._statistics(each) for each in self._kept]}

    def _statistics(self, kept: _Kept) -> Mapping[str, Any]:
        plan = {"encoder": kept.plan.index, "name": kept.plan.name, "type": kept.plan.type, "running": kept.running is not None}
        if kept.running is None:
            return {**plan, "last_error": kept.error}
        found = kept.running.statistics()
        return {**plan, **asdict(found), "since": iso(found.since), "points": [asdict(point) for point in found.points]}

    # --- runs

    async def _begin(self, kept: _Kept) -> None:
        try:
            kept.running = await kept.encoder.start(
                kept.plan, channel=self._channel, session=self._number, may_send=self._may_send, programme=kept.programme
            )
        except EncoderFailed as failure:
            kept.error = str(failure)
        except Exception as fault:
            _log.exception("the encoder %d of %s was not started", kept.plan.index, self._channel)
            kept.error = type(fault).__name__

    async def _kept_running(self, kept: _Kept) -> None:
        try:
            await self._keep(kept)
        except Exception as fault:
            _log.exception("the encoder %d of %s", kept.plan.index, self._channel)
            self._finish(Ended(type(fault).__name__))

    async def _keep(self, kept: _Kept) -> None:
        await kept.tasks[0]
        while True:
            if kept.running is not None:
                begun = time.monotonic()
                kept.error = await kept.running.ended()
                kept.over = kept.running.over
                await self._stop(kept, final=kept.over)
                kept.failures = 0 if time.monotonic() - begun > RETRIES.stable else kept.failures
                if not self._any_runs:
                    self._finish(Ended(kept.error, over=all(each.over for each in self._kept)))
                if kept.over or not self._any_runs:
                    return
            kept.failures += 1
            seconds = RETRIES.after(kept.failures)
            _log.warning("the encoder %d of %s: %s; starting again in %.0f s", kept.plan.index, self._channel, kept.error, seconds)
            await asyncio.sleep(seconds)
            await self._begin(kept)

    async def _end_one(self, kept: _Kept, *, final: bool) -> None:
        await _cancelled(kept.tasks)
        await self._stop(kept, final=final)

    async def _stop(self, kept: _Kept, *, final: bool) -> None:
        if kept.running is not None:
            await kept.running.stop(final=final)
            kept.running = None

    def _finish(self, end: Ended) -> None:
        if not self._end.done():
            self._end.set_result(end)

    # --- what is seen of them

    async def _look(self, tell: Tell, points_fail: AllFailing | None) -> None:
        with suppress(DomainError, *TRANSIENT):
            await self._tell_audio_inputs(tell)
            for each in self._kept:
                await self._tell_fault(each)
        if points_fail is not None and await self._all_fail(points_fail):
            now = time.monotonic()
            self._failed_since = self._failed_since or now
            if now - self._failed_since >= self._failing:
                self._finish(Ended(NO_POINT, forgiven=True))
        else:
            self._failed_since = None
        await asyncio.sleep(self._look_every)

    async def _tell_fault(self, kept: _Kept) -> None:
        """Write a fault of an encoder to the log of the Event, once."""
        found = kept.running.statistics() if kept.running is not None else None
        fault = found.fault if isinstance(found, JudgedStatistics) else ""
        if fault and fault != kept.fault:
            _log.warning("the encoder %d of %s: %s", kept.plan.index, self._channel, fault)
            await self._warn(f"the encoder {kept.plan.index + 1} ({kept.plan.name or 'without a name'}): {fault}")
        kept.fault = fault

    async def _tell_audio_inputs(self, tell: Tell) -> None:
        """Of all encoders, each input once; not before all were started once, and those that run know theirs."""
        if any(each.starting for each in self._kept):
            return
        known = [each.running.audio_inputs() for each in self._kept if each.running is not None]
        if not known or any(inputs is None for inputs in known):
            return
        found = list({one.id: one for inputs in known for one in inputs or ()}.values())
        if found != self._told:
            await tell(found)
            self._told = found

    async def _all_fail(self, points_fail: AllFailing) -> bool:
        """While it may not send there is nothing to judge."""
        if not self._may_send():
            return False
        points = [point for each in self._kept if each.running is not None for point in each.running.statistics().points]
        if points and not any(point.connected for point in points):
            return True
        try:
            return await points_fail(self._channel)
        except TRANSIENT:
            return False


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    """They have ended when this returns."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
