"""The workflow `vod_capture` with recordings that change: an advertisement of another shape and with other sound, and changes
without any sign, proved by flashes and beeps in the film."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.origin import Body, Origin
from tests.support.sources.films import AAC, AC3, H264_B, MP2, MPEG2, Coding, Form, between_keys, ffmpeg, film
from tests.support.sources.measure import apart, box, picture, sound
from tests.support.sources.numbered_frames import numbers, tool
from tests.workers.job.capturing import Studio, studio
from tests.workers.job.streamed import moment, playlist

__all__ = ["studio"]

PROGRAMME = Form()
ADVERTISEMENT = Form(size=(240, 180), rate="30", sample_rate=44_100, channels=1)
EVEN = [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
DISCONTINUITY = "#EXT-X-DISCONTINUITY"
START, END = "00:00:00", "00:00:12"


def recording(
    folder: Path,
    forms: Sequence[Form],
    *,
    kind: str = "ts",
    follow: bool = False,
    coded: Sequence[tuple[Coding, Coding]] = ((H264_B, AAC),),
) -> dict[str, Body]:
    """Make segments of two seconds from parts of four seconds.

    With `follow`, the time stamps of a part continue those of the part before. `coded` are the codecs of the parts in turns.
    """
    cut = ("-hls_time", "2", "-hls_list_size", "0", *(("-hls_segment_type", "fmp4") if kind == "m4s" else ()))
    for number, form in enumerate(forms):
        begins = ("-output_ts_offset", f"{10 + 4 * number}") if follow else ()
        names = ("-hls_fmp4_init_filename", f"{number}-init.mp4", "-hls_segment_filename", str(folder / f"{number}-%d.{kind}"))
        video, audio = coded[number % len(coded)]
        film(folder / f"{number}.m3u8", form, *cut, *names, *begins, video=video, audio=audio)
    return read(folder)


def read(folder: Path) -> dict[str, Body]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def listed(parts: int, *, tag: str = DISCONTINUITY, kind: str = "ts", date: str = "") -> bytes:
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:2", *([f"#EXT-X-PROGRAM-DATE-TIME:{date}"] if date else [])]
    for number in range(parts):
        lines += [tag] if number and tag else []
        lines += [f'#EXT-X-MAP:URI="{number}-init.mp4"'] if kind == "m4s" else []
        lines += [f"#EXTINF:2.0,\n{number}-{segment}.{kind}" for segment in range(2)]
    return "\n".join([*lines, "#EXT-X-ENDLIST"]).encode()


def whole(made: Path, *, size: tuple[int, int] = (320, 180)) -> None:
    shown, heard = picture(made), sound(made)
    begins = shown.times[0]
    assert shown.sizes == (size,)
    assert [round(time - begins, 2) for time in shown.flashes] == pytest.approx(EVEN, abs=0.05)
    assert apart(shown.flashes, heard.beeps) < 0.05
    assert shown.gap < 0.1
    assert [silence for silence in heard.silences if silence[1] - silence[0] > 0.12] == []
    assert heard.lasts == pytest.approx(12, abs=0.15)


@pytest.mark.parametrize(("kind", "accurate"), [("ts", True), ("m4s", False)])
async def test_an_advertisement_of_another_form_is_in_the_film(studio: Studio, tmp_path: Path, kind: str, accurate: bool) -> None:
    files = recording(tmp_path, [PROGRAMME, ADVERTISEMENT, PROGRAMME], kind=kind)
    async with Origin(files | {"i.m3u8": listed(3, kind=kind)}) as origin:
        made = await studio.captured([f"{origin.url}/i.m3u8"], START, END, frame_accurate=accurate)
    whole(made)
    assert box(made, 6.0) == pytest.approx((40, 0, 240, 180), abs=2)
    assert "picture changes from 320x180 in h264 High yuv420p to 240x180 in h264 High yuv420p at 4 s" in studio.log_text
    assert "sound changes from 2 channels of 48000 Hz in aac LC to 1 channel of 44100 Hz in aac LC at 4 s" in studio.log_text


@pytest.mark.parametrize("accurate", [True, False])
async def test_a_change_without_any_sign_is_found(studio: Studio, tmp_path: Path, accurate: bool) -> None:
    """The time stamps continue, and the playlist has no discontinuity."""
    files = recording(tmp_path, [PROGRAMME, ADVERTISEMENT, PROGRAMME], follow=True)
    async with Origin(files | {"i.m3u8": listed(3, tag="", date="2026-01-01T12:00:00Z")}) as origin:
        times = ("2026-01-01T12:00:00Z", "2026-01-01T12:00:12Z")
        made = await studio.captured([f"{origin.url}/i.m3u8"], *times, frame_accurate=accurate)
    whole(made)
    assert "320x180 in h264 High yuv420p at 2026-01-01T12:00:08" in studio.log_text
    assert "2 channels of 48000 Hz in aac LC to 1 channel of 44100 Hz in aac LC at 2026-01-01T12:00:0" in studio.log_text


@pytest.mark.parametrize(("first", "accurate"), [((H264_B, AAC), True), ((MPEG2, AC3), False)])
async def test_an_advertisement_in_other_codecs_is_in_the_film(
    studio: Studio, tmp_path: Path, first: tuple[Coding, Coding], accurate: bool
) -> None:
    """The first codec is that of most of the film."""
    other = next(pair for pair in ((H264_B, AAC), (MPEG2, AC3)) if pair != first)
    files = recording(tmp_path, [PROGRAMME, Form(size=(240, 180)), PROGRAMME], coded=[first, other])
    async with Origin(files | {"i.m3u8": listed(3)}) as origin:
        made = await studio.captured([f"{origin.url}/i.m3u8"], START, END, frame_accurate=accurate)
    whole(made)


async def test_only_what_changes_is_encoded_again(studio: Studio, tmp_path: Path) -> None:
    files = recording(tmp_path, [PROGRAMME, Form(channels=1), PROGRAMME])
    async with Origin(files | {"i.m3u8": listed(3)}) as origin:
        made = await studio.captured([f"{origin.url}/i.m3u8"], START, END)
    whole(made)
    assert "The sound is encoded again" in studio.log_text
    assert "picture" not in studio.log_text
    assert hashes(made)[:20] == hashes(tmp_path / "0-0.ts")[:20]


def hashes(path: Path) -> list[str]:
    """List the hashes of the decoded pictures."""
    command = [tool("ffmpeg"), "-v", "error", "-i", str(path), "-map", "0:v", "-fps_mode", "passthrough", "-f", "framemd5", "-"]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return [line.rpartition(",")[2] for line in output.splitlines() if not line.startswith("#")]


async def test_the_time_stamps_of_a_recording_that_changes_can_be_kept(studio: Studio, tmp_path: Path) -> None:
    files = recording(tmp_path, [PROGRAMME, ADVERTISEMENT, PROGRAMME])
    async with Origin(files | {"i.m3u8": listed(3)}) as origin:
        made = await studio.captured([f"{origin.url}/i.m3u8"], START, END, copy_ts=True)
    whole(made)
    assert picture(made).times[0] == pytest.approx(1.48, abs=0.05), "as ffmpeg begins a transport stream"


@pytest.mark.parametrize("accurate", [True, False])
async def test_a_recording_that_begins_between_key_frames_begins_with_the_first(
    studio: Studio, tmp_path: Path, accurate: bool
) -> None:
    """The first segment has no key frame."""
    between_keys(tmp_path / "film.ts", video=H264_B, audio=AAC, begins=4.1, seconds=14)
    cut = ("-c", "copy", "-copyinkf", "-f", "segment", "-segment_time", "1", "-break_non_keyframes", "1", "-copyts")
    ffmpeg("-i", str(tmp_path / "film.ts"), *cut, str(tmp_path / "s%d.ts"))
    (tmp_path / "film.ts").unlink()
    files = read(tmp_path)
    lines = [
        "#EXTM3U",
        "#EXT-X-TARGETDURATION:2",
        *(f"#EXTINF:1.0,\ns{number}.ts" for number in range(len(files))),
        "#EXT-X-ENDLIST",
    ]
    async with Origin(files | {"i.m3u8": "\n".join(lines).encode()}) as origin:
        made = await studio.captured([f"{origin.url}/i.m3u8"], START, "00:01:00", frame_accurate=accurate)
    shown, heard = picture(made), sound(made)
    assert len(shown.flashes) == 4
    assert apart(shown.flashes, heard.beeps) < 0.05
    assert heard.lasts == pytest.approx(8, abs=0.2)
    assert re.search(r"The film begins at 1\.\d+ s, with the first key frame", studio.log_text)


async def test_sound_that_ends_early_and_a_hole_are_told_with_times(studio: Studio, tmp_path: Path) -> None:
    holed = ("-af", "aselect='not(between(t,3,5))*lt(t,9)'")
    cut = ("-hls_time", "2", "-hls_list_size", "0", "-hls_segment_filename", str(tmp_path / "0-%d.ts"))
    film(tmp_path / "0.m3u8", Form(seconds=12), *cut, *holed, video=H264_B, audio=MP2)
    async with Origin(read(tmp_path)) as origin:
        made = await studio.captured([f"{origin.url}/0.m3u8"], START, END)
    assert picture(made).flashes == pytest.approx(EVEN, abs=0.05)
    assert re.search(r"The sound is missing from 2\.9\d+ s to 5\.0\d+ s\.", studio.log_text), studio.log_text
    assert re.search(r"The sound is missing from 8\.9\d+ s to 12(\.0\d*)? s\.", studio.log_text), studio.log_text
    assert studio.log_text.count("missing") == 2


async def test_a_clock_that_is_set_back_an_hour_leaves_nothing_out(studio: Studio) -> None:
    """The dates of an encoder do that at the end of daylight saving time."""
    dates = {4: f"#EXT-X-PROGRAM-DATE-TIME:{moment(4 - 3600)}", 0: f"#EXT-X-PROGRAM-DATE-TIME:{moment(0)}"}
    async with Origin(studio.files("ts") | {"ts/i.m3u8": playlist(range(8), began=None, tags=dates)}) as origin:
        made = await studio.captured([f"{origin.url}/ts/i.m3u8"], moment(1), moment(7), frame_accurate=True)
    assert numbers(made) == list(range(25, 175))
    assert "The clock of source 1 jumps by -3600 s at 2026-01-01T12:00:04.000Z" in studio.log_text


PERIOD = """<Period id="{number}" start="PT{start}S" duration="PT4S">
<AdaptationSet mimeType="video/mp4"><Representation id="v" bandwidth="9" width="{width}" height="180">
<SegmentTemplate timescale="1" duration="2" startNumber="1" initialization="{number}-i0.m4s" media="{number}-s0-$Number$.m4s"/>
</Representation></AdaptationSet>
<AdaptationSet mimeType="audio/mp4"><Representation id="a" bandwidth="5">
<SegmentTemplate timescale="1" duration="2" startNumber="1" initialization="{number}-i1.m4s" media="{number}-s1-$Number$.m4s"/>
</Representation></AdaptationSet></Period>"""


@pytest.mark.parametrize("accurate", [True, False])
async def test_periods_of_another_form_are_in_the_film(studio: Studio, tmp_path: Path, accurate: bool) -> None:
    """The periods are those of a DASH manifest, whose sound is in segments of its own."""
    for number, form in enumerate((PROGRAMME, ADVERTISEMENT, PROGRAMME)):
        names = (
            "-init_seg_name",
            f"{number}-i$RepresentationID$.m4s",
            "-media_seg_name",
            f"{number}-s$RepresentationID$-$Number$.m4s",
        )
        film(tmp_path / f"{number}.mpd", form, "-seg_duration", "2", "-use_timeline", "0", *names, video=H264_B, audio=AAC)
    periods = "".join(PERIOD.format(number=n, start=4 * n, width=240 if n == 1 else 320) for n in range(3))
    mpd = f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT12S">{periods}</MPD>'
    async with Origin(read(tmp_path) | {"i.mpd": mpd.encode()}) as origin:
        made = await studio.captured([f"{origin.url}/i.mpd"], START, END, frame_accurate=accurate)
    whole(made)
    assert "The picture is encoded again" in studio.log_text
    assert "The sound is encoded again" in studio.log_text
