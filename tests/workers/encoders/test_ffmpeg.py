"""The encoder ffmpeg in front of a real server: what arrives, what breaks, and what nobody may see."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contract.encoder.conftest import client, receiver
from tests.contract.encoder.ffmpeg_stage import POINTS, SEGMENT, children, ffmpeg_encoder, ffmpeg_plan
from tests.projections.log.helpers import until
from tests.support.receiver import Receiver, Taken
from tests.support.sources.numbered_frames import film, probed, tool
from workers.adapters.encoders.encode_command import BITS
from workers.adapters.encoders.ffmpeg import FfmpegEncoder, RunningFfmpeg
from workers.adapters.encoders.point import QUEUED
from workers.adapters.outbound_http import GuardedClient
from workers.ports.encoders import EncoderFailed

__all__ = ["client", "receiver"]
PATIENCE = 90.0
SECRET = "k3y-that-nobody-sees"


@pytest.fixture
def encoder(client: GuardedClient, tmp_path: Path) -> FfmpegEncoder:
    tmp_path.chmod(0o755)
    return ffmpeg_encoder(client, media_root=tmp_path)


@asynccontextmanager
async def running(
    encoder: FfmpegEncoder, *urls: str, session: int = 7, may_send: Callable[[], bool] = lambda: True, **specific: Any
) -> AsyncIterator[RunningFfmpeg]:
    run = await encoder.start(ffmpeg_plan(*urls, **specific), channel="news", session=session, may_send=may_send)
    try:
        yield run
    finally:
        await run.stop()


def segments(receiver: Receiver, point: str, *, track: str = "v0") -> list[Taken]:
    return [request for request in receiver.media(point) if request.path.startswith(f"/{point}/{track}-")]


async def more(receiver: Receiver, point: str, *, count: int = 3, track: str = "v0") -> None:
    goal = len(segments(receiver, point, track=track)) + count
    await until(lambda: len(segments(receiver, point, track=track)) >= goal, seconds=PATIENCE)


def joined(receiver: Receiver, point: str, path: Path, *, track: str = "v0", session: int = 7) -> Path:
    """Join what the point has of a track, in the order of arrival."""
    taken = [request for request in segments(receiver, point, track=track) if request.session == session]
    path.write_bytes(receiver.file(f"/{point}/{track}-{session}.mp4") + b"".join(request.body for request in taken))
    return path


def counters(path: Path | str) -> list[int]:
    """The numbers of the frames, as their pictures show them: blocks at the bottom."""
    width, height = 128, 96
    shown = ("-fps_mode", "passthrough", "-vf", "format=gray", "-f", "rawvideo", "-")
    raw = subprocess.run([tool("ffmpeg"), "-v", "error", "-i", str(path), *shown], stdout=subprocess.PIPE, check=True).stdout
    size, block, row = width * height, width // BITS, (height - 4) * width
    frames = [raw[at : at + size] for at in range(0, len(raw), size)]
    return [sum((frame[row + bit * block + block // 2] > 128) << bit for bit in range(BITS)) for frame in frames]


def names(receiver: Receiver, point: str) -> list[str]:
    return list(dict.fromkeys(request.path.partition(f"/{point}/")[2] for request in segments(receiver, point)))


async def test_both_points_get_the_same_picture_without_a_gap(encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path) -> None:
    async with running(encoder, *map(receiver.point, POINTS)) as run:
        await more(receiver, "one", count=8)
        await more(receiver, "two", count=1)
        assert run.statistics().frames > 0
        assert run.statistics().bitrate > 0
    shown = counters(joined(receiver, "one", tmp_path / "one.mp4"))
    assert shown == list(range(len(shown)))
    assert len(shown) >= 8 * SEGMENT * 25
    assert {request.path[4:]: request.body for request in segments(receiver, "one")} == {
        request.path[4:]: request.body for request in segments(receiver, "two")
    }, "the same segments with the same borders"
    first = probed(joined(receiver, "one", tmp_path / "sound.mp4", track="a0"))["streams"][0]
    assert (first["codec_name"], first["sample_rate"]) == ("aac", "48000")


async def test_the_playlists_can_be_played_and_say_the_time_of_day(
    encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path
) -> None:
    inputs = [{"id": "a", "name": 'Ori"ginal\n', "language": "en"}, {"id": "b", "name": "Deutsch", "language": "de"}]
    async with running(encoder, receiver.point("one"), audioInputs=inputs) as run:
        await more(receiver, "one", count=6)
        sounds = run.audio_inputs() or ()
        assert [(sound.id, sound.index, sound.language) for sound in sounds] == [("a", 0, "en"), ("b", 1, "de")]
    for request in receiver.taken:
        (tmp_path / request.path.rpartition("/")[2]).write_bytes(request.body)
    probe = probed(tmp_path / "master.m3u8")
    assert [stream["codec_type"] for stream in probe["streams"]].count("audio") == 2
    assert abs(float(probe["format"]["duration"]) - len(segments(receiver, "one")) * SEGMENT) < 1
    master, media = receiver.file("/one/master.m3u8").decode(), receiver.file("/one/v0.m3u8").decode()
    assert 'NAME="Original",LANGUAGE="en",DEFAULT=YES' in master
    assert 'CODECS="avc1.' in master
    assert media.count("#EXT-X-PROGRAM-DATE-TIME:") == media.count("#EXTINF:") >= 6
    assert media.endswith("#EXT-X-ENDLIST\n")
    assert media.count("#EXT-X-DISCONTINUITY\n") == 1, "the beginning of the session only"
    assert "X-Dvr-Window" not in receiver.taken[-1].headers


async def test_a_window_limits_the_playlist_and_old_segments_are_deleted_if_asked(
    encoder: FfmpegEncoder, receiver: Receiver
) -> None:
    plan = ffmpeg_plan(receiver.point("one"), options="--dvr_window_length=2 --archive=0")
    run = await encoder.start(plan, channel="news", session=7, may_send=lambda: True)
    await until(lambda: receiver.deleted, seconds=PATIENCE)
    await run.stop()
    listed = receiver.file("/one/v0.m3u8").decode()
    assert 2 / SEGMENT <= listed.count("#EXTINF:") <= 2 / SEGMENT + 1
    assert not any(path.rpartition("/")[2] in listed for path in receiver.deleted)
    assert receiver.taken[-1].headers["X-Dvr-Window"] == "2"


async def test_a_further_session_continues_the_playlist(encoder: FfmpegEncoder, receiver: Receiver) -> None:
    def head(name: str) -> tuple[int, int]:
        lines = receiver.file("/one/v0.m3u8").decode().splitlines()
        numbers = [int(line.rpartition(":")[2]) for line in lines if "SEQUENCE" in line]
        return numbers[0], numbers[1]

    run = await encoder.start(ffmpeg_plan(receiver.point("one")), channel="news", session=1, may_send=lambda: True)
    await more(receiver, "one")
    await run.stop(final=False)
    assert b"ENDLIST" not in receiver.file("/one/v0.m3u8")
    before, last = head("v0"), int(segments(receiver, "one")[-1].path.rpartition("-")[2].partition(".")[0])
    async with running(encoder, receiver.point("one"), session=2):
        await more(receiver, "one")
        assert head("v0") > before
        assert head("v0")[1] > before[1]
    second = [request for request in segments(receiver, "one") if request.session == 2]
    assert int(second[0].path.rpartition("-")[2].partition(".")[0]) > last, "numbers are those of the time of day"
    times = [re.findall(rb"tfdt.{4}(.{8})", request.body, re.DOTALL) for request in segments(receiver, "one")]
    assert [int.from_bytes(time) for each in times for time in each] == sorted(
        int.from_bytes(time) for each in times for time in each
    )


@pytest.mark.parametrize("how", ["hang", "slow", "401", "503", "cut"])
async def test_a_point_that_fails_keeps_nothing_from_the_other(
    encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path, how: str
) -> None:
    receiver.how["one"] = how
    async with running(encoder, *map(receiver.point, POINTS)) as run:
        await more(receiver, "two", count=10)
        assert run.statistics().points[0].connected is False
        if how.isdigit():
            assert how in run.statistics().points[0].last_error
        assert run.statistics().points[1].connected
        assert (run.statistics().points[1].dropped, run.statistics().points[1].reconnects) == (0, 0)
    shown = counters(joined(receiver, "two", tmp_path / "two.mp4"))
    assert shown == list(range(len(shown)))


async def test_a_point_that_was_gone_for_a_moment_misses_nothing(
    encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path
) -> None:
    async with running(encoder, *map(receiver.point, POINTS)) as run:
        await more(receiver, "one")
        receiver.how["one"] = "503"
        await until(lambda: run.statistics().points[0].last_error, seconds=PATIENCE)
        await more(receiver, "two", count=2)
        del receiver.how["one"]
        await more(receiver, "one", count=8)
        assert run.statistics().points[0].dropped == 0
    shown = counters(joined(receiver, "one", tmp_path / "one.mp4"))
    assert shown == list(range(len(shown)))


@pytest.mark.long
async def test_media_that_a_point_missed_are_a_gap_in_its_playlist(encoder: FfmpegEncoder, receiver: Receiver) -> None:
    async with running(encoder, *map(receiver.point, POINTS)) as run:
        await more(receiver, "one")
        receiver.how["one"] = "503"
        await more(receiver, "two", count=round(QUEUED / SEGMENT) + 10)
        assert run.statistics().points[0].dropped > 0
        del receiver.how["one"]
        await more(receiver, "one", count=5)
        assert run.statistics().points[0].reconnects >= 1
    assert receiver.file("/one/v0.m3u8").decode().count("#EXT-X-DISCONTINUITY\n") == 2
    assert receiver.file("/two/v0.m3u8").decode().count("#EXT-X-DISCONTINUITY\n") == 1


async def test_a_stop_is_quick_whatever_the_points_do(encoder: FfmpegEncoder, receiver: Receiver) -> None:
    receiver.how["one"] = "hang"
    run = await encoder.start(ffmpeg_plan(*map(receiver.point, POINTS)), channel="news", session=7, may_send=lambda: True)
    await more(receiver, "two", count=1)
    async with asyncio.timeout(30):
        await run.stop()
    assert children("ffmpeg") == []
    assert receiver.file("/two/v0.m3u8").endswith(b"#EXT-X-ENDLIST\n")


async def test_starts_and_stops_within_a_moment_leave_nothing(encoder: FfmpegEncoder, receiver: Receiver) -> None:
    async def once(session: int) -> None:
        async with running(encoder, receiver.point("one"), session=session):
            pass

    others = set(children("python"))  # of tests before this one
    await asyncio.gather(*map(once, range(4)))
    assert children("ffmpeg") == []
    assert set(children("python")) <= others


async def test_no_secret_reaches_arguments_environment_or_messages(encoder: FfmpegEncoder, receiver: Receiver) -> None:
    url = f"{receiver.point('one')}/{SECRET}"
    async with running(encoder, f"{url}?key={SECRET}", session=7) as run:
        await until(lambda: receiver.has(f"/one/{SECRET}/master.m3u8"), seconds=PATIENCE)
        (pid,) = children("ffmpeg")
        folder = Path(f"/proc/{pid}")
        seen = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        assert b"libx264" in seen
        for hidden in (SECRET.encode(), b"127.0.0.1", b"http", *(f"{name}=".encode() for name in os.environ if "PG" in name)):
            assert hidden not in seen
        assert "?" not in run.statistics().points[0].url
        receiver.how["one"] = "401"
        await until(lambda: run.statistics().points[0].last_error, seconds=PATIENCE)
        assert SECRET not in run.statistics().points[0].last_error
        assert SECRET not in repr(run.statistics().points[0].last_error)


async def test_the_encode_is_confined(encoder: FfmpegEncoder, receiver: Receiver) -> None:
    async with running(encoder, receiver.point("one")):
        await more(receiver, "one", count=1)
        (pid,) = children("ffmpeg")
        status = process_status(pid)
        assert status["NoNewPrivs"] == "1"
        assert os.getpgid(pid) == pid
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + 5
        if os.geteuid() == 0:
            assert status["Uid"].split()[0] != "0"
            assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")


async def test_the_encode_dies_with_its_worker(receiver: Receiver, tmp_path: Path) -> None:
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.workers.encoders.worker", receiver.point("one"), cwd=Path(__file__).parents[3]
    )
    try:
        await more(receiver, "one")
        (pid,) = children("ffmpeg", of=worker.pid)
        worker.send_signal(signal.SIGKILL)
        await worker.wait()
        await until(lambda: not alive(pid), seconds=PATIENCE)
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()


async def test_a_frozen_worker_that_wakes_up_after_its_lease_sends_nothing(receiver: Receiver) -> None:
    """The lease expires while the worker sleeps: `may_send` uses a clock that continues."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.workers.encoders.worker", receiver.point("one"), "3", cwd=Path(__file__).parents[3]
    )
    try:
        await more(receiver, "one", count=1)
        worker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(4)  # the lease runs out in the time of the machine
        before = receiver.received.get(7, 0)
        worker.send_signal(signal.SIGCONT)
        await asyncio.sleep(2)  # nothing may come: there is no event to wait for
        assert receiver.received.get(7, 0) - before <= 128 * 1024
        assert worker.returncode is None
    finally:
        worker.kill()
        await worker.wait()


def process_status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_film_is_sent_and_can_be_repeated(encoder: FfmpegEncoder, receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    sound = ("-f", "lavfi", "-i", "sine=frequency=440:duration=1:sample_rate=44100")
    film(tmp_path / "films/one.mp4", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac", frames=25, inputs=sound)
    source = {"type": "file", "file": "films/one.mp4", "loop": True}
    async with running(encoder, receiver.point("one"), source=source) as run:
        await more(receiver, "one", count=7)
        assert [sound.index for sound in run.audio_inputs() or ()] == [0]
        assert not run.over
    run = await encoder.start(
        ffmpeg_plan(receiver.point("two"), source={**source, "loop": False}), channel="news", session=7, may_send=lambda: True
    )
    async with asyncio.timeout(PATIENCE):
        assert (await run.ended(), run.over) == ("The source has ended.", True)
    await run.stop()


@pytest.mark.parametrize(
    "name",
    ["../secret.mp4", "/etc/passwd", "link.mp4", "linked/film.mp4", ".jobs/film.mp4", "missing.mp4", "", "a\0b", "folder", "fifo"],
)
async def test_a_file_outside_of_the_media_root_is_not_read(encoder: FfmpegEncoder, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / ".jobs").mkdir()
    (tmp_path / ".jobs/film.mp4").write_bytes(b"x")
    (tmp_path / "link.mp4").symlink_to("/etc/passwd")
    (tmp_path / "linked").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    plan = ffmpeg_plan("http://127.0.0.1:9/", source={"type": "file", "file": name})
    with pytest.raises(EncoderFailed, match=r"encoderSpecific\.source\.file: "):
        await encoder.start(plan, channel="news", session=1, may_send=lambda: True)
    assert children("ffmpeg") == []


async def test_a_playlist_in_the_media_root_leads_nowhere(encoder: FfmpegEncoder, tmp_path: Path) -> None:
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n")
    (tmp_path / "list.txt").write_text("ffconcat version 1.0\nfile /etc/passwd\n")
    for name in ("list.m3u8", "list.txt"):
        plan = ffmpeg_plan("http://127.0.0.1:9/", source={"type": "file", "file": name})
        with pytest.raises(EncoderFailed, match="cannot be read") as refusal:
            await encoder.start(plan, channel="news", session=1, may_send=lambda: True)
        assert "passwd" not in str(refusal.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"type": "device", "video": "/dev/video0"}, "does not let encoders read devices"),
        ({"type": "url", "url": "rtmp://h/live"}, "must begin with http"),
        ({"type": "url", "url": "file:///etc/passwd"}, "must begin with http"),
        ({"type": "url", "url": "http://169.254.169.254/latest"}, "not public"),
        ({"type": "url", "url": f"http://user:{SECRET}@example.com/"}, "user name or a password"),
    ],
)
async def test_sources_that_are_not_allowed(encoder: FfmpegEncoder, source: dict[str, str], words: str) -> None:
    plan = ffmpeg_plan("http://127.0.0.1:9/", source=source)
    with pytest.raises(EncoderFailed, match=words) as refusal:
        await encoder.start(plan, channel="news", session=1, may_send=lambda: True)
    assert SECRET not in str(refusal.value)
    assert words in str(await encoder.check(plan))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"video": "/dev/video999"}, "source.video: there is no device /dev/video999 on this machine"),
        ({"video": "/dev/video0/../sda"}, "source.video: must be a device such as"),
        ({"video": "/dev/null"}, "source.video: must be a device such as"),
        ({"audio": "hw:0"}, "source.video: must be a device such as"),
        ({"video": "/dev/video999", "audio": "hw:0 -y /etc/passwd"}, "source.audio: must be a device such as"),
    ],
)
async def test_devices_that_are_none(encoder: FfmpegEncoder, source: dict[str, str], words: str) -> None:
    allowed = replace(encoder, sources=replace(encoder.sources, devices=True))
    plan = ffmpeg_plan("http://127.0.0.1:9/", source={"type": "device", **source})
    with pytest.raises(EncoderFailed, match=words):
        await allowed.start(plan, channel="news", session=1, may_send=lambda: True)
    assert words in str(await allowed.check(plan))
    assert children("ffmpeg") == []
