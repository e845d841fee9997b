"""Sources that are fetched over HTTP: each address passes the outbound client, and ffmpeg reaches none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web

from tests.contract.encoder.conftest import client, receiver
from tests.contract.encoder.ffmpeg_stage import children, ffmpeg_plan
from tests.projections.log.helpers import until
from tests.support.receiver import Receiver
from tests.support.sources.numbered_frames import film, numbers
from tests.workers.encoders.test_ffmpeg import PATIENCE, encoder, joined, more, running
from tests.workers.job.streamed import playlist
from workers.adapters.encoders.fetched_stream import FetchedStream
from workers.adapters.encoders.ffmpeg import FfmpegEncoder
from workers.adapters.encoders.hls_reading import NotRead
from workers.adapters.outbound_http import GuardedClient
from workers.ports.encoders import EncoderFailed

__all__ = ["client", "encoder", "receiver"]


@asynccontextmanager
async def serving(files: Mapping[str, bytes]) -> AsyncIterator[str]:
    async def get(request: web.Request) -> web.Response:
        body = files.get(request.path.lstrip("/"))
        return web.Response(status=404) if body is None else web.Response(body=body)

    app = web.Application()
    app.router.add_get("/{path:.*}", get)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


@pytest.fixture
def stream(tmp_path: Path) -> bytes:
    """Four seconds of MPEG-TS, whose frames say their numbers."""
    sound = ("-f", "lavfi", "-i", "sine=frequency=440:duration=4:sample_rate=48000")
    film(tmp_path / "film.ts", "-c:v", "libx264", "-g", "25", "-bf", "0", "-pix_fmt", "yuv420p", "-c:a", "aac", inputs=sound)
    return (tmp_path / "film.ts").read_bytes()


async def over(encoder: FfmpegEncoder, receiver: Receiver, url: str) -> str:
    """Return why the encode ended, after the whole source was sent to the point `one`."""
    plan = ffmpeg_plan(receiver.point("one"), source={"type": "url", "url": url})
    run = await encoder.start(plan, channel="news", session=7, may_send=lambda: True)
    assert [sound.index for sound in run.audio_inputs() or ()] == [0]
    async with asyncio.timeout(PATIENCE):
        why = await run.ended()
    await run.stop()
    return why


async def test_a_stream_over_http_is_encoded_as_it_comes(
    encoder: FfmpegEncoder, receiver: Receiver, stream: bytes, tmp_path: Path
) -> None:
    async with serving({"film.ts": stream}) as url:
        assert await over(encoder, receiver, f"{url}/film.ts") == "The source has ended."
    assert numbers(joined(receiver, "one", tmp_path / "one.mp4")) == [0, *range(100)], "its sound begins before its picture"


async def test_a_playlist_is_read_here_and_not_by_ffmpeg(
    encoder: FfmpegEncoder, receiver: Receiver, stream: bytes, tmp_path: Path
) -> None:
    half = len(stream) // 188 // 2 * 188
    master = b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=9\nhigh.m3u8\n"
    files = {"a/master.m3u8": master, "a/high.m3u8": playlist([0, 1]), "a/s0.ts": stream[:half], "a/s1.ts": stream[half:]}
    async with serving(files) as url:
        assert await over(encoder, receiver, f"{url}/a/master.m3u8") == "The source has ended."
    assert numbers(joined(receiver, "one", tmp_path / "one.mp4")) == [0, *range(100)], "its sound begins before its picture"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#EXTM3U\n#EXTINF:1,\nhttp://169.254.169.254/latest\n#EXT-X-ENDLIST\n", "not public"),
        ("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n", "does not begin with http"),
        ('#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF:1,\na.ts\n#EXT-X-ENDLIST\n', "encrypted"),
        ("#EXTM3U\n#EXTINF:1,\nmissing.ts\n#EXT-X-ENDLIST\n", "status 404"),
        ("<html>no media</html>", "cannot be read"),
        ("", "cannot be read"),
    ],
)
async def test_a_source_that_leads_elsewhere_is_refused(encoder: FfmpegEncoder, receiver: Receiver, text: str, words: str) -> None:
    async with serving({"x": text.encode()}) as url:
        plan = ffmpeg_plan(receiver.point("one"), source={"type": "url", "url": f"{url}/x"})
        with pytest.raises(EncoderFailed, match=words):
            await encoder.start(plan, channel="news", session=1, may_send=lambda: True)
    assert children("ffmpeg") == []


async def test_a_playlist_that_gets_no_segment_is_refused(client: GuardedClient) -> None:
    async with serving({"live.m3u8": b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n"}) as url:
        fetched = FetchedStream(client, f"{url}/live.m3u8", first=0.2)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(NotRead, match="no segments yet"):
                await fetched.head()
        await fetched.close()


@pytest.mark.parametrize("probing", [False, True])
async def test_a_start_that_is_cancelled_leaves_no_process_and_no_connection(
    encoder: FfmpegEncoder, receiver: Receiver, stream: bytes, probing: bool
) -> None:
    """While it waits for more of the source, and while ffprobe looks at what there is."""
    open_now: set[asyncio.StreamWriter] = set()

    async def part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        begin = stream if probing else stream[:188]
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(stream) + begin)
        with suppress(OSError):  # closed with what was not read yet, it is reset
            await reader.read()
        open_now.discard(writer)
        writer.close()

    before, descriptors = set(children("")), len(os.listdir("/proc/self/fd"))
    server = await asyncio.start_server(part, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        plan = ffmpeg_plan(receiver.point("one"), source={"type": "url", "url": f"http://127.0.0.1:{port}/x"})
        start = asyncio.create_task(encoder.start(plan, channel="news", session=1, may_send=lambda: True))
        await until(lambda: set(children("")) - before if probing else open_now)
        start.cancel()
        await asyncio.wait({start})
        assert start.cancelled()
        assert set(children("")) == before
        await until(lambda: not open_now)
    await until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)


async def test_a_source_that_breaks_off_is_named(encoder: FfmpegEncoder, receiver: Receiver, stream: bytes) -> None:
    live = playlist([0, 1], ended=True).replace(b"s1.ts", b"missing.ts")
    async with serving({"live.m3u8": live, "s0.ts": stream}) as url:
        why = await over(encoder, receiver, f"{url}/live.m3u8")
    assert why == "The source failed: It answers with status 404."


async def test_a_stop_while_the_source_is_silent(encoder: FfmpegEncoder, receiver: Receiver, stream: bytes) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + stream[: len(stream) // 2])
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, running(encoder, receiver.point("one"), source={"type": "url", "url": f"http://127.0.0.1:{port}/x"}):
        await more(receiver, "one", count=1)
    assert children("ffmpeg") == []
