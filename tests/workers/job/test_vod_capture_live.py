"""The workflow `vod_capture` with streams that are live, from origins that fail in each way."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from domain.kernel.clock import system_clock
from tests.projections.log.helpers import until
from tests.support.origin import Origin
from tests.support.sources.numbered_frames import numbers
from tests.workers.job.capturing import Studio, studio
from tests.workers.job.streamed import BEGAN, moment, playlist
from workers.adapters.outbound_http import GuardedClient
from workers.job.context import StepFailed
from workers.job.media_paths import MediaPaths
from workers.job.protocol import Finished, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.job.workflows.capture.downloads import Downloads
from workers.job.workflows.capture.segments import MediaResource, SourceFault
from workers.kernel.fork_client import ForkServer
from workers.ports.outbound import DownloadLimits

__all__ = ["studio"]

PLAYLIST = "ts/i.m3u8"
TARGET = 0.3
"""Seconds from one playlist to the next: no test waits for the segments to be played."""


@dataclass
class Live:
    """A playlist whose window of four segments moves by one with each request. Segments that left it disappear one window later."""

    origin: Origin
    began: datetime = BEGAN
    at: int = 0
    last: int = 8
    absent: int = -1
    frozen: int = 99

    def __call__(self) -> bytes:
        self.at += 1
        end = min(self.at + 3, self.last, self.frozen)
        begin = max(end - 4, 0)
        self.origin.files.pop(f"ts/s{begin - 5}.ts", None)
        tags = {self.absent: "#EXT-X-GAP"}
        return playlist(range(begin, end), ended=False, began=self.began, target=TARGET, tags=tags)


async def test_a_live_stream_is_followed_until_an_end_that_lies_ahead(studio: Studio) -> None:
    began = system_clock() + timedelta(hours=1)
    async with Origin(studio.files("ts")) as origin:
        origin.files["ts/i.m3u8"] = Live(origin, began)
        start, end = (began + timedelta(seconds=seconds) for seconds in (1, 6.6))
        url = f"{origin.url}/ts/i.m3u8"
        made = await studio.captured([url], start.isoformat(), end.isoformat(), frame_accurate=True)
    assert numbers(made) == list(range(25, 165))
    assert studio.gaps == []
    assert max(origin.times(f"ts/s{number}.ts") for number in range(8)) == 1


async def test_an_origin_that_stops_is_replaced_by_the_other(studio: Studio) -> None:
    """The first origin stalls and never comes back; the second one lacks a segment that the first one had."""
    async with Origin(studio.files("ts")) as first, Origin(studio.files("ts")) as second:
        first.files["ts/i.m3u8"] = Live(first, frozen=5)
        second.files["ts/i.m3u8"] = Live(second, absent=3)
        urls = [f"{origin.url}/ts/i.m3u8" for origin in (first, second)]
        made = await studio.captured(urls, moment(1), moment(7), frame_accurate=True)
    assert numbers(made) == list(range(25, 175))
    assert [(gap["from"][-6:], gap["filledBy"]) for gap in studio.gaps] == [("5.000Z", 2)]


async def test_an_encoder_that_begins_to_count_again_goes_on(studio: Studio) -> None:
    bodies = [
        playlist([0, 1, 2], sequence=40, ended=False, target=TARGET),
        playlist([1, 2, 3], sequence=41, ended=False, target=TARGET),
        playlist([0, 1, 2], sequence=40, ended=False, target=TARGET),  # a cache gives out an old one
        playlist([4, 5], sequence=0, ended=False, target=TARGET),
        playlist([4, 5, 6], sequence=0, ended=True, target=TARGET),
    ]
    async with Origin(studio.files("ts")) as origin:
        origin.files["ts/i.m3u8"] = lambda: bodies.pop(0) if len(bodies) > 1 else bodies[0]
        made = await studio.captured([f"{origin.url}/ts/i.m3u8"], moment(0), moment(6), frame_accurate=True)
    assert numbers(made) == list(range(150))
    assert studio.gaps == []


async def test_a_playlist_that_never_changes_ends_the_capture_with_a_gap(studio: Studio) -> None:
    async with Origin(studio.files("ts") | {"ts/i.m3u8": playlist(range(3), ended=False, target=TARGET)}) as origin:
        made = await studio.captured([f"{origin.url}/ts/i.m3u8"], moment(1), moment(5), frame_accurate=True)
    assert numbers(made) == list(range(25, 75))
    assert [gap["filledBy"] for gap in studio.gaps] == [None]


async def test_a_third_run_has_the_initialization_section_of_the_first_one(studio: Studio) -> None:
    listed = {"fmp4/i.m3u8": playlist(range(8), extension="m4s", init="init.mp4")}
    async with Origin(studio.files("fmp4") | listed) as origin:
        url = f"{origin.url}/fmp4/i.m3u8"
        assert isinstance(await studio.ended([url], moment(1), moment(4)), Finished)
        origin.files = dict(listed)
        assert isinstance(await studio.ended([url], moment(1), moment(4), run=2, previous_run=1), Finished)
        made = await studio.captured([url], moment(1), moment(4), run=3, previous_run=2, frame_accurate=True)
    assert numbers(made) == list(range(25, 100))
    assert studio.gaps == []


def master(variant: str) -> bytes:
    return f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=128x96\n{variant}.m3u8\n".encode()


@pytest.mark.parametrize(
    ("how", "anew", "clocked"),
    [
        ("fails", False, True),
        ("fails", True, False),
        ("stands still", True, True),
        ("stands still", False, False),
        ("ends", True, True),
    ],
)
async def test_the_master_playlist_is_asked_again(studio: Studio, how: str, anew: bool, clocked: bool) -> None:
    """The rendition has another address, or the encoder has begun to count again."""
    began = BEGAN if clocked else None
    span = (moment(0), moment(6)) if clocked else ("00:00:00", "00:00:06")
    async with Origin(studio.files("ts") | {"ts/master.m3u8": master("one")}) as origin:

        def first_playlist() -> bytes:
            origin.files["ts/master.m3u8"] = master("two")
            if how == "fails":
                origin.statuses["ts/one.m3u8"] = 404
            return playlist(range(3), ended=how == "ends", began=began, target=TARGET)

        origin.files["ts/one.m3u8"] = first_playlist
        following = range(3, 8) if anew else range(1, 8)
        origin.files["ts/two.m3u8"] = playlist(following, sequence=following[0] * (not anew), began=began, target=TARGET)
        made = await studio.captured([f"{origin.url}/ts/master.m3u8"], *span, frame_accurate=True)
    assert numbers(made) == list(range(150))
    assert studio.gaps == []


async def test_a_later_run_goes_on_with_the_segments_that_it_has(studio: Studio) -> None:
    """The segments of the first run are no longer at the origin, nor in the playlist."""
    async with Origin(studio.files("ts") | {"ts/i.m3u8": playlist(range(8))}) as origin:
        url = f"{origin.url}/ts/i.m3u8"
        origin.statuses = {f"ts/s{number}.ts": 503 for number in (1, 3, 4)}
        assert isinstance(await studio.ended([url], moment(1), moment(4)), Finished)
        origin.statuses = {}
        origin.files = {**studio.files("ts"), "ts/i.m3u8": playlist(range(3, 8))}
        del origin.files["ts/s2.ts"]
        again = await studio.captured([url], moment(2), moment(4), run=2, previous_run=1, frame_accurate=True)
    assert numbers(again) == list(range(50, 100))
    assert "Continuing with 1 segments" in studio.log_text


async def test_a_run_that_is_interrupted_leaves_its_segments_to_the_next_one(studio: Studio, step_server: ForkServer) -> None:
    """The segments have left the origin meanwhile."""
    hosts = StepProcessPool(media_root=studio.root, allow=[ip_network("127.0.0.1/32")], fork_server=step_server)
    await hosts.start()
    interrupted = Studio(hosts, studio.root, studio.streamed)
    async with Origin(studio.files("ts") | {PLAYLIST: playlist(range(4), ended=False, target=TARGET)}) as origin:
        url, end = f"{origin.url}/{PLAYLIST}", (system_clock() + timedelta(hours=1)).isoformat()
        running = asyncio.create_task(interrupted.ended([url], moment(1), end))
        index = MediaPaths(studio.root, 17).workspace(2, 1) / "segments.jsonl"
        await until(lambda: index.exists() and index.read_text().count("\n") == 3)
        hosts.drain()
        assert await running == StepFailure("The step was asked to end.", interrupted=True)
        await hosts.stop()
        origin.files = {path: body for path, body in origin.files.items() if path in ("ts/s4.ts", "ts/s5.ts")}
        origin.files[PLAYLIST] = playlist([4, 5])
        made = await studio.captured([url], moment(1), moment(6), run=2, previous_run=1, frame_accurate=True)
    assert numbers(made) == list(range(25, 150))
    assert studio.gaps == []


@pytest.fixture
async def downloads(tmp_path: Path) -> AsyncIterator[Downloads]:
    client = GuardedClient([ip_network("127.0.0.1/32")])
    yield Downloads(client, tmp_path, limits=DownloadLimits(size=5000, free=0), silence=0.2)
    await client.close()


async def test_a_segment_that_stalls_or_is_cut_off_is_given_up(downloads: Downloads, tmp_path: Path) -> None:
    async with Origin({"stalls": bytes(200), "cut": bytes(200)}, stalls={"stalls"}, cut={"cut": 100}) as origin:
        for path, reason in (("stalls", r"No data came for 0\.2 s"), ("cut", "closed the connection")):
            with pytest.raises(SourceFault, match=reason):
                await downloads.file(MediaResource(f"{origin.url}/{path}"), tmp_path / path)


async def test_all_segments_together_have_a_limit(downloads: Downloads, tmp_path: Path) -> None:
    async with Origin({"a": bytes(2000)}) as origin:
        for _ in range(2):
            await downloads.file(MediaResource(f"{origin.url}/a"), tmp_path / "a")
        with pytest.raises(StepFailed, match="The capture has more than 5000 bytes, which is the limit"):
            await downloads.file(MediaResource(f"{origin.url}/a"), tmp_path / "a")


def _inside(origin: Origin) -> None:
    origin.moved["ts/i.m3u8"] = "http://169.254.169.254/latest"


def _bomb(origin: Origin) -> None:
    origin.headers["Content-Encoding"] = "gzip"
    origin.files["ts/i.m3u8"] = gzip.compress(bytes(20_000_000))


def _becomes(path: str, body: bytes) -> Callable[[Origin], Any]:
    return lambda origin: origin.files.__setitem__(path, body)


LONG = b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n" + b"#EXTINF:1,\na\n" * 1_000_000
ENCRYPTED = playlist(range(8), tags={0: '#EXT-X-KEY:METHOD=AES-128,URI="key"'})
PAGE = b"<html><body>No such page</body></html>" * 100
ENTITY = b'<!DOCTYPE MPD [<!ENTITY a "aaaa">]><MPD>&a;</MPD>'


@pytest.mark.parametrize(
    ("break_it", "reason", "final"),
    [
        (_inside, "The address is not public and not in an allowed network.", True),
        (_bomb, "The host sends compressed data, although it was asked not to.", True),
        (_becomes(PLAYLIST, ENTITY), "The MPD has a document type, which is refused.", True),
        (_becomes(PLAYLIST, LONG), "The file has more than 8388608 bytes.", True),
        (_becomes(PLAYLIST, LONG[:2_000_000]), "The playlist cannot be read: it has more than 100000 entries.", True),
        (_becomes(PLAYLIST, PAGE[1:]), "The playlist cannot be read: it does not begin with #EXTM3U.", True),
        (_becomes(PLAYLIST, PAGE), "The MPD is not XML that can be read.", True),
        (_becomes(PLAYLIST, ENCRYPTED), "The segments are encrypted (EXT-X-KEY); only a clear stream is captured.", True),
        (_becomes(PLAYLIST, playlist(range(8), began=None)), "It does not tell the time of day", True),
        (_becomes("ts/s2.ts", PAGE), "segment 2: the segment is neither MPEG-TS nor fragmented MP4", False),
        (_becomes("ts/s2.ts", b""), "segment 2: the segment is empty or incomplete", False),
        (_becomes(PLAYLIST, playlist(range(8), began=BEGAN + timedelta(days=1))), "it has no segment of this time.", True),
    ],
    ids=lambda origin: origin[:30] if isinstance(origin, str) else "",
)
async def test_a_bad_origin_fails_with_a_sentence_and_another_one_replaces_it(
    studio: Studio, break_it: Callable[[Origin], Any], reason: str, final: bool
) -> None:
    files = studio.files("ts") | {PLAYLIST: playlist(range(8))}
    async with Origin(dict(files)) as bad, Origin(files) as good:
        break_it(bad)
        ended = await studio.ended([f"{bad.url}/ts/i.m3u8"], moment(2), moment(3))
        assert isinstance(ended, StepFailure)
        assert ended.reason.startswith("Nothing could be captured. Source 1: ")
        assert reason in ended.reason
        assert ended.final == final
        urls = [f"{origin.url}/ts/i.m3u8" for origin in (bad, good)]
        made = await studio.captured(urls, moment(2), moment(3), frame_accurate=True)
    assert numbers(made) == list(range(50, 75))


async def test_an_origin_that_is_gone_is_asked_again_in_another_run(studio: Studio) -> None:
    async with Origin() as origin:
        ended = await studio.ended([f"{origin.url}/ts/i.m3u8"], moment(2), moment(3))
    assert ended == StepFailure("Nothing could be captured. Source 1: The host answered 404.")


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (None, None, "sources, start and end are required."),
        (moment(3), moment(3), "The end of the capture is not after its start."),
        (moment(3), "00:00:04", "start and end must both be date-times, or both be times from the start of the stream."),
        (moment(3), "2099-01-01T00:00:00Z", "The end of the capture is more than a day ahead."),
    ],
)
async def test_wrong_times_are_final(studio: Studio, start: str | None, end: str | None, reason: str) -> None:
    assert await studio.ended(["http://127.0.0.1:9/i.m3u8"], start, end) == StepFailure(reason, final=True)
