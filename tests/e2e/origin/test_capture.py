"""A capture from the built-in origin has the whole recording, not only the live window, and needs no network to be allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from domain.kernel.clock import system_clock
from domain.kernel.encryption import IngestKeys
from tests.e2e.origin.conftest import Live
from tests.e2e.origin.pushing import CMAF, FMP4, FRAMES, TS, Encoder, copied
from tests.support.product import Product
from tests.support.sources.numbered_frames import numbers
from tests.workers.job.capturing import Studio
from tests.workers.job.streamed import Streamed
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.point_tokens import PointTokens

ALL = list(range(FRAMES))


@pytest.fixture(scope="module")
async def studio(origin: Product, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Studio]:
    folder, keys = tmp_path_factory.mktemp("capture"), IngestKeys(bytes(range(32)))
    tokens = PointTokens(keys, system_clock, origin=origin.address).of_step
    hosts = StepProcessPool(media_root=folder / "media", allow=[], origin=origin.address, point_tokens=tokens)
    await hosts.start()
    yield Studio(hosts, folder / "media", Streamed.__new__(Streamed))
    await hosts.stop()


@pytest.mark.parametrize(
    ("name", "output", "manifest"),
    [
        ("fmp4", [*copied("0:v", "0:a"), *FMP4, "{}/index.m3u8"], "master.m3u8"),
        ("ts", [*copied("0:v", "0:a"), *TS, "{}/index.m3u8"], "master.m3u8"),
        ("cmaf", [*copied("0:v"), *CMAF, "{}/Streams(video)"], "manifest.mpd"),
    ],
)
async def test_the_whole_recording_is_captured(
    studio: Studio, origin: Product, film: Path, name: str, output: list[str], manifest: str
) -> None:
    """The live window has three segments of the eight."""
    live = Live(origin, f"captured-{name}")
    assert live.put("x.m3u8", b"#EXTM3U\n", headers={"x-dvr-window": "1"}).status_code == 201
    assert Encoder(film, [part.format(live.url) for part in output], token=live.token(1)).ended() == 0
    live.until_state("stopped")
    page = live.get("archive").text
    begin, end = (page.split(f'{edge}="')[1].partition('"')[0] for edge in ("begin", "end"))
    assert live.get(f"tracks/{'video' if name == 'cmaf' else 'index'}.m3u8").text.count("#EXTINF") == 3
    made = await studio.captured([f"{live.url}/{manifest}"], begin, end, frame_accurate=True)
    assert numbers(made) == ALL
    assert studio.gaps == []


async def test_nothing_else_inside_is_captured(studio: Studio, origin: Product) -> None:
    now = datetime.now(UTC)
    start, end = (now.replace(microsecond=0).isoformat(), now.replace(microsecond=999_000).isoformat())
    for url in (f"{origin.address}/livez", f"{origin.address.replace('127.0.0.1', 'localhost')}/origin/live/x/master.m3u8"):
        ended = await studio.ended([url], start, end)
        assert isinstance(ended, StepFailure)
        assert "not public" in ended.reason
