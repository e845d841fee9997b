"""The product's own encoder in front of the built-in origin: two sessions in a row, by each kind of ingest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.encoder.ffmpeg_stage import LOCAL, ffmpeg_encoder, ffmpeg_plan
from tests.e2e.origin.conftest import Live
from tests.e2e.origin.test_ingest import probed
from tests.projections.log.helpers import until
from tests.support.product import Product
from tests.workers.encoders.test_ffmpeg import PATIENCE, counters
from workers.adapters.encoders.ffmpeg import FfmpegEncoder
from workers.adapters.outbound_http import GuardedClient

PLAN: dict[str, Any] = {"keyFrameInterval": 1, "audioInputs": [{"id": "a", "language": "en"}, {"id": "b", "language": "de"}]}


async def one_session(encoder: FfmpegEncoder, live: Live, *, session: int, final: bool) -> None:
    run = await encoder.start(ffmpeg_plan(live.url, **PLAN), channel="news", session=session, may_send=lambda: True)
    try:
        await until(lambda: run.statistics().points[0].bytes > 150_000, seconds=PATIENCE)
        assert (run.statistics().points[0].last_error, run.statistics().points[0].dropped) == ("", 0)
    finally:
        await run.stop(final=final)


@pytest.mark.parametrize("name", ["news", "news.isml"])
@pytest.mark.long
async def test_sessions_that_follow_each_other_are_one_recording(origin: Product, name: str) -> None:
    live = Live(origin, name)
    client = GuardedClient(LOCAL)
    encoder = ffmpeg_encoder(client, headers=lambda _, session: {"Authorization": f"Bearer {live.token(session)}"})
    for session in (1, 2):
        await one_session(encoder, live, session=session, final=session == 2)
    await until(lambda: "stopped" in live.get("state").text, seconds=PATIENCE)
    shown = await asyncio.to_thread(counters, live.playable("archive/master.m3u8"))
    second = shown.index(0, 1)
    assert shown == [*range(second), *range(len(shown) - second)], "each session from its first frame, without a gap"
    kinds = [stream["codec_type"] for stream in (await asyncio.to_thread(probed, live.playable("archive/master.m3u8")))["streams"]]
    assert kinds.count("audio") == 2
    assert kinds.count("video") == 1
    await client.close()


async def test_a_session_goes_on_when_its_origin_was_killed_and_started_again(
    start: Callable[..., Product], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoder sends again what was not accepted meanwhile: no frame is missing, and none is there twice."""
    monkeypatch.setattr("workers.adapters.encoders.hls_point.QUEUED", PATIENCE)  # a busy machine takes long to start the other one
    killed = start()
    live = Live(killed, "again")
    client = GuardedClient(LOCAL)
    encoder = ffmpeg_encoder(client, headers=lambda _, session: {"Authorization": f"Bearer {live.token(session)}"})
    run = await encoder.start(ffmpeg_plan(live.url, **PLAN), channel="again", session=1, may_send=lambda: True)
    try:
        await until(lambda: run.statistics().points[0].bytes > 150_000, seconds=PATIENCE)
        await asyncio.to_thread(killed.kill)
        await until(lambda: run.statistics().points[0].last_error != "", seconds=PATIENCE)
        before = run.statistics().points[0].bytes
        await asyncio.to_thread(start, port=killed.address.rpartition(":")[2])
        await until(lambda: run.statistics().points[0].bytes > before + 150_000, seconds=PATIENCE)
        assert run.statistics().points[0].dropped == 0
    finally:
        await run.stop(final=True)
        await client.close()
    await until(lambda: "stopped" in live.get("state").text, seconds=PATIENCE)
    shown = await asyncio.to_thread(counters, live.playable("archive/master.m3u8"))
    assert shown == list(range(len(shown)))
    assert "#EXT-X-DISCONTINUITY\n" not in live.get("archive/tracks/v0.m3u8").text
