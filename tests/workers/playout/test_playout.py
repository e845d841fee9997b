"""Playlists that an encoder plays, as they arrive at a real server: what each decoded frame shows, and when."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contract.encoder.conftest import client, receiver
from tests.contract.encoder.ffmpeg_stage import children, ffmpeg_encoder, ffmpeg_plan
from tests.projections.log.helpers import until
from tests.workers.encoders.receiver import Receiver
from tests.workers.jobs.counted import film, numbers, probed
from tests.workers.playout.memory import Shelf, item
from workers.adapters.encoders.ffmpeg import FfmpegEncoder, RunningFfmpeg
from workers.adapters.encoders.playout import PlayoutPatience
from workers.adapters.outbound_http import GuardedClient
from workers.playout.programme import Programme
from workers.ports import PlayoutStatistics

__all__ = ["client", "receiver"]
PATIENCE = 90.0
RATE = 25
STEADY = PlayoutPatience(late=30.0, first=30.0, fixed=0.5)
"""A machine that does much else makes a frame late, which is not what most tests are about."""
BLACK = 0


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    tmp_path.chmod(0o755)
    return Shelf(tmp_path)


def made(shelf: Shelf, name: str, *options: str, first: int, frames: int = 30, fps: str = "25", sound: str = "") -> str:
    """A film with these numbers. `sound`: options of a tone as long as it."""
    tone = ("-f", "lavfi", "-i", f"sine=frequency=440:duration={frames / float(fps):.3f}:sample_rate=44100") if sound else ()
    codecs = options or ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
    film(shelf.root / name, *codecs, *sound.split(), frames=frames, fps=fps, first=first, inputs=tone)
    return name


@asynccontextmanager
async def playing(
    client: GuardedClient,
    programme: Programme,
    *urls: str,
    session: int = 7,
    patience: PlayoutPatience = STEADY,
    **specific: Any,
) -> AsyncIterator[RunningFfmpeg]:
    encoder: FfmpegEncoder = replace(ffmpeg_encoder(client), playout_patience=patience)
    run = await encoder.start(
        ffmpeg_plan(*urls, **specific), channel="news", session=session, may_send=lambda: True, programme=programme
    )
    try:
        yield run
    finally:
        await run.stop()
        assert children("ffmpeg") == []


def on_air(run: RunningFfmpeg) -> PlayoutStatistics:
    found = run.statistics().playout
    assert found is not None
    return found


def sent(receiver: Receiver, path: Path, *, track: str = "v0", session: int = 7) -> Path:
    taken = [one for one in receiver.media("one") if one.session == session and one.path.startswith(f"/one/{track}-")]
    path.write_bytes(receiver.file(f"/one/{track}-{session}.mp4") + b"".join(one.body for one in taken))
    return path


def jumps(path: Path, *, stream: str, step: float) -> list[float]:
    """Where the time between two packets is not that of one, in seconds."""
    shown = probed(path, "-select_streams", stream, "-show_entries", "packet=dts_time")["packets"]
    times = [float(one["dts_time"]) for one in shown]
    return [later - before for before, later in zip(times, times[1:], strict=False) if abs(later - before - step) > 0.001]


def counted(first: int, frames: int = 30) -> list[int]:
    return list(range(first, first + frames))


async def test_borders_between_sources_of_every_kind_are_neither_gap_nor_jump(
    client: GuardedClient, receiver: Receiver, shelf: Shelf, tmp_path: Path
) -> None:
    x264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
    shelf.put(
        made(shelf, "a.mp4", first=1, sound="-c:a aac"),
        made(shelf, "b.mp4", *x264, "-s", "256x192", first=40, fps="50", frames=60),
        made(shelf, "c.mp4", "-c:v", "mpeg4", "-q:v", "3", first=101, frames=15, fps="12.5", sound="-c:a libmp3lame -ac 2"),
        made(shelf, "d.mp4", first=120, frames=3),
        made(shelf, "e.mkv", *x264, "-s", "320x240", first=130, sound="-c:a pcm_s16le -ar 8000"),
        item(made(shelf, "f.mp4", first=170, frames=60, sound="-c:a aac"), start=0.4, end=1.6),
    )
    async with playing(client, shelf.programme(), receiver.point("one")) as run:
        await until(lambda: shelf.place.get("anchor", {}).get("over"), seconds=PATIENCE)
        assert on_air(run).late < STEADY.late
    shown = numbers(sent(receiver, tmp_path / "v.mp4"))
    expected = [counted(1), counted(40, 60)[::2], sorted(counted(101, 15) * 2), counted(120, 3), counted(130), counted(180)]
    every = sum(expected, [])
    assert shown[: len(every)] == every
    assert set(shown[len(every) :]) <= {BLACK}, "after the end it is black"
    assert jumps(tmp_path / "v.mp4", stream="v", step=1 / RATE) == []
    assert jumps(sent(receiver, tmp_path / "a.mp4", track="a0"), stream="a", step=1024 / 48_000) == []
