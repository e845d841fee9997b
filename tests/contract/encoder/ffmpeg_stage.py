"""ffmpeg, which sends to two points of a real server."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from domain.channel.encoding import EncoderPlan, PointPlan
from domain.channel.streaming_options import EncoderOptions, encoder_options
from tests.support.receiver import Receiver
from workers.adapters.encoders.ffmpeg import FfmpegEncoder, no_headers
from workers.adapters.encoders.sources import EncoderSources
from workers.adapters.ffmpeg import find
from workers.adapters.outbound_http import GuardedClient
from workers.ports.encoders import Encoder

SEGMENT = 0.5
SMALL: dict[str, Any] = {"renditions": [{"height": 96, "width": 128, "bitrate": 100_000, "fps": 25}], "keyFrameInterval": SEGMENT}
LOCAL = [ip_network("127.0.0.0/8")]
POINTS = ("one", "two")


def ffmpeg_encoder(client: GuardedClient, *, media_root: Path | None = None, **given: Any) -> FfmpegEncoder:
    given = {"headers": no_headers, **given}
    return FfmpegEncoder(find("ffmpeg"), client, EncoderSources(media_root, client=client), lambda: datetime.now(UTC), **given)


def ffmpeg_plan(*urls: str, options: str | EncoderOptions = "", **specific: Any) -> EncoderPlan:
    points = [PointPlan(0, place, url) for place, url in enumerate(urls)]
    taken = encoder_options(options) if isinstance(options, str) else options
    return EncoderPlan(0, "enc-1", "ffmpeg", {**SMALL, **specific}, points, taken)


class OverFfmpeg:
    def __init__(self, receiver: Receiver, client: GuardedClient) -> None:
        self._receiver = receiver
        self.bound = 0.5
        self.encoder: Encoder = ffmpeg_encoder(client)
        self.plan = ffmpeg_plan(*map(receiver.point, POINTS))
        self.bad = ffmpeg_plan(receiver.point("one"), source={"type": "satellite"})

    def arrived(self, point: int) -> list[int]:
        return [piece.session for piece in self._receiver.media(POINTS[point])]

    def broken(self, point: int) -> None:
        self._receiver.how[POINTS[point]] = "503"

    def mended(self, point: int) -> None:
        del self._receiver.how[POINTS[point]]

    async def source_ends(self) -> None:
        """Kill ffmpeg, so that it looks as if it had died."""
        for pid in children("ffmpeg"):
            os.kill(pid, signal.SIGKILL)


def children(program: str, *, of: int | None = None) -> list[int]:
    """The processes of this program that this process has started."""
    pids = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat, line = (folder / "stat").read_text(), (folder / "cmdline").read_bytes()
            except OSError:
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            if parent == (of or os.getpid()) and program.encode() in line.split(b"\0")[0]:
                pids.append(int(folder.name))
    return pids
