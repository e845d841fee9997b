"""Filters that work with changing sources, checked on the output of ffmpeg."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.sources.films import AAC, AC3, CHANGES, H264, MPEG2, OPUS, VP8, Form, changing, film, late, slides, still
from tests.support.sources.measure import Picture, Sound, apart, box, picture, sound
from tests.support.sources.numbered_frames import probed, tool
from workers.media.filters import (
    PICTURE_TIMES,
    SOUND_LINE,
    FilteredTrack,
    FormedTracks,
    Stay,
    fitted,
    key_frames,
    sound_form,
    steady,
)

EVEN = (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
FRAME = 0.042
"""The longest frame of the changing film."""


def made(source: Path, *, stay: Stay | None = None) -> Path:
    """Encode both tracks of the source."""
    formed = FormedTracks(
        (FilteredTrack("0:v:0", fitted(320, 180), is_picture=True), FilteredTrack("0:a:0", sound_form(2), is_picture=False)),
    )
    graph = f"{steady(formed.label(0), 'shown', stay=stay)};[{formed.label(1)}]{SOUND_LINE}[heard]"
    output = source.with_name("made.mp4")
    coded = ("-c:v", "libx264", "-preset", "fast", *key_frames(), *PICTURE_TIMES, "-c:a", "aac")
    arguments = ("-i", str(source), *formed.options(), "-filter_complex", graph, "-map", "[shown]", "-map", "[heard]", *coded)
    command = [tool("ffmpeg"), "-v", "error", "-nostdin", "-y", *arguments, str(output)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return output


def measured(file: Path) -> tuple[Picture, Sound]:
    return picture(file), sound(file)


def key_times(file: Path) -> list[float]:
    packets = probed(file, "-select_streams", "v:0", "-show_entries", "packet=pts_time,flags")["packets"]
    return [float(packet["pts_time"]) for packet in packets if "K" in packet["flags"]]


@pytest.mark.parametrize(
    ("name", "video", "audio"), [("a.ts", H264, AC3), ("b.ts", MPEG2, AAC), ("c.webm", VP8, OPUS)], ids=["AC-3", "MPEG-2", "WebM"]
)
def test_a_source_that_changes_everything_stays_whole_and_in_sync(
    tmp_path: Path, name: str, video: tuple[str, ...], audio: tuple[str, ...]
) -> None:
    source = changing(tmp_path / name, video=video, audio=audio)
    shown, heard = measured(made(source))
    assert shown.flashes == pytest.approx(EVEN, abs=FRAME)
    assert apart(shown.flashes, heard.beeps) < 0.06, "an encoder's delay makes the parts of the source overlap"
    assert shown.sizes == ((320, 180),)
    assert len(shown.times) >= len(picture(source).times) - len(CHANGES)
    assert heard.silences == ()
    assert heard.lasts == pytest.approx(12.0, abs=0.05)


def test_a_picture_of_another_shape_is_fitted_between_bars(tmp_path: Path) -> None:
    output = made(changing(tmp_path / "film.ts"))
    assert box(output, 2.05) == (0, 0, 320, 180)
    left, top, width, height = box(output, 6.05)
    assert (left, top, width, height) == pytest.approx((40, 0, 240, 180), abs=2), "4:3 between bars"
    assert box(output, 10.05) == (0, 0, 320, 180), "16:9 of half the size"


def test_pixels_that_are_not_square_are_fitted_by_their_shape(tmp_path: Path) -> None:
    """A picture of 240x180 with pixels of 4:3 is 16:9."""
    output = made(film(tmp_path / "film.ts", Form(size=(240, 180), sar="4/3")))
    assert box(output, 2.05) == (0, 0, 320, 180)


def test_a_picture_that_stands_still_is_repeated_and_has_its_key_frames(tmp_path: Path) -> None:
    output = made(still(tmp_path / "film.mp4"))
    shown, heard = measured(output)
    assert shown.gap < 1
    assert apart(shown.flashes, [beep for beep in heard.beeps if not 3 < beep < 13]) < FRAME
    keys = key_times(output)
    assert [round(b - a, 1) for a, b in pairwise(keys)] == pytest.approx([2.0] * (len(keys) - 1), abs=0.1)


def test_a_picture_that_ends_early_stays(tmp_path: Path) -> None:
    shown = picture(made(slides(tmp_path / "film.mp4"), stay=Stay(16.0, 180)))
    assert shown.gap < 1
    assert shown.times[-1] > 15
    assert shown.times[0] == 0


def test_frames_of_a_film_that_moves_are_neither_repeated_nor_moved(tmp_path: Path) -> None:
    for rate in ("25", "24000/1001", "60000/1001"):
        source = film(tmp_path / "film.mp4", Form(rate=rate))
        assert picture(made(source)).times == pytest.approx(picture(source).times, abs=0.00002), rate


def test_sound_that_begins_late_begins_with_silence(tmp_path: Path) -> None:
    _, heard = measured(made(late(tmp_path / "film.mkv", sound=3.0)))
    assert heard.begins == pytest.approx(0.0, abs=0.03)
    assert heard.beeps == pytest.approx((4.0, 6.0), abs=FRAME)
