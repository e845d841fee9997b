"""Segments on separate connections: a later one may arrive before its predecessor, and the playlist before both."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from time import time

import pytest

from tests.support.clock import HandClock
from tests.support.waiting import pauses
from tests.workers.origin.mp4 import AAC, fragment, init
from tests.workers.origin.studio import Studio
from workers.origin.limits import UploadRefused
from workers.origin.recordings import INCOMING

LONG = 3600.0


@pytest.fixture
def patience() -> float:
    return LONG


@pytest.fixture
def studio(tmp_path: Path, clock: HandClock, patience: float) -> Studio:
    return Studio(tmp_path / "origin", clock, patience=patience)


def playlist(count: int, *, ended: bool = False) -> bytes:
    lines = ["#EXTM3U", '#EXT-X-MAP:URI="a.mp4"', *(f"#EXTINF:1,\na-{number}.m4s" for number in range(count))]
    return "\n".join([*lines, *(["#EXT-X-ENDLIST"] if ended else [])]).encode()


async def put(studio: Studio, number: int) -> None:
    await studio.put(f"a-{number}.m4s", fragment(number))


async def begun(studio: Studio) -> None:
    """Return a track with segment 0, so old that no other track is waited for."""
    await studio.put("a.mp4", init(AAC))
    await put(studio, 0)
    await studio.put("a.m3u8", playlist(1))
    studio.clock.forward(seconds=5)


async def three_of_four_have_come(studio: Studio) -> asyncio.Task[None]:
    """Send all segments but segment 2. Return the request of the playlist, which lists it."""
    await begun(studio)
    await put(studio, 1)
    await put(studio, 3)
    sent = asyncio.create_task(studio.put("a.m3u8", playlist(4, ended=True)))
    async with asyncio.timeout(60):
        for length in pauses():
            if (await studio.media("a")).count("#EXTINF") == 2:
                break
            await asyncio.sleep(length)
    return sent


async def whole(studio: Studio) -> None:
    playlist = await studio.media("a")
    assert [f"1/a/{number}000.m4s" in playlist or f"1/a/{number}.m4s" in playlist for number in range(4)] == [True] * 4, playlist
    assert "#EXT-X-GAP" not in playlist
    assert "#EXT-X-ENDLIST" in playlist


async def test_what_follows_a_segment_waits_for_it(studio: Studio) -> None:
    sent = await three_of_four_have_come(studio)
    assert "#EXT-X-ENDLIST" not in await studio.media("a")
    assert not sent.done()
    await put(studio, 2)
    await sent
    await whole(studio)


async def test_the_request_of_a_segment_waits_too(studio: Studio) -> None:
    await begun(studio)
    await put(studio, 1)
    await studio.put("a.m3u8", playlist(4, ended=True))
    sent = asyncio.create_task(put(studio, 3))
    await put(studio, 2)
    await sent
    await whole(studio)


async def test_the_segment_may_come_to_another_process(studio: Studio, clock: HandClock) -> None:
    sent = await three_of_four_have_come(studio)
    await put(Studio(studio.root, clock, patience=LONG), 2)
    await sent
    await whole(studio)


async def test_a_playlist_that_comes_after_the_next_one_is_not_taken_for_the_last(studio: Studio) -> None:
    await begun(studio)
    await put(studio, 1)
    await put(studio, 2)
    await studio.put("a.m3u8", playlist(4, ended=True))
    await studio.put("a.m3u8", playlist(3))
    await put(studio, 3)
    await whole(studio)


async def test_a_playlist_that_comes_far_too_late_is_refused_and_the_last_one_stays(studio: Studio) -> None:
    await begun(studio)
    for number in (1, 2):
        await put(studio, number)
    await studio.put("a.m3u8", playlist(3))
    await studio.put("a.m3u8", playlist(4, ended=True))
    with pytest.raises(UploadRefused):
        await studio.put("a.m3u8", playlist(1))
    await put(studio, 3)
    await whole(studio)


@pytest.mark.parametrize("patience", [0.2])
async def test_one_that_never_comes_is_a_gap_and_the_end_is_told(studio: Studio) -> None:
    """No later request checks again: the request of the playlist does."""
    sent = await three_of_four_have_come(studio)
    await sent
    playlist = await studio.media("a")
    assert playlist.count("#EXTINF") == 4
    assert "#EXT-X-GAP\n#EXTINF:1.000000,\n1/a/2.gap" in playlist
    assert "#EXT-X-ENDLIST" in playlist


@pytest.mark.parametrize("age", [-LONG, LONG + 60])
async def test_a_clock_that_was_set_does_not_hold_segments_for_long(studio: Studio, age: float) -> None:
    """The times of files are those of the machine or of the file server."""
    await begun(studio)
    await put(studio, 2)
    for file in (studio.root / "news" / "1" / INCOMING).iterdir():
        os.utime(file, (time() - age,) * 2)
    await studio.put("a.m3u8", playlist(3))
    assert (await studio.media("a")).count("#EXT-X-GAP") == 1
