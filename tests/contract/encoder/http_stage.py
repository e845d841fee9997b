"""An external encoder over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from domain.channel.encoding import EncoderPlan, PointPlan
from domain.channel.streaming_options import EncoderOptions
from tests.workers.encoders.foreign import KEY, Foreign
from workers.adapters.encoders.ffmpeg import no_headers
from workers.adapters.encoders.http import HttpEncoder
from workers.adapters.outbound_http import GuardedClient
from workers.ports.encoders import Encoder


def http_plan(foreign: Foreign, *, key: str = KEY, **specific: Any) -> EncoderPlan:
    points = [PointPlan(0, index, f"https://origin.example/live/{index}?key=point-key") for index in (0, 1)]
    return EncoderPlan(0, "enc-1", "http", {"url": foreign.url, "apiKey": key, **specific}, points, EncoderOptions())


class OverHttp:
    def __init__(self, foreign: Foreign, client: GuardedClient) -> None:
        self._foreign = foreign
        self.bound = 2.5
        self.encoder: Encoder = HttpEncoder(client, lambda: datetime.now(UTC), no_headers, lease=2.0, poll=0.1)
        self.plan = http_plan(foreign)
        self.bad = EncoderPlan(0, "enc-1", "http", {"apiKey": KEY}, self.plan.points, EncoderOptions())

    def arrived(self, point: int) -> list[int]:
        return self._foreign.arrived.setdefault(point, [])

    def broken(self, point: int) -> None:
        self._foreign.broken.add(point)

    def mended(self, point: int) -> None:
        self._foreign.broken.discard(point)

    async def source_ends(self) -> None:
        for session in self._foreign.sessions.values():
            session.state, session.reason = "failed", f"The camera is gone, {KEY}."
