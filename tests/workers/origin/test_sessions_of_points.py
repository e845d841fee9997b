"""Which session may write to a publishing point, and when its recording may go."""

from __future__ import annotations

import asyncio
import shutil
import threading

import pytest

from tests.workers.origin.studio import Studio, Track
from workers.origin.recordings import Point
from workers.origin.refusals import UploadRefused, Why


def segments(studio: Studio, session: int) -> int:
    return len(list((studio.root / "news" / str(session)).glob("t-v0/*.m4s")))


async def test_a_lower_session_begins_where_the_directory_was_removed(studio: Studio) -> None:
    """As the refusal says, of sessions of another database. The origin is not started anew for it."""
    await Track(studio, "v0", session=100).send()
    track = Track(studio, "v0", session=50)
    with pytest.raises(UploadRefused) as refused:
        await track.send()
    assert refused.value.why is Why.FENCED
    shutil.rmtree(studio.root / "news")
    await track.send()
    assert segments(studio, 50) == 1
    await Track(studio, "v0", session=51).send()
    with pytest.raises(UploadRefused) as refused:
        await track.send()
    assert refused.value.why is Why.FENCED


async def test_a_session_that_begins_while_the_disk_is_read_is_not_forgotten(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Track(studio, "v0", session=7).send()
    read, go_on, state = threading.Event(), threading.Event(), Point.state

    def slowly(point: Point) -> object:
        found = state(point)
        if not read.is_set():
            read.set()
            go_on.wait()
        return found

    monkeypatch.setattr(Point, "state", slowly)
    looking = asyncio.create_task(studio.origin.ingest.look("news"))
    await asyncio.to_thread(read.wait)
    await Track(studio, "v0", session=8).send()
    go_on.set()
    await looking
    assert studio.origin.ingest.refused_now("news", 7)


async def test_a_recording_that_goes_on_again_is_not_removed(studio: Studio) -> None:
    """It had ended when another process looked for room, and goes on before that one removes it."""
    track = Track(studio, "v0")
    await track.send(ended=True)
    [recording] = (point := Point(studio.root / "news")).recordings()
    assert recording.ended
    await track.send()
    assert not point.remove(recording, still=lambda one: one.ended)
    assert segments(studio, 1) == 2
    await track.send(ended=True)
    assert point.remove(recording, still=lambda one: one.ended)
    assert segments(studio, 1) == 0
