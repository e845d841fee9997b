"""Pushes from a real origin to real receivers of RTMP: what arrives can be shown, and what breaks says why."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.contract.encoder.ffmpeg_stage import LOCAL, children
from tests.support.live_origin import LiveOrigin, live_origin
from tests.support.rtmp_receiver import RtmpReceiver, Taken, rtmp_receiver
from tests.support.sessions import until
from tests.support.sources.numbered_frames import probed, tool
from tests.workers.encoders.test_continuous_points import command_line, free_port, nginx
from tests.workers.outbound.test_client import certified
from workers.adapters.encoders.flv_tags import LATE
from workers.adapters.encoders.rtmp import AUDIO, VIDEO
from workers.adapters.ffmpeg import find
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.pushes.live_stream import StreamOpener
from workers.adapters.pushes.rtmp_push import RtmpPusher
from workers.adapters.pushes.stream_copy import Copying
from workers.adapters.step_account import program_confinement
from workers.ports.live import LiveIngest
from workers.ports.pushes import Push, PushedSound, PushFailed, PushRecord

PATIENCE = 60
FIRST = PushedSound()
SECRET = "marked-key"


@pytest.fixture(scope="module")
async def origin(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveOrigin]:
    async with live_origin(tmp_path_factory.mktemp("origin")) as made:
        yield made


@pytest.fixture
async def receiver() -> AsyncIterator[RtmpReceiver]:
    async with rtmp_receiver() as made:
        yield made


@dataclass
class Pushed:
    task: asyncio.Task[None]
    record: PushRecord = field(default_factory=PushRecord)
    arrived: list[int] = field(default_factory=list)
    may_send: bool = True

    @property
    def fault(self) -> PushFailed:
        exception = self.task.exception()
        assert isinstance(exception, PushFailed), exception
        return exception

    async def ended(self) -> PushFailed:
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait([self.task])
        return self.fault


@asynccontextmanager
async def pushing(*urls: str, to: str, key: str = "a", sound: PushedSound = FIRST, silent: float = 20.0) -> AsyncIterator[Pushed]:
    client = GuardedClient(LOCAL)
    pusher = RtmpPusher(client, StreamOpener(client, Copying(find("ffmpeg"), program_confinement), silent))
    record = PushRecord()
    made: Pushed

    def arrived() -> None:
        made.arrived.append(1)

    push = Push(urls, sound, LiveIngest(to, key, {}), 7, lambda: made.may_send, arrived)
    task = asyncio.create_task(pusher.push(push, record))
    made = Pushed(task, record)
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()


async def test_a_stream_with_tracks_of_their_own_arrives_as_it_is(origin: LiveOrigin, receiver: RtmpReceiver) -> None:
    async with pushing(origin.cmaf, to=receiver.url, sound=PushedSound((), "de")) as pushed:
        await until(lambda: receiver.media("a") > 150, seconds=PATIENCE)
        assert children("ffmpeg") in ([], [origin.process.pid if origin.process else 0])
        statistics = pushed.record.statistics()
    (taken,) = receiver.taken
    assert (taken.session, taken.application, taken.described["width"], taken.ended) == (7, "live", 128.0, True)
    assert [kind for kind, _, data in taken.tags if data[1] == 0] == [VIDEO, AUDIO], "the configurations come first"
    times = [at for kind, at, data in taken.tags if kind == VIDEO and data[1] == 1]
    assert times == sorted(times)
    assert {later - earlier for earlier, later in itertools.pairwise(times)} <= {39, 40, 41}
    assert taken.media(VIDEO)[0][0] == 0x17, "it begins with a key frame"
    assert statistics["connected"]
    assert statistics["frames"] > 50
    assert statistics["bytes"] > 10_000
    assert statistics["bitrate"] > 10_000
    assert pushed.arrived
    assert any("/de_" in path for path in origin.asked), origin.asked[:5]


async def test_a_stream_of_mpeg_ts_is_taken_apart_and_ffmpeg_reads_it(origin: LiveOrigin, tmp_path: Path) -> None:
    port, target = free_port(), tmp_path / "taken.flv"
    command = (tool("ffmpeg"), "-v", "error", "-listen", "1", "-i", f"rtmp://127.0.0.1:{port}/live/{SECRET}")
    server = await asyncio.create_subprocess_exec(*command, "-c", "copy", str(target))
    before = set(children("ffmpeg"))
    try:  # it takes one connection, so none is made to find out whether it listens
        await until(lambda: f"0100007F:{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text(), seconds=PATIENCE)
        async with pushing(origin.ts, to=f"rtmp://127.0.0.1:{port}/live", key=SECRET, sound=PushedSound(place=1)) as pushed:
            await until(lambda: pushed.record.frames > 60 or pushed.task.done(), seconds=PATIENCE)
            assert not pushed.task.done(), pushed.fault
            (pid,) = set(children("ffmpeg")) - before
            assert SECRET.encode() not in command_line(pid)
            assert str(port).encode() not in command_line(pid)
        async with asyncio.timeout(PATIENCE):
            await server.wait()
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
    kinds = {stream["codec_name"]: stream for stream in probed(target)["streams"]}
    assert sorted(kinds) == ["aac", "h264"]
    assert set(children("ffmpeg")) <= before


async def test_nginx_takes_it_and_takes_it_again_after_its_restart(origin: LiveOrigin, tmp_path: Path) -> None:
    folder, port = tmp_path / "nginx", free_port()
    folder.mkdir()
    for _ in range(2):
        async with nginx(folder, port), pushing(origin.cmaf, to=f"rtmp://127.0.0.1:{port}/live", key="news") as pushed:
            await until(lambda: pushed.record.frames > 30 or pushed.task.done(), seconds=PATIENCE)
            assert not pushed.task.done(), pushed.fault
        (folder / "news.flv").unlink()


async def test_a_receiver_that_refuses_hangs_or_dies_says_so(
    origin: LiveOrigin, receiver: RtmpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.adapters.pushes.rtmp_push.STUCK", 0.5)
    for how, why in (("refuse", "refuses"), ("hang", "accepted no data"), ("cut", "closed")):
        receiver.how = how
        async with pushing(origin.cmaf, to=receiver.url) as pushed:
            fault = await pushed.ended()
            assert (fault.fault, why in str(fault)) == ("target", True), fault
    receiver.how = ""
    async with pushing(origin.cmaf, to=receiver.url) as pushed:
        await until(lambda: pushed.arrived, seconds=PATIENCE)
        receiver.drop()
        assert (await pushed.ended()).fault == "target"


async def test_rtmps_needs_a_certificate_that_can_be_trusted(
    origin: LiveOrigin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rtmp_receiver(tls=certified(tmp_path)) as receiver:
        assert receiver.url.startswith("rtmps://")
        async with pushing(origin.cmaf, to=receiver.url) as pushed:
            fault = await pushed.ended()
            assert (fault.fault, "certificate of the host cannot be trusted" in str(fault)) == ("target", True)
        assert receiver.taken == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "host.pem"))
        async with pushing(origin.cmaf, to=receiver.url) as pushed:
            await until(lambda: receiver.media("a") > 20, seconds=PATIENCE)
        (taken,) = receiver.taken
        assert (taken.session, taken.application, taken.ended) == (7, "live", True)


async def test_what_cannot_be_pushed_to_is_hopeless(origin: LiveOrigin) -> None:
    for url, key in (("srt://127.0.0.1:9", "a"), ("rtmp://127.0.0.1/", "a"), ("rtmp://127.0.0.1/live", ""), ("rtmp://[::1", "a")):
        async with pushing(origin.cmaf, to=url, key=key) as pushed:
            fault = await pushed.ended()
            assert (fault.fault, fault.hopeless) == ("target", True)
    async with pushing(origin.cmaf, to="rtmp://169.254.169.254/live") as pushed:
        fault = await pushed.ended()
        assert (fault.fault, "not public" in str(fault)) == ("target", True)


async def test_a_source_that_is_not_there_or_ends_says_so_and_the_next_address_is_tried(
    origin: LiveOrigin, receiver: RtmpReceiver
) -> None:
    async with pushing(to=receiver.url) as pushed:
        assert "not on the air" in str(await pushed.ended())
    async with pushing(f"{origin.url}/nothing.m3u8", to=receiver.url) as pushed:
        fault = await pushed.ended()
        assert (fault.fault, "404" in str(fault), receiver.taken) == ("source", True, [])
    async with pushing(f"{origin.url}/nothing.m3u8", origin.cmaf, to=receiver.url, silent=1.5) as pushed:
        await until(lambda: pushed.arrived, seconds=PATIENCE)
        origin.gone = True
        try:
            assert (await pushed.ended()).fault == "source"
        finally:
            origin.gone = False


async def test_without_permission_nothing_is_sent_any_more(origin: LiveOrigin, receiver: RtmpReceiver) -> None:
    async with pushing(origin.cmaf, to=receiver.url) as pushed:
        await until(lambda: receiver.media("a") > 10, seconds=PATIENCE)
        pushed.may_send = False
        fault = await pushed.ended()
        count = receiver.media("a")
        assert (fault.fault, receiver.taken[-1].ended) == ("worker", False)
        await asyncio.sleep(0.3)
        assert receiver.media("a") <= count + 5, "what was on the way"


async def test_a_sound_that_stops_keeps_no_picture_back_and_comes_back_in_sync(origin: LiveOrigin, receiver: RtmpReceiver) -> None:
    """A receiver that closes the connection is noticed even if nothing remains to be sent."""
    try:
        async with pushing(origin.cmaf, to=receiver.url, silent=PATIENCE) as pushed:
            await until(lambda: receiver.media("a") > 50 or pushed.task.done(), seconds=PATIENCE)
            origin.freeze("/en.m3u8")
            assert origin.frozen
            (taken,) = receiver.taken
            await until(lambda: times(taken, VIDEO)[-1] - times(taken, AUDIO)[-1] > 3_000 or pushed.task.done(), seconds=PATIENCE)
            silent = times(taken, AUDIO)[-1]
            origin.frozen.clear()
            await until(lambda: times(taken, AUDIO)[-1] > silent + 5_000 or pushed.task.done(), seconds=PATIENCE)
            assert not pushed.task.done(), pushed.fault
            assert [at for _, at, _ in taken.tags] == sorted(at for _, at, _ in taken.tags)
            assert abs(times(taken, AUDIO)[-1] - times(taken, VIDEO)[-1]) < 1_000
            origin.freeze(".m3u8")
            await until(lambda: time.monotonic() - receiver.sent[-1][0] > LATE + 1, seconds=PATIENCE)
            receiver.drop()
            fault = await pushed.ended()
            assert (fault.fault, str(fault)) == ("target", "It closed the connection.")
    finally:
        origin.frozen.clear()


def times(taken: Taken, kind: int) -> list[int]:
    return [at for each, at, data in taken.tags if each == kind and data[1] == 1]
