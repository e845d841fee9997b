"""The session that may write to a publishing point, and the time at which its recording may be removed."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from domain.channel.point_token import PointToken, Use
from tests.workers.origin.mp4 import AVC, fragment, init
from tests.workers.origin.studio import Studio, Track, writer
from workers.origin.limits import RefusalReason, UploadRefused
from workers.origin.names import upload
from workers.origin.recordings import RecordedPoint


def segments(studio: Studio, session: int) -> int:
    return len(list((studio.root / "news" / str(session)).glob("t-v0/*.m4s")))


async def test_a_lower_session_begins_where_the_directory_was_removed(studio: Studio) -> None:
    """The refusal for sessions of another database recommends this. The origin is not restarted for it."""
    await Track(studio, "v0", session=100).send()
    track = Track(studio, "v0", session=50)
    with pytest.raises(UploadRefused) as refused:
        await track.send()
    assert refused.value.why is RefusalReason.FENCED
    shutil.rmtree(studio.root / "news")
    await track.send()
    assert segments(studio, 50) == 1
    await Track(studio, "v0", session=51).send()
    with pytest.raises(UploadRefused) as refused:
        await track.send()
    assert refused.value.why is RefusalReason.FENCED


async def test_a_session_that_begins_while_the_disk_is_read_is_not_forgotten(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Track(studio, "v0", session=7).send()
    read, resume, state = threading.Event(), threading.Event(), RecordedPoint.state

    def slowly(point: RecordedPoint) -> object:
        result = state(point)
        if not read.is_set():
            read.set()
            resume.wait()
        return result

    monkeypatch.setattr(RecordedPoint, "state", slowly)
    looking = asyncio.create_task(studio.origin.ingest.look("news", writer(8)))
    await asyncio.to_thread(read.wait)
    await Track(studio, "v0", session=8).send()
    resume.set()
    await looking
    assert studio.origin.ingest.refused_now("news", writer(7))


async def test_a_recording_that_goes_on_again_is_not_removed(studio: Studio) -> None:
    """The recording had ended when another process looked for space, and continues before that process removes it."""
    track = Track(studio, "v0")
    await track.send(ended=True)
    [recording] = (point := RecordedPoint(studio.root / "news")).recordings()
    assert recording.ended
    await track.send()
    assert not point.remove(recording, still=lambda entry: entry.ended)
    assert segments(studio, 1) == 2
    await track.send(ended=True)
    assert point.remove(recording, still=lambda entry: entry.ended)
    assert segments(studio, 1) == 0


async def test_a_session_that_was_ended_stays_ended(studio: Studio) -> None:
    """Regression: its token wrote again, and reopened the recording."""
    track = Track(studio, "v0")
    await track.send()
    for _ in range(2):
        await studio.origin.ingest.end("news", writer(1))
    assert "#EXT-X-ENDLIST" in await studio.media("v0")
    again = Studio(studio.root, studio.clock)
    for origin in (studio, again):
        with pytest.raises(UploadRefused) as refused:
            await origin.put("v0-1.m4s", b"x")
        assert refused.value.why is RefusalReason.FENCED
    [recording] = RecordedPoint(studio.root / "news").recordings()
    assert recording.state.ended is not None
    await Track(studio, "v0", session=2).send()
    assert segments(studio, 1) == segments(studio, 2) == 1
    with pytest.raises(UploadRefused):
        await studio.origin.ingest.end("news", writer(1))


async def test_a_token_that_was_revoked_writes_no_more(studio: Studio) -> None:
    """This includes a stream that it has begun in another process than the one that revokes it."""
    stream = fragments(studio, "news")
    await stream.begun.wait()
    RecordedPoint(studio.root / "news").revoke(now=writer(1).issued)
    with pytest.raises(UploadRefused) as refused:
        await stream.task
    assert refused.value.why is RefusalReason.FENCED
    with pytest.raises(UploadRefused, match="revoked"):
        await studio.put("v0.m3u8", b"#EXTM3U\n")
    later = replace(writer(1), issued=writer(1).issued + 1)
    await studio.origin.ingest.take("news", upload("v0.m3u8"), writer=later, body=told_once(b"#EXTM3U\n"))


async def test_an_encoder_of_the_product_writes_as_long_as_its_session_runs(studio: Studio) -> None:
    """Regression: the bearer of its token continued to write when the Event was stopped."""
    encoder = replace(writer(7), use=Use.ENCODER)
    stream = fragments(studio, "news", token=encoder)
    await stream.begun.wait()
    studio.ended.add(7)
    with pytest.raises(UploadRefused, match="has ended"):
        await stream.task
    for ask in (
        studio.origin.ingest.take("news", upload("v0.m3u8"), writer=encoder, body=told_once(b"#EXTM3U\n")),
        studio.origin.ingest.end("news", encoder),
    ):
        with pytest.raises(UploadRefused, match="has ended"):
            await ask
    await studio.put("v0.m3u8", b"#EXTM3U\n", session=8)


@dataclass
class Streaming:
    begun: asyncio.Event
    task: asyncio.Task[None]


def fragments(studio: Studio, point: str, *, token: PointToken | None = None) -> Streaming:
    """Yield an endless stream of fragments."""
    begun = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield init(AVC)
        number = 0
        while True:
            yield fragment(float(number), lasts=1.0, data=b"media")
            begun.set()
            number += 1
            await asyncio.sleep(0.01)

    take = studio.origin.ingest.take(point, upload("Streams(v0)"), writer=token or writer(1), body=body())
    return Streaming(begun, asyncio.create_task(take))


async def told_once(content: bytes) -> AsyncIterator[bytes]:
    yield content
