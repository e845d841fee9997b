"""Subtitles of streams that `vod_capture` records too, at the times of the pictures, in every container."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from domain.kernel.clock import system_clock
from tests.support.origin import Body, Origin
from tests.support.sources.numbered_frames import numbers, probed, tool
from tests.workers.job.capturing import Studio, studio
from tests.workers.job.streamed import WRAPS, moment, playlist
from workers.media.captions.reading import read

__all__ = ["studio"]

EVERY: Final = [(number, f"second {number}") for number in range(8)]
"""A cue in each second of the film, from its first to its ninth tenth."""
MASTER: Final = (
    '#EXTM3U\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",LANGUAGE="eng",NAME="English",URI="text/en.m3u8",'
    'CHARACTERISTICS="public.accessibility.transcribes-spoken-dialog"\n'
    '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",LANGUAGE="fr",NAME="Gone",URI="text/gone.m3u8"\n'
    '#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=128x96,SUBTITLES="s"\n'
)


def stamp(seconds: float) -> str:
    return f"00:00:{seconds:06.3f}"


def segment(number: int, *, local: float = 0.0, mpegts: float | None = None) -> bytes:
    """Return a segment with the cue of this second and that of the one before, which a player must take for the same cue."""
    shown = [cue for cue in EVERY if cue[0] in (number - 1, number)]
    cues = [f"{stamp(local + at + 0.1)} --> {stamp(local + at + 0.9)}\n{text}\n" for at, text in shown]
    mapped = "" if mpegts is None else f"X-TIMESTAMP-MAP=LOCAL:{stamp(local)},MPEGTS:{round(mpegts * 90_000)}\n"
    return "\n".join([f"WEBVTT\n{mapped}", *cues]).encode()


def texts(*, local: float = 0.0, mpegts: float | None = None, numbers: Sequence[int] = range(8)) -> dict[str, Body]:
    return {f"text/s{number}.vtt": segment(number, local=local, mpegts=mpegts) for number in numbers}


def first(path: bytes, folder: Path) -> float:
    """Return the time stamp of the first picture of a segment."""
    file = folder / "first.ts"
    file.write_bytes(path)
    packets = probed(file, "-select_streams", "v:0", "-show_entries", "packet=pts_time")["packets"]
    return min(float(packet["pts_time"]) for packet in packets)


def cues(studio: Studio, name: str = "English") -> list[tuple[float, float, str]]:
    return [(cue.begin / 1000, cue.end / 1000, cue.text) for cue in read(studio.texts[name].read_bytes()).cues]


def expected(begin: float, end: float) -> list[Any]:
    """List the texts that are shown between two times, as they are after a cut."""
    shown = [(max(at + 0.1, begin) - begin, min(at + 0.9, end) - begin, text) for at, text in EVERY]
    return [(pytest.approx(at, abs=0.003), pytest.approx(until, abs=0.003), text) for at, until, text in shown if at < until]


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("accurate", [True, False])
async def test_hls_texts_are_moved_with_the_pictures(studio: Studio, tmp_path: Path, mapped: bool, accurate: bool) -> None:
    """Some texts do not state their place on the time line of the media."""
    files = studio.files("ts") | {"ts/i.m3u8": playlist(range(8)), "text/en.m3u8": playlist(range(8), extension="vtt")}
    files |= texts(local=10.0, mpegts=first(files["ts/s0.ts"], tmp_path)) if mapped else texts()
    files["master.m3u8"] = f"{MASTER}ts/i.m3u8\n".encode()
    async with Origin(files) as origin:
        made = await studio.captured([f"{origin.url}/master.m3u8"], moment(2.4), moment(5.2), frame_accurate=accurate)
    begin = numbers(made)[0] / 25
    assert cues(studio) == expected(begin, 5.2)
    assert [(text["language"], text["kind"]) for text in studio.made["texts"]] == [("en", "captions")]
    assert "The subtitles Gone of the stream are not followed" in studio.log_text


async def test_time_stamps_that_wrap_and_gaps_move_texts_too(studio: Studio, tmp_path: Path) -> None:
    """No source has the fourth second, so what follows is a second earlier."""
    files: dict[str, Body] = studio.files("wrapped") | {"wrapped/i.m3u8": playlist(range(8), tags={3: "#EXT-X-GAP"})}
    files |= texts(mpegts=first(studio.files("wrapped")["wrapped/s0.ts"], tmp_path) % WRAPS)
    files |= {"text/en.m3u8": playlist(range(8), extension="vtt"), "master.m3u8": f"{MASTER}wrapped/i.m3u8\n".encode()}
    async with Origin(files) as origin:
        await studio.captured([f"{origin.url}/master.m3u8"], moment(1), moment(7), frame_accurate=True)
    begins = {int(text[-1]): at for at, _, text in cues(studio)}
    assert begins == {at: pytest.approx(at - 0.9 - (at > 3), abs=0.003) for at in (1, 2, 4, 5, 6)}


async def test_a_live_stream_has_its_texts_followed(studio: Studio, tmp_path: Path) -> None:
    """The window moves by a segment with each request for the playlist; segments that left it are gone."""
    files: dict[str, Body] = studio.files("ts") | texts(mpegts=first(studio.files("ts")["ts/s0.ts"], tmp_path))
    began = system_clock()
    asked = {"ts": 0, "text": 0}

    def window(kind: str, extension: str) -> bytes:
        asked[kind] += 1
        end = min(asked[kind] + 3, 8)
        files.pop(f"text/s{end - 6}.vtt", None)
        return playlist(range(max(end - 4, 0), end), ended=False, began=began, target=0.3, extension=extension)

    files |= {"ts/i.m3u8": lambda: window("ts", "ts"), "text/en.m3u8": lambda: window("text", "vtt")}
    files["master.m3u8"] = f"{MASTER}ts/i.m3u8\n".encode()
    ends = [(began + timedelta(seconds=at)).isoformat(timespec="milliseconds") for at in (1.0, 5.0)]
    async with Origin(files) as origin:
        await studio.captured([f"{origin.url}/master.m3u8"], *ends, frame_accurate=True)
    assert cues(studio)[:3] == expected(1, 5)[:3]


@pytest.mark.parametrize("form", ["file", "wvtt", "stpp"])
async def test_texts_of_dash_are_taken_along(studio: Studio, tmp_path: Path, form: str) -> None:
    """The texts are a whole file, or segments of MP4 with WebVTT or TTML."""
    files: dict[str, Body] = studio.files("dash")
    mpd = studio.streamed.files("dash")["dash/i.mpd"].decode()
    whole = texts_of_second(range(8))
    if form == "file":
        text = '<AdaptationSet contentType="text" mimeType="text/vtt" lang="en"><Label>English</Label>'
        text += '<Role schemeIdUri="urn:mpeg:dash:role:2011" value="caption"/>'
        text += '<Representation id="t" bandwidth="1"><BaseURL>en.vtt</BaseURL></Representation></AdaptationSet>'
        files["dash/en.vtt"] = whole
    else:
        files |= segmented(tmp_path, whole, form)
        text = '<AdaptationSet contentType="text" mimeType="application/mp4" lang="en"><Label>English</Label>'
        text += '<Role value="caption" schemeIdUri="urn:mpeg:dash:role:2011"/>'
        text += f'<Representation id="t" bandwidth="1" codecs="{form}"><SegmentList timescale="1" duration="4">'
        text += '<Initialization sourceURL="text-i.mp4"/><SegmentURL media="text-1.m4s"/><SegmentURL media="text-2.m4s"/>'
        text += "</SegmentList></Representation></AdaptationSet>"
    files["dash/i.mpd"] = mpd.replace("</Period>", f"{text}</Period>", 1).encode()
    async with Origin(files) as origin:
        await studio.captured([f"{origin.url}/dash/i.mpd"], "00:00:02.400", "00:00:05.200", frame_accurate=True)
    assert "English" in studio.texts, studio.log_text
    assert cues(studio) == expected(2.4, 5.2)
    assert [(text["language"], text["kind"]) for text in studio.made["texts"]] == [("en", "captions")]


def texts_of_second(numbers: Sequence[int]) -> bytes:
    shown = "\n".join(f"{stamp(at + 0.1)} --> {stamp(at + 0.9)}\n{text}\n" for at, text in EVERY if at in numbers)
    return f"WEBVTT\n\n{shown}".encode()


def segmented(folder: Path, whole: bytes, form: str) -> dict[str, Body]:
    """Make segments: of WebVTT with Shaka Packager, of TTML with ffmpeg."""
    (folder / "en.vtt").write_bytes(whole)
    if form == "wvtt":
        text = "in=en.vtt,stream=text,init_segment=text-i.mp4,segment_template=text-$Number$.m4s"
        subprocess.run([tool("packager"), text, "--segment_duration", "4", "--quiet"], cwd=folder, check=True)
    else:
        fragmented = ("-c:s", "ttml", "-movflags", "+frag_keyframe+empty_moov+default_base_moof", "text.mp4")
        begun = whole.replace(b"\n\n", b"\n\n00:00.000 --> 00:00.050\nffmpeg begins with its first cue\n\n", 1)
        (folder / "en.vtt").write_bytes(begun)
        subprocess.run([tool("ffmpeg"), "-v", "error", "-i", "en.vtt", *fragmented], cwd=folder, check=True)
        made = (folder / "text.mp4").read_bytes()
        begins = made.index(b"moof") - 4
        (folder / "text-i.mp4").write_bytes(made[:begins])
        (folder / "text-1.m4s").write_bytes(made[begins:])
    return {f"dash/{file.name}": file.read_bytes() for file in folder.glob("text-*")}
