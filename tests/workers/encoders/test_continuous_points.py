"""Publishing points that take one long stream: CMAF by POST, and RTMP by servers of others."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.contract.encoder.conftest import client, receiver
from tests.contract.encoder.ffmpeg_stage import SEGMENT, children, ffmpeg_plan
from tests.projections.log.helpers import until
from tests.support.programs import not_run, program
from tests.support.receiver import Receiver
from tests.support.rtmp_receiver import rtmp_receiver
from tests.support.sources.numbered_frames import probed, tool
from tests.workers.encoders.test_ffmpeg import PATIENCE, SECRET, counters, encoder, more, running
from tests.workers.outbound.test_client import certified
from workers.adapters.encoders.ffmpeg import FfmpegEncoder
from workers.adapters.encoders.rtmp import AUDIO, VIDEO
from workers.ports.encoders import EncoderFailed

__all__ = ["client", "encoder", "receiver"]
MODULE = Path("/usr/lib/nginx/modules/ngx_rtmp_module.so")
NGINX = """
load_module {module};
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log info;
events {{ worker_connections 64; }}
rtmp {{
  server {{
    listen 127.0.0.1:{port};
    application live {{ live on; record all; record_path {folder}; record_suffix .flv; }}
    application closed {{ live on; deny publish all; }}
  }}
}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


async def listening(port: int) -> None:
    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    await until(answers, seconds=PATIENCE)


async def test_cmaf_is_posted_as_one_stream_for_each_track(encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path) -> None:
    async with running(encoder, receiver.point("one.isml")) as run:
        await until(lambda: len(receiver.live.get("/one.isml/Streams(v0.cmfv)", b"")) > 40_000, seconds=PATIENCE)
        assert run.statistics().points[0].connected
    video, audio = receiver.file("/one.isml/Streams(v0.cmfv)"), receiver.file("/one.isml/Streams(a0.cmfa)")
    assert video.endswith(b"\0\0\0\x08mfra")
    assert audio.endswith(b"\0\0\0\x08mfra")
    (tmp_path / "v.mp4").write_bytes(video)
    shown = counters(tmp_path / "v.mp4")
    assert shown == list(range(len(shown)))
    assert len(shown) > 25


async def test_a_new_connection_of_cmaf_begins_with_the_header_and_a_key_frame(
    encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path
) -> None:
    path = "/one.isml/Streams(v0.cmfv)"
    receiver.how["one.isml"] = "503"
    async with running(encoder, receiver.point("one.isml"), receiver.point("two")) as run:
        await more(receiver, "two", count=4)
        assert "503" in run.statistics().points[0].last_error
        assert run.statistics().points[1].reconnects == 0
        del receiver.how["one.isml"]
        await until(lambda: len(receiver.live.get(path, b"")) > 20_000, seconds=PATIENCE)
    (tmp_path / "v.mp4").write_bytes(receiver.file(path))
    shown = counters(tmp_path / "v.mp4")
    assert shown == list(range(shown[0], shown[0] + len(shown)))
    assert shown[0] in {math.ceil(number * SEGMENT * 25) for number in range(1_000)}, "it begins with a key frame"


async def test_rtmp_reaches_ffmpeg_as_a_server(encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path) -> None:
    port = free_port()
    url = f"rtmp://127.0.0.1:{port}/live/{SECRET}?token={SECRET}"
    target = tmp_path / "taken.flv"
    command = (
        tool("ffmpeg"),
        "-v",
        "error",
        "-listen",
        "1",
        "-i",
        f"rtmp://127.0.0.1:{port}/live/{SECRET}",
        "-c",
        "copy",
        str(target),
    )
    server = await asyncio.create_subprocess_exec(*command)
    try:
        async with running(encoder, url, receiver.point("two")) as run:
            await until(lambda: run.statistics().points[0].bytes > 60_000, seconds=PATIENCE)
            assert run.statistics().points[0].url == f"rtmp://127.0.0.1:{port}/live"
            (pid,) = [pid for pid in children("ffmpeg") if pid != server.pid]
            assert SECRET.encode() not in command_line(pid)
        async with asyncio.timeout(PATIENCE):
            await server.wait()
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
    shown = counters(target)
    assert shown == list(range(shown[0], shown[0] + len(shown)))
    assert len(shown) > 25
    kinds = [stream["codec_name"] for stream in probed(target)["streams"]]
    assert sorted(kinds) == ["aac", "h264"]


def configured(folder: Path, port: int) -> str:
    """The path of nginx, for which the folder has a configuration."""
    if not MODULE.exists():
        not_run("nginx's rtmp module", "apt-get install libnginx-mod-rtmp")
    folder.chmod(0o777)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, module=MODULE))
    return program("nginx")


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@asynccontextmanager
async def nginx(folder: Path, port: int) -> AsyncIterator[None]:
    path = configured(folder, port)
    server = await asyncio.create_subprocess_exec(path, "-p", str(folder), "-c", str(folder / "nginx.conf"))
    try:
        await listening(port)
        yield
    finally:
        server.kill()
        await server.wait()


async def test_rtmp_reaches_nginx_and_comes_back_after_its_restart(
    encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path
) -> None:
    folder, port = tmp_path / "nginx", free_port()
    folder.mkdir()
    async with running(encoder, f"rtmp://127.0.0.1:{port}/live/news", receiver.point("two")) as run:
        async with nginx(folder, port):
            await until(lambda: run.statistics().points[0].bytes > 60_000, seconds=PATIENCE)
        first = (folder / "news.flv").rename(folder / "first.flv")
        await until(lambda: not run.statistics().points[0].connected, seconds=PATIENCE)
        async with nginx(folder, port):
            before = run.statistics().points[0].bytes
            await until(lambda: run.statistics().points[0].bytes > before + 60_000, seconds=PATIENCE)
            assert run.statistics().points[0].reconnects >= 1
        assert run.statistics().points[1].reconnects == 0
    for file in (first, folder / "news.flv"):
        shown = counters(file)
        assert shown == list(range(shown[0], shown[0] + len(shown)))
        assert len(shown) > 10


async def test_rtmps_needs_a_certificate_that_can_be_trusted(
    encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rtmp_receiver(tls=certified(tmp_path)) as secure:
        assert secure.url.startswith("rtmps://")
        async with running(encoder, f"{secure.url}/{SECRET}", receiver.point("two")) as run:
            await until(lambda: run.statistics().points[0].last_error, seconds=PATIENCE)
            assert "certificate of the host cannot be trusted" in run.statistics().points[0].last_error
            assert secure.taken == []
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "host.pem"))
            await until(lambda: secure.media(SECRET) > 40, seconds=PATIENCE)
            assert run.statistics().points[1].reconnects == 0
    (taken,) = secure.of(SECRET)
    assert (taken.application, taken.ended, len(taken.media(VIDEO)) > 10, len(taken.media(AUDIO)) > 10) == (
        "live",
        True,
        True,
        True,
    )


async def test_rtmp_that_is_refused_says_so(encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path) -> None:
    folder, port = tmp_path / "nginx", free_port()
    folder.mkdir()
    async with nginx(folder, port), running(encoder, f"rtmp://127.0.0.1:{port}/closed/{SECRET}", receiver.point("two")) as run:
        await until(lambda: run.statistics().points[0].last_error, seconds=PATIENCE)
        assert not run.statistics().points[0].connected
        assert SECRET not in run.statistics().points[0].last_error
        await more(receiver, "two", count=2)


async def test_a_server_that_speaks_no_rtmp_or_nothing_keeps_nothing_from_the_other(
    encoder: FfmpegEncoder, receiver: Receiver
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    authority = receiver.url.removeprefix("http://")
    async with (
        server,
        running(encoder, f"rtmp://127.0.0.1:{port}/live/a", f"rtmp://{authority}/live/b", receiver.point("two")) as run,
    ):
        await more(receiver, "two", count=4)
        await until(lambda: run.statistics().points[1].last_error, seconds=PATIENCE)
        assert not run.statistics().points[0].connected
        assert run.statistics().points[2].reconnects == 0


@pytest.mark.parametrize("url", ["srt://127.0.0.1:9", "rtmp://127.0.0.1/onlykey", "ftp://h/x", "http://[::1", "rtmp://a:b@h/x/y"])
async def test_a_point_that_cannot_be_sent_to_says_so_and_the_other_goes_on(
    encoder: FfmpegEncoder, receiver: Receiver, url: str
) -> None:
    with pytest.raises(EncoderFailed, match="publishing point 0"):
        await encoder.start(ffmpeg_plan(url), channel="news", session=1, may_send=lambda: True)
    assert "publishing point 0" in str(await encoder.check(ffmpeg_plan(url)))
    async with running(encoder, url, receiver.point("two")) as run:
        await more(receiver, "two", count=1)
        assert "publishing point 0" in run.statistics().points[0].last_error


async def test_rtmp_to_an_address_inside_is_refused(encoder: FfmpegEncoder, receiver: Receiver) -> None:
    async with running(encoder, "rtmp://169.254.169.254/live/a", receiver.point("two")) as run:
        await until(lambda: run.statistics().points[0].last_error, seconds=PATIENCE)
        assert "not public" in run.statistics().points[0].last_error
