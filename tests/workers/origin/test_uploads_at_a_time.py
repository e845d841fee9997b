"""The limit of concurrent uploads of all publishing points, of which no point gets everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.projections.log.helpers import until
from tests.support.clock import HandClock
from tests.workers.origin.studio import Studio, Track, writer
from workers.origin import ingest as upload_body
from workers.origin.limits import RefusalReason, UploadRefused
from workers.origin.names import upload


@asynccontextmanager
async def slow(
    studio: Studio, path: str, first: bytes, *, point: str = "news", session: int = 1
) -> AsyncIterator[asyncio.Task[None]]:
    """Begin an upload whose body continues when the block ends."""
    ends, begun = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield first
        begun.set()
        await ends.wait()

    task = asyncio.create_task(studio.origin.ingest.take(point, upload(path), writer=writer(1), body=body()))
    await until(begun.is_set)
    yield task
    ends.set()
    await asyncio.gather(task, return_exceptions=True)


async def test_playlists_that_are_sent_slowly_leave_room_for_others(tmp_path: Path, clock: HandClock) -> None:
    studio = Studio(tmp_path / "origin", clock, playlists=100)
    async with slow(studio, "a.m3u8", b"#EXTM3U\n" + b"#" * 60) as task:
        with pytest.raises(UploadRefused) as refused:
            await studio.put("b.m3u8", b"#EXTM3U\n" + b"#" * 60)
        assert refused.value.why is RefusalReason.BUSY
        await studio.put("b.m3u8", b"#EXTM3U\n")
    await task
    await studio.put("b.m3u8", b"#EXTM3U\n" + b"#" * 60)


async def test_playlists_of_one_point_make_room_for_those_of_another(tmp_path: Path, clock: HandClock) -> None:
    studio = Studio(tmp_path / "origin", clock, playlists=100)
    async with slow(studio, "a.m3u8", b"#EXTM3U\n" + b"#" * 80) as task:
        await studio.put("b.m3u8", b"#EXTM3U\n" + b"#" * 60, point="other")
        with pytest.raises(UploadRefused, match="most of them"):
            await task
    assert studio.origin.ingest.playlists.used == studio.origin.ingest.uploads.used == 0


@pytest.mark.parametrize("path", ["v0-%d.m4s", "v0-%d.m3u8", "Streams(v%d)"])
async def test_slow_uploads_to_one_point_do_not_keep_another_one_waiting(tmp_path: Path, clock: HandClock, path: str) -> None:
    """Regression: they held every place, and the encoder of another point got 503 for as long as they wished."""
    studio = Studio(tmp_path / "origin", clock, uploads=3)
    async with (
        slow(studio, path % 0, b"", point="greedy") as first,
        slow(studio, path % 1, b"", point="greedy"),
        slow(studio, path % 2, b"", point="greedy"),
    ):
        with pytest.raises(UploadRefused):
            await studio.put(path % 3, b"", point="greedy")
        await Track(studio, "v0").send()
        with pytest.raises(UploadRefused) as refused:
            await first
        assert refused.value.why is RefusalReason.BUSY
    assert studio.origin.ingest.uploads.used == 0


async def test_a_segment_must_come_and_a_stream_may_take_its_time(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_body, "_FIRST", 0.0)
    studio = Studio(tmp_path / "origin", clock)
    for path in ("v0-1.m4s", "v0.m3u8"):
        async with slow(studio, path, b"#") as task:
            with pytest.raises(UploadRefused) as refused:
                await task
            assert refused.value.why is RefusalReason.SLOW
    async with slow(studio, "Streams(v0)", b"") as task:
        await studio.put("v1-1.m4s", b"#")
        assert not task.done()
