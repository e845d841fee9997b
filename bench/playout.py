"""A playlist on the air: the lateness of frames, the drift of the stream from the clock, and the cost."""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from statistics import linear_regression

import uvloop
from aiohttp import web

from bench.ground import Ground
from bench.report import Result, Table, Target, middle
from domain.channel.encoding import EncoderPlan, PointPlan
from domain.channel.streaming_options import encoder_options
from tests.support.playout import Shelf
from tests.support.sources.numbered_frames import film
from workers.adapters.encoders.ffmpeg import FfmpegEncoder, RunningFfmpeg
from workers.adapters.encoders.sources import EncoderSources
from workers.adapters.ffmpeg import find
from workers.adapters.outbound_http import GuardedClient

_SIZE = {"height": 360, "width": 640, "bitrate": 800_000, "fps": 25}
_HOUR_MS = 3_600_000.0
_LOOK = 0.1
_BEGINNING, _OF = 5, 10


@dataclass
class _Seen:
    """The measured values. `late` is from the encoder; `arrived` holds each segment's number in its session and the arrival of
    its last byte."""

    late: list[float] = field(default_factory=list)
    arrived: list[tuple[float, float]] = field(default_factory=list)
    borders: int = 0
    repeated: int = 0
    skipped: int = 0
    cores: float = 0.0


def playout(ground: Ground) -> Result:
    """a playlist on the air: drift from the clock"""
    seconds = 30.0 if ground.effort.quick else 600.0
    with tempfile.TemporaryDirectory(prefix="medialedger-bench-") as folder:
        Path(folder).chmod(0o755)
        load = os.getloadavg()[0]
        seen = uvloop.run(_played(Path(folder), seconds=seconds))
    drift = _drift(seen.arrived)
    table = Table(
        f"A playlist of four kinds for {seconds:.0f} s, load {load:.1f} before",
        ("borders", "late p50 ms", "late max ms", "drift ms/h", "shown again", "left out", "cores"),
    )
    late = [1000 * seconds for seconds in seen.late]
    table.add(seen.borders, middle(late), max(late), drift, seen.repeated, seen.skipped, seen.cores)
    raw = {"late": seen.late, "arrived": seen.arrived, "load": load}
    return Result("playout", [table], [Target("drift of a playout", drift, 40.0, "ms/h", at_most=True)], raw=raw)


async def _played(root: Path, *, seconds: float) -> _Seen:
    seen = _Seen()
    shelf = Shelf(root)
    shelf.put(*_films(root), looped=True)
    client = GuardedClient([ip_network("127.0.0.0/8")])
    runner, url = await _receiver(seen)
    encoder = FfmpegEncoder(find("ffmpeg"), client, EncoderSources(None, client), lambda: datetime.now(UTC))
    plan = EncoderPlan(0, "", "ffmpeg", {"renditions": [_SIZE], "keyFrameInterval": 1}, [PointPlan(0, 0, url)], encoder_options(""))
    began, used = time.monotonic(), _processor_seconds()
    run = await encoder.start(plan, channel="bench", session=1, may_send=lambda: True, programme=shelf.programme())
    try:
        await _watched(run, seen, until=began + seconds)
    finally:
        await run.stop()
        await client.close()
        await runner.cleanup()
    seen.cores = (_processor_seconds() - used) / (time.monotonic() - began)
    return seen


async def _watched(run: RunningFfmpeg, seen: _Seen, *, until: float) -> None:
    before = None
    while time.monotonic() < until:
        await asyncio.sleep(_LOOK)
        playout = run.statistics().playout
        if playout is None or playout.item is None:
            continue
        seen.late.append(playout.late)
        seen.borders += before not in (None, playout.item)
        before, seen.repeated, seen.skipped = playout.item, playout.repeated, playout.skipped


async def _receiver(seen: _Seen) -> tuple[web.AppRunner, str]:
    """Run a receiver that records the arrival of video segments. Each holds a second of media."""

    async def take(request: web.Request) -> web.Response:
        async for _ in request.content.iter_any():
            pass
        name = request.path.rpartition("/")[2]
        if name.startswith("v0-") and name.endswith(".m4s"):
            seen.arrived.append((float(name.removesuffix(".m4s").rpartition("-")[2]), time.monotonic()))
        return web.Response(status=201)

    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/{path:.*}", take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/one"


def _drift(arrived: Sequence[tuple[float, float]]) -> float:
    """Return the drift in ms per hour. Segments are late by chance: only the earliest of each group of segments counts. The last
    segments are left out, because the stop cuts them short."""
    behind = [(number, at - number) for number, at in sorted(arrived)[_BEGINNING:-_BEGINNING]]
    earliest = [min(behind[at : at + _OF], key=lambda segment: segment[1]) for at in range(0, len(behind), _OF)]
    return abs(linear_regression([number for number, _ in earliest], [late for _, late in earliest]).slope) * _HOUR_MS


def _films(root: Path) -> list[str]:
    """Make films of two seconds, of different codecs, sizes and rates, with and without sound."""
    x264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
    tone = ("-f", "lavfi", "-i", "sine=frequency=440:duration=2:sample_rate=44100")
    film(root / "a.mp4", *x264, "-s", "640x480", "-c:a", "aac", frames=50, inputs=tone)
    film(root / "b.mp4", *x264, "-s", "1280x720", frames=100, fps="50")
    film(root / "c.mp4", "-c:v", "mpeg4", "-s", "320x240", "-c:a", "libmp3lame", frames=60, fps="30000/1001", inputs=tone)
    film(root / "d.mkv", *x264, "-s", "854x480", "-c:a", "pcm_s16le", "-ar", "8000", frames=48, fps="24", inputs=tone)
    return ["a.mp4", "b.mp4", "c.mp4", "d.mkv"]


def _processor_seconds() -> float:
    """Return the processor time of this process and of the children that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
