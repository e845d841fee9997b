"""The encoders of the contract, each with a source and two publishing points that the test can break."""

from __future__ import annotations

from typing import Protocol

from domain.channel.encoding import EncoderPlan, PointPlan
from domain.channel.streaming_options import EncoderOptions
from tests.workers.encoders.memory import MemoryEncoder, MemoryPoint
from workers.ports.encoders import Encoder

CHANNEL = "4d7ac2ae-55f9-4c06-9a8b-3f0a5ea1b0a1"


class Stage(Protocol):
    """An encoder. `arrived` returns the sessions of the pieces of media that a point accepted; `broken` makes it refuse all,
    `mended` accept them again."""

    encoder: Encoder
    plan: EncoderPlan
    bad: EncoderPlan
    """A plan of an encoder that cannot be started."""
    bound: float
    """Seconds in which something may still arrive once it may not send."""

    def arrived(self, point: int) -> list[int]: ...

    def broken(self, point: int) -> None: ...

    def mended(self, point: int) -> None: ...

    async def source_ends(self) -> None:
        """End the source, after which the encoder ends soon."""
        ...


class InMemory:
    def __init__(self) -> None:
        self._encoder = MemoryEncoder()
        self.bound = 0.0
        self.encoder: Encoder = self._encoder
        self.plan = EncoderPlan(0, "enc-1", "ffmpeg", {}, [_point(0), _point(1)], EncoderOptions())
        self.bad = EncoderPlan(0, "enc-1", "ffmpeg", {"source": {"type": "satellite"}}, [_point(0)], EncoderOptions())

    def arrived(self, point: int) -> list[int]:
        return self._point(point).pieces

    def broken(self, point: int) -> None:
        self._point(point).refusal = "It is down."

    def mended(self, point: int) -> None:
        self._point(point).refusal = ""

    async def source_ends(self) -> None:
        for run in self._encoder.running:
            run.end("The source has ended.")

    def _point(self, index: int) -> MemoryPoint:
        return self._encoder.point(self.plan.points[index])


def _point(index: int) -> PointPlan:
    return PointPlan(0, index, f"memory://point-{index}/live")
