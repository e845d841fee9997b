"""The workflow `vod_ingest` with sources that change in the middle, begin anywhere, stand still or are damaged: flashes and beeps
are measured on the frames and samples of the film and of its packages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.packages import Results, run
from tests.support.sources import films
from tests.support.sources.films import AAC, AC3, H264, H264_B, HEVC, MP2, MPEG2, OPUS, VP8, Form
from tests.support.sources.measure import apart, box, picture, sound
from tests.support.sources.numbered_frames import probed
from tests.support.step_hosts import Listener
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

FRAME = 0.042
DELAY = 0.06
"""Encoders of AAC begin some milliseconds early, so parts of a source overlap by as much."""
Ingest = Callable[..., Awaitable[tuple[Results | StepFailure, list[str]]]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("uneven") / "media"
    (root / "in").mkdir(parents=True)
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def ingest(hosts: StepProcessPool, root: Path) -> Ingest:
    async def ingested(file: Path, **parameters: Any) -> tuple[Results | StepFailure, list[str]]:
        listener = Listener()
        made = await run(hosts, root, "vod_ingest", content_id=file.stem, file=f"in/{file.name}", listener=listener, **parameters)
        return made, [message for _, message in listener.lines]

    return ingested


def package(root: Path, content: str, made: Results) -> tuple[Path, Path]:
    """Return the largest rendition and the first sound."""
    folder = root / content / "clear"
    return folder / made["renditions"]["videos"][0]["file"], folder / made["renditions"]["audios"][0]["file"]


@pytest.mark.parametrize(
    ("file", "video", "audio", "off"),
    [("ac3.ts", H264, AC3, FRAME), ("mpeg2.ts", MPEG2, AAC, DELAY), ("vp8.webm", VP8, OPUS, FRAME)],
)
async def test_a_source_that_changes_in_the_middle_is_whole_and_in_sync(
    ingest: Ingest, root: Path, file: str, video: tuple[str, ...], audio: tuple[str, ...], off: float
) -> None:
    source = films.changing(root / "in" / file, video=video, audio=audio)
    made, _ = await ingest(source)
    assert not isinstance(made, StepFailure), made
    film = root / source.stem / f"{source.stem}.mp4"
    for shown, heard in ((film, film), package(root, source.stem, made)):
        seen, listened = picture(shown), sound(heard)
        assert len(seen.flashes) == 6, shown
        assert apart(seen.flashes, listened.beeps) < off, shown
        assert seen.sizes == ((320, 180),), shown
        assert listened.silences == (), shown
        assert seen.times[-1] == pytest.approx(11.95, abs=0.1)
    assert box(film, 6.05)[2] == pytest.approx(240, abs=2), "4:3 between bars"


async def test_only_the_track_that_changes_is_encoded_again(ingest: Ingest, root: Path) -> None:
    """The sound of 5.1 channels becomes stereo, as before a break."""
    source = films.changing(root / "in/layout.ts", [Form(channels=6), Form(channels=2)])
    made, lines = await ingest(source)
    assert not isinstance(made, StepFailure), made
    assert made["convert"]["copied"] is True
    assert any("The form of the sound of in/layout.ts changes in the middle" in line for line in lines), lines
    film = root / "layout/layout.mp4"
    listened = sound(film)
    assert apart(picture(film).flashes, listened.beeps) < FRAME
    assert listened.silences == ()
    assert listened.lasts == pytest.approx(8.0, abs=0.1)


async def test_what_stays_as_it_begins_is_copied(ingest: Ingest, root: Path) -> None:
    source = films.film(root / "in/even.ts", Form(seconds=4), audio=AC3)
    made, lines = await ingest(source)
    assert not isinstance(made, StepFailure), made
    assert made["convert"]["copied"] is True
    assert [stream["codec_name"] for stream in probed(root / "even/even.mp4")["streams"]] == ["h264", "ac3"]
    assert not [line for line in lines if "even" in line], lines


@pytest.mark.parametrize(("file", "video", "audio"), [("m2.ts", MPEG2, MP2), ("m4.ts", H264_B, AAC), ("m5.ts", HEVC, AAC)])
async def test_a_recording_that_begins_between_key_frames_is_in_sync(
    ingest: Ingest, root: Path, file: str, video: tuple[str, ...], audio: tuple[str, ...]
) -> None:
    source = films.between_keys(root / "in" / file, video=video, audio=audio)
    made, lines = await ingest(source)
    assert not isinstance(made, StepFailure), made
    film = root / source.stem / f"{source.stem}.mp4"
    for shown, heard in ((film, film), package(root, source.stem, made)):
        seen, listened = picture(shown), sound(heard)
        assert seen.times[0] == pytest.approx(0.0, abs=0.001)
        assert len(seen.flashes) == 3
        beeps = [beep for beep in listened.beeps if beep < seen.times[-1]]
        assert apart(seen.flashes, beeps) < FRAME, shown
    assert any("before the first picture that can be shown" in line for line in lines), lines


@pytest.mark.parametrize("file", ["late.mp4", "late.mkv"])
async def test_a_film_whose_picture_begins_late_is_black_until_then(ingest: Ingest, root: Path, file: str) -> None:
    source = films.late(root / "in" / file, picture=3.0)
    made, lines = await ingest(source)
    assert not isinstance(made, StepFailure), made
    shown, heard = picture(root / "late/late.mp4"), sound(root / "late/late.mp4")
    assert shown.flashes == pytest.approx((4.0, 6.0), abs=FRAME)
    assert heard.beeps == pytest.approx((0.0, 2.0, 4.0, 6.0), abs=FRAME)
    assert (shown.times[0], shown.gap < 1) == (0.0, True)
    assert any("begins 3.0 s after the sound; it is black until then" in line for line in lines), lines


async def test_the_time_of_a_player_is_that_of_the_film(ingest: Ingest, root: Path) -> None:
    """The sound begins 0.4 s before the picture."""
    source = films.sound_first(root / "in/first.mp4", earlier=0.4)
    made, _ = await ingest(source)
    assert not isinstance(made, StepFailure), made
    film = root / "first/first.mp4"
    assert picture(film).flashes == pytest.approx((0.0, 2.0, 4.0, 6.0), abs=0.001)
    assert picture(film).flashes == pytest.approx(picture(package(root, "first", made)[0]).flashes, abs=0.001)
    assert sound(film).beeps == pytest.approx((1.6, 3.6, 5.6), abs=FRAME)
    assert probed(film)["format"]["start_time"] == "0.000000"


async def test_a_subtitle_that_ends_later_is_no_fault(ingest: Ingest, root: Path) -> None:
    made, _ = await ingest(films.late_subtitle(root / "in/subtitle.mkv"))
    assert not isinstance(made, StepFailure), made


@pytest.mark.parametrize("jump", [5000.0, -3000.0])
async def test_a_clock_that_jumps_is_no_fault(ingest: Ingest, root: Path, jump: float) -> None:
    source = films.clock_jump(root / "in/jump.ts", jump=jump)
    made, lines = await ingest(source)
    assert not isinstance(made, StepFailure), made
    film = root / "jump/jump.mp4"
    assert picture(film).flashes == pytest.approx((0.0, 2.0, 4.0, 6.0), abs=0.06)
    assert apart(picture(film).flashes, sound(film).beeps) < 0.06
    assert any("The clock of in/jump.ts jumps by" in line and "at 4.0 s" in line for line in lines), lines


async def test_half_a_file_is_refused_by_the_header_of_each_track(ingest: Ingest, root: Path) -> None:
    whole = films.film(root / "in/whole.mp4", Form(seconds=8), "-movflags", "+faststart").read_bytes()
    (root / "in/half.mp4").write_bytes(whole[: len(whole) // 2])
    films.film(root / "in/matroska.mkv", Form(seconds=8))
    whole = (root / "in/matroska.mkv").read_bytes()
    (root / "in/halved.mkv").write_bytes(whole[: len(whole) // 2])
    for name in ("half.mp4", "halved.mkv"):
        made, _ = await ingest(root / "in" / name)
        assert isinstance(made, StepFailure), name
        assert "it is incomplete" in made.reason, made.reason


async def test_a_damaged_part_is_told_with_its_times(ingest: Ingest, root: Path) -> None:
    source = films.film(root / "in/damaged.mp4", Form(seconds=8), video=(*H264[:4], "-g", "25", "-bf", "0"))
    data = bytearray(source.read_bytes())
    packets = probed(source, "-select_streams", "v", "-show_entries", "packet=pos,size,pts_time")["packets"]
    for packet in packets:
        if 2 <= float(packet["pts_time"]) < 5:
            at, size = int(packet["pos"]), int(packet["size"])
            data[at : at + size] = bytes(size)
    source.write_bytes(data)
    made, lines = await ingest(source)
    assert not isinstance(made, StepFailure), made
    assert any("The picture of the source is damaged from 2.0 s to 5.0 s" in line for line in lines), lines
    shown = picture(package(root, "damaged", made)[0])
    assert shown.gap < 1
    assert shown.times[-1] == pytest.approx(7.96, abs=0.05)


async def test_a_sound_that_ends_early_is_told(ingest: Ingest, root: Path) -> None:
    source = films.film(root / "in/short.mkv", Form(seconds=8), "-af", "atrim=end=5")
    made, lines = await ingest(source)
    assert not isinstance(made, StepFailure), made
    assert any("The sound of in/short.mkv ends at 5.0 s, 3.0 s before the end." in line for line in lines), lines


async def test_a_programme_comes_with_its_own_sound(ingest: Ingest, root: Path) -> None:
    source = films.two_programmes(root / "in/two.ts")
    made, lines = await ingest(source)
    assert not isinstance(made, StepFailure), made
    assert len(made["renditions"]["audios"]) == 1
    film = root / "two/two.mp4"
    assert apart(picture(film).flashes, sound(film).beeps) < FRAME
    assert "in/two.ts has 2 programmes: programme 2 (Flashes) is read, not programme 1 (Tone)." in lines
    made, _ = await ingest(source, programme=1)
    assert not isinstance(made, StepFailure), made
    assert (picture(film).sizes, sound(film).beeps) == (((160, 90),), ())
    made, _ = await ingest(source, programme=7)
    assert isinstance(made, StepFailure)
    assert made.reason == "in/two.ts has no programme 7; there is programme 1 (Tone), programme 2 (Flashes)."


@pytest.mark.parametrize("make", [films.still, films.slides])
async def test_a_picture_that_stands_still_has_segments_like_any_other(
    ingest: Ingest, root: Path, make: Callable[[Path], Path]
) -> None:
    source = make(root / "in/still.mp4")
    made, lines = await ingest(source)
    assert not isinstance(made, StepFailure), made
    shown, _ = package(root, "still", made)
    playlist = shown.with_suffix(".m3u8").read_text().splitlines()
    lengths = [float(line.removeprefix("#EXTINF:").rstrip(",")) for line in playlist if line.startswith("#EXTINF:")]
    assert max(lengths) < 4.4
    assert sum(lengths) == pytest.approx(16.0, abs=0.6)
    packets = probed(shown, "-show_entries", "packet=pts_time,flags")["packets"]
    keys = [float(packet["pts_time"]) for packet in packets if "K" in packet["flags"]]
    assert all(b - a == pytest.approx(2.0, abs=0.1) for a, b in pairwise(keys)), keys
    assert picture(shown).gap < 1
    assert any("it stands still" in line for line in lines), lines
