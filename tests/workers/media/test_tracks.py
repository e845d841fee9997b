"""Tracks are compared with each other, and headers of sound are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sources.films import AAC, AC3, CHANGES, H264, HEVC, Coding, Form, changing, ffmpeg, film
from workers.media.changes import Watch, parameters
from workers.media.tracks import Listing, MeasuredTrack

STEADY = MeasuredTrack([number * 0.04 for number in range(250)], 0.04)
"""A track of ten seconds."""


def part(*intervals: tuple[float, float]) -> MeasuredTrack:
    return MeasuredTrack([time for time in STEADY.times if any(begin <= time < end for begin, end in intervals)], 0.04)


def test_a_whole_track_lacks_nothing_and_has_no_gap() -> None:
    assert STEADY.lacks(STEADY) == []
    assert list(STEADY.gaps()) == []


@pytest.mark.parametrize(
    ("retained", "lost"),
    [
        (((0.0, 5.0),), (5.0, 10.0)),
        (((5.0, 10.0),), (0.0, 5.0)),
        (((0.0, 3.0), (6.0, 10.0)), (3.0, 6.0)),
        ((), (0.0, 10.0)),
    ],
)
def test_what_is_lost_is_found_wherever_it_is(retained: tuple[tuple[float, float], ...], lost: tuple[float, float]) -> None:
    [lack] = part(*retained).lacks(STEADY)
    assert lack == pytest.approx(lost, abs=0.05)


def test_what_the_source_lacks_as_well_is_not_lost() -> None:
    holed = part((0.0, 3.0), (6.0, 10.0))
    assert holed.lacks(holed) == []
    [gap] = holed.gaps()
    assert gap == pytest.approx((2.96, 6.0), abs=0.001)


def test_a_hole_of_less_than_a_second_is_none() -> None:
    assert part((0.0, 3.0), (3.9, 10.0)).lacks(STEADY) == []


def test_what_comes_before_the_first_picture_is_not_compared() -> None:
    early = MeasuredTrack([time - 3.0 for time in STEADY.times], 0.04)
    assert MeasuredTrack([time for time in early.times if time >= 0], 0.04).lacks(early) == []


def changed(source: Path, stream: int, codec: str) -> bool:
    watch = Watch(stream, codec, source.parent, headed=source.suffix == ".ts")
    ffmpeg("-i", str(source), *watch.options(), folder=source.parent)
    return watch.changed()


@pytest.mark.parametrize(
    ("name", "video", "codec"), [("a.ts", H264, "h264"), ("b.ts", HEVC, "hevc"), ("c.mp4", H264, "h264"), ("d.mkv", H264, "h264")]
)
def test_a_picture_that_stays_is_not_taken_for_one_that_changes(tmp_path: Path, name: str, video: Coding, codec: str) -> None:
    assert not changed(film(tmp_path / name, Form(seconds=5), video=video), 0, codec)


@pytest.mark.parametrize(("audio", "codec"), [(AAC, "aac"), (AC3, "ac3"), (("-c:a", "eac3"), "eac3")])
def test_sound_that_changes_is_found(tmp_path: Path, audio: Coding, codec: str) -> None:
    forms = CHANGES if codec == "aac" else (Form(channels=6), Form(channels=2))
    assert changed(changing(tmp_path / "film.ts", forms, audio=audio), 1, codec)
    assert not changed(film(tmp_path / "even.ts", Form(seconds=5), audio=audio), 1, codec)


def test_parameters_distinguish_layouts_and_not_bit_rates() -> None:
    stereo, mono = bytes([0xFF, 0xFB, 0x90, 0x00]) + bytes(4), bytes([0xFF, 0xFB, 0x90, 0xC0]) + bytes(4)
    assert parameters("mp3", stereo) != parameters("mp3", mono)
    assert parameters("mp3", stereo) == parameters("mp3", bytes([0xFF, 0xFB, 0xB0, 0x40]) + bytes(4)), "another bit rate"
    assert parameters("mp3", b"12345678") == parameters("aac", b"12345678") == parameters("ac3", b"12345678") == ()
    assert parameters("ac3", b"\x0b\x77") == ()


def test_packets_are_listed_in_the_order_in_which_they_are_shown(tmp_path: Path) -> None:
    source = film(tmp_path / "film.mp4", video=("-c:v", "libx264", "-bf", "2"))
    listing = Listing(0, tmp_path)
    ffmpeg("-i", str(source), *listing.options(), folder=tmp_path)
    track = listing.track()
    assert track.times == pytest.approx([number * 0.04 for number in range(100)], abs=0.001)
    assert track.ends == pytest.approx(4.0, abs=0.001)
    assert not track.changes
