"""What playlists of all encoders may have in memory at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.projections.log.helpers import until
from tests.workers.origin.studio import Studio
from workers.origin.names import upload
from workers.origin.refusals import UploadRefused, Why


async def test_playlists_that_are_sent_slowly_leave_room_for_others(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.origin.ingest.MOST_PLAYLISTS", 100)
    ends, begun = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"#EXTM3U\n" + b"#" * 60
        begun.set()
        await ends.wait()

    task = asyncio.create_task(studio.origin.ingest.take("news", upload("a.m3u8"), session=1, body=slow()))
    await until(begun.is_set)
    with pytest.raises(UploadRefused) as refused:
        await studio.put("b.m3u8", b"#EXTM3U\n" + b"#" * 60)
    assert refused.value.why is Why.BUSY
    await studio.put("b.m3u8", b"#EXTM3U\n")
    ends.set()
    await task
    await studio.put("b.m3u8", b"#EXTM3U\n" + b"#" * 60)
