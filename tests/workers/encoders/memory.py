"""The encoder in memory: it sends pieces to points in memory, as often as the event loop lets it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from domain.channel.encoder_settings import encode_settings
from domain.channel.encoding import FFMPEG, EncoderPlan, PointPlan
from domain.event.values import AudioInput
from domain.kernel.errors import Malformed
from projections.kernel.background_task import start_task
from workers.ports.encoders import EncoderFailed, JudgedStatistics, PointStatistics
from workers.ports.playout import Programme

BEAT = 0.01
PIECE = 1_000
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(eq=False)
class MemoryPoint:
    """A publishing point. `refusal` is the sentence that it answers with."""

    refusal: str = ""
    pieces: list[int] = field(default_factory=list)
    """The session of each piece that arrived."""


@dataclass
class MemoryEncoder:
    """`points` are found by URL, and made when they are first sent to. `failure`: why no start succeeds; `audio`: the audio inputs
    that an encoder finds; `stuck`: the indexes of those whose starts do not end."""

    points: dict[str, MemoryPoint] = field(default_factory=dict)
    running: list[MemoryRun] = field(default_factory=list)
    failure: str = ""
    audio: Sequence[AudioInput] | None = None
    stuck: set[int] = field(default_factory=set)

    async def start(
        self,
        plan: EncoderPlan,
        *,
        channel: str,
        session: int,
        may_send: Callable[[], bool],
        programme: Programme | None = None,
    ) -> MemoryRun:
        if plan.index in self.stuck:
            await asyncio.Event().wait()
        fault = self.failure or await self.check(plan)
        if fault:
            raise EncoderFailed(fault)
        run = MemoryRun(self, plan, channel=channel, session=session, may_send=may_send)
        run.programme = programme
        self.running.append(run)
        return run

    async def check(self, plan: EncoderPlan) -> str | None:
        if plan.type == FFMPEG:
            try:
                encode_settings(plan)
            except Malformed as refusal:
                return str(refusal)
        return self.failure or next((sent.refusal for each in plan.points if (sent := self.point(each)).refusal), None)

    def point(self, plan: PointPlan) -> MemoryPoint:
        return self.points.setdefault(plan.url, MemoryPoint())


class MemoryRun:
    """A run of the encoder, until `stop` or `end`."""

    def __init__(
        self, encoder: MemoryEncoder, plan: EncoderPlan, *, channel: str, session: int, may_send: Callable[[], bool]
    ) -> None:
        self.plan = plan
        self.channel = channel
        self.session = session
        self.programme: Programme | None = None
        self._encoder = encoder
        self._may_send = may_send
        self._why: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._sent = [PointStatistics(each.encoder, each.index, each.url.partition("?")[0]) for each in plan.points]
        self._frames = 0
        self.fault = ""
        self._over = False
        self._task = start_task(self._send(), what="encoder in memory")

    @property
    def alive(self) -> bool:
        return not self._why.done()

    @property
    def over(self) -> bool:
        return self._over

    def end(self, why: str, *, over: bool = False) -> None:
        """End without a request; `over` is True if the source has ended."""
        self._over = over
        if self.alive:
            self._why.set_result(why)
        self._task.cancel()

    async def ended(self) -> str:
        return await asyncio.shield(self._why)

    async def stop(self, *, final: bool = True) -> None:
        self.end("")
        await asyncio.gather(self._task, return_exceptions=True)
        if self in self._encoder.running:
            self._encoder.running.remove(self)

    def statistics(self) -> JudgedStatistics:
        sent = sum(each.bytes for each in self._sent)
        return JudgedStatistics(BEGAN, bytes=sent, frames=self._frames, fault=self.fault, points=tuple(self._sent))

    def audio_inputs(self) -> Sequence[AudioInput] | None:
        return self._encoder.audio

    async def _send(self) -> None:
        while True:
            self._frames += 1
            for place, plan in enumerate(self.plan.points):
                self._sent[place] = self._written(self._encoder.point(plan), self._sent[place])
            await asyncio.sleep(BEAT)

    def _written(self, point: MemoryPoint, before: PointStatistics) -> PointStatistics:
        refusal = "it may not send" if not self._may_send() else point.refusal
        if not refusal:
            point.pieces.append(self.session)
        return PointStatistics(
            before.encoder,
            before.index,
            before.url,
            bytes=before.bytes + (0 if refusal else PIECE),
            connected=not refusal,
            reconnects=before.reconnects + (1 if not refusal and before.last_error else 0),
            dropped=before.dropped + (1 if refusal else 0),
            last_error=refusal,
        )
