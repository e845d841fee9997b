"""Encodes of sources that change in the middle, begin anywhere, stand still or jump, measured on their decoded pictures and
sounds. The source is read as fast as ffmpeg can."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from domain.channel.encoder_settings import EncodeSettings, encode_settings
from tests.contract.encoder.ffmpeg_stage import ffmpeg_plan
from tests.support.sources import captioned, films
from tests.support.sources.films import CHANGES, Form
from tests.support.sources.measure import apart, box, picture, sound
from tests.support.sources.numbered_frames import probed, tool
from workers.adapters.encoders.encode_command import encode_command
from workers.adapters.encoders.sources import input_of
from workers.media.captions.a53 import CaptionServices, caption_data
from workers.media.captions.segments import segment_captions
from workers.media.fragments import read_init

SIZE = (320, 180)
FRAME = 0.05


@dataclass(frozen=True)
class Encoded:
    """The tracks that an encode wrote."""

    pictures: Sequence[Path]
    sounds: Sequence[Path]


def settings(**specific: Any) -> EncodeSettings:
    given = {"renditions": [{"height": 180, "bitrate": 300_000}], "keyFrameInterval": 2, **specific}
    return encode_settings(replace(ffmpeg_plan(), specific=given))


def encoded(source: Path, folder: Path, **specific: Any) -> Encoded:
    """The first of the tracks have to have come from a pipe, as a stream does."""
    made: dict[str, Path] = {}

    def file(plan: Any) -> str:
        made[plan.name] = folder / f"{plan.name}.mp4"
        return str(made[plan.name])

    probe = probed(source, "-show_programs", "-show_streams", "-show_format")
    read = input_of(("-i", "pipe:0"), probe, configured=[])
    command = encode_command(Path(tool("ffmpeg")), read, settings=settings(**specific), progress="/dev/null", pipe=file)
    with source.open("rb") as stream:
        done = subprocess.run([*command, "-y"], stdin=stream, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return Encoded([made[name] for name in made if name[0] == "v"], [made[name] for name in made if name[0] == "a"])


def keys(path: Path) -> list[float]:
    packets = probed(path, "-show_entries", "packet=pts_time,flags")["packets"]
    return [round(float(each["pts_time"]), 2) for each in packets if "K" in each["flags"]]


def packets(path: Path) -> list[tuple[float, float]]:
    packets = probed(path, "-show_entries", "packet=pts_time,duration_time")["packets"]
    return [(float(each["pts_time"]), float(each["duration_time"])) for each in packets]


def evenly(until: float) -> list[float]:
    return [2.0 * place for place in range(ceil(until / 2))]


def test_a_source_that_changes_stays_whole_in_sync_and_of_one_size(tmp_path: Path) -> None:
    """Twice to and fro: 5.1, stereo, mono; 16:9, 4:3; 25, 30 and 24 frames a second."""
    source = films.changing(tmp_path / "source.ts", (*CHANGES, *CHANGES))
    made = encoded(source, tmp_path)
    shown, heard = picture(made.pictures[0]), sound(made.sounds[0])
    assert shown.sizes == (SIZE,)
    assert shown.flashes == pytest.approx(evenly(24), abs=FRAME)
    assert apart(shown.flashes, heard.beeps) < FRAME
    assert heard.silences == ()
    assert shown.gap == pytest.approx(1 / 30, abs=0.001)
    assert heard.lasts == pytest.approx(24, abs=0.1)
    assert keys(made.pictures[0]) == evenly(24)
    assert {round(lasts, 4) for _, lasts in packets(made.sounds[0])[:-1]} == {round(1024 / 48_000, 4)}


def test_the_age_of_a_stream_changes_nothing(tmp_path: Path) -> None:
    """A small stream for 48 seconds, then a change of everything. What is filled in by mistake grows with the age."""
    age = 48.0
    made = encoded(aged(tmp_path, age), tmp_path, renditions=[{"height": 90, "bitrate": 100_000, "fps": 5}])
    times = [time for time, _ in packets(made.sounds[0])]
    assert times[-1] == pytest.approx(age + 8, abs=0.2)
    assert max(after - before for before, after in pairwise(times)) < 0.03
    shown, heard = (picture(cut(made.pictures[0], age - 10)), sound(cut(made.sounds[0], age - 10)))
    assert heard.silences == ()
    assert len(heard.beeps) == 9
    assert apart(shown.flashes, heard.beeps) <= 1 / 5 + 0.02


def aged(folder: Path, seconds: float) -> Path:
    """A stream of small frames, whose sound, size and rate change after so many seconds, and that goes on for eight more."""
    source, small = folder / "source.ts", Form(size=(160, 90), rate="5", sample_rate=32_000, channels=1, seconds=seconds)
    other = Form(size=(120, 90), channels=6, seconds=8)
    parts = [folder / "old.ts", folder / "new.ts"]
    for part, form, begin in zip(parts, (small, other), (0.0, seconds), strict=True):
        times = ("-output_ts_offset", f"{begin:g}", "-muxdelay", "0", "-muxpreload", "0")
        films.film(part, form, *times, audio=films.AC3)
    source.write_bytes(b"".join(part.read_bytes() for part in parts))
    return source


def cut(path: Path, begin: float) -> Path:
    """Write the part of a file after a time, with the times that it has there."""
    made = path.with_name(f"cut-{path.name}")
    films.ffmpeg("-ss", f"{begin:g}", "-i", str(path), "-c", "copy", "-avoid_negative_ts", "disabled", str(made))
    return made


def test_pictures_of_every_size_have_bars(tmp_path: Path) -> None:
    forms = (Form(), Form(size=(240, 180)), Form(size=(160, 240)))
    source = films.changing(tmp_path / "source.ts", forms)
    renditions = [
        {"height": 180, "bitrate": 300_000},
        {"height": 90, "bitrate": 200_000},
        {"height": 90, "width": 90, "bitrate": 90_000},
    ]
    whole, half, square = encoded(source, tmp_path, renditions=renditions).pictures
    for path, size in ((whole, SIZE), (half, (160, 90)), (square, (90, 90))):
        assert picture(path).sizes == (size,)
    assert box(whole, 2.0) == pytest.approx((0, 0, 320, 180), abs=2)
    assert box(whole, 6.0) == pytest.approx((40, 0, 240, 180), abs=2)
    assert box(whole, 10.0) == pytest.approx((100, 0, 120, 180), abs=2)
    assert box(half, 6.0) == pytest.approx((20, 0, 120, 90), abs=2)
    assert box(square, 2.0) == pytest.approx((0, 20, 90, 50), abs=2)


@pytest.mark.parametrize("kind", ["slides.mkv", "still.ts"])
def test_a_picture_that_stands_still_has_frames_and_key_frames(tmp_path: Path, kind: str) -> None:
    """The frames of the film are up to 33 seconds apart: longer than the gaps that most programs accept."""
    source = tmp_path / kind
    if kind.startswith("slides"):
        films.slides(source, (0.0, 5.0, 38.0, 40.0), seconds=42)
    else:
        films.still(source, begins=3, ends=36, seconds=40)
    made = encoded(source, tmp_path)
    shown, heard = picture(made.pictures[0]), sound(made.sounds[0])
    assert shown.gap <= 0.05
    assert keys(made.pictures[0]) == evenly(shown.times[-1] + 0.01)
    assert heard.beeps[-3:] == pytest.approx(evenly(heard.ends - 0.1)[-3:], abs=FRAME)
    if kind.startswith("still"):
        assert shown.flashes[-2:] == pytest.approx(heard.beeps[-2:], abs=0.07)


@pytest.mark.parametrize("jump", [5000.0, -5000.0])
def test_a_clock_that_jumps_leaves_no_hole_and_no_shift(tmp_path: Path, jump: float) -> None:
    made = encoded(films.clock_jump(tmp_path / "source.ts", jump=jump), tmp_path)
    shown, heard = picture(made.pictures[0]), sound(made.sounds[0])
    assert shown.flashes == pytest.approx(evenly(8), abs=0.1)
    assert apart(shown.flashes, heard.beeps) < 0.06
    assert shown.gap < 0.1
    assert heard.lasts == pytest.approx(8, abs=0.2)


@pytest.mark.parametrize(("video", "audio"), [(films.MPEG2, films.MP2), (films.H264, films.AAC)], ids=["mpeg2", "h264"])
def test_a_source_that_begins_between_key_frames_is_in_sync(tmp_path: Path, video: Any, audio: Any) -> None:
    made = encoded(films.between_keys(tmp_path / "source.ts", video=video, audio=audio), tmp_path)
    shown, heard = picture(made.pictures[0]), sound(made.sounds[0])
    assert (shown.times[0], heard.begins) == pytest.approx((0.0, 0.0), abs=0.03)
    assert apart(shown.flashes[1:], heard.beeps[1:]) < FRAME
    assert len(shown.flashes) >= 3


@pytest.mark.parametrize(("late_picture", "late_sound"), [(3.0, 0.0), (0.0, 3.0)], ids=["picture", "sound"])
def test_a_late_picture_and_a_late_sound_are_in_sync(tmp_path: Path, late_picture: float, late_sound: float) -> None:
    made = encoded(films.late(tmp_path / "source.mkv", picture=late_picture, sound=late_sound), tmp_path)
    shown, heard = picture(made.pictures[0]), sound(made.sounds[0])
    assert (shown.times[0], heard.begins) == pytest.approx((0.0, 0.0), abs=0.03)
    assert apart(shown.flashes[-2:], heard.beeps[-2:]) < FRAME


def test_the_programme_of_the_highest_picture_is_sent_with_its_sound(tmp_path: Path) -> None:
    made = encoded(films.two_programmes(tmp_path / "source.ts"), tmp_path)
    assert len(made.sounds) == 1
    shown, heard = picture(made.pictures[0]), sound(made.sounds[0])
    assert len(shown.flashes) == 3
    assert apart(shown.flashes, heard.beeps) < 0.06


def carried(path: Path) -> tuple[CaptionServices, str]:
    """The captions of a track, and the letters of CEA-608 in them."""
    init = read_init(path.read_bytes())
    units = [unit for _, unit in sorted(_of_pictures(path), key=lambda picture: picture[0])]
    pairs = [triple for unit in units for triple in caption_data(unit, "h264", length_size=0) if triple.type == 0]
    letters = [chr(code & 0x7F) for pair in pairs if pair.first & 0x7F >= 0x20 for code in (pair.first, pair.second)]
    return segment_captions(path, init), "".join(letters).replace("\0", "")


def _of_pictures(path: Path) -> list[tuple[float, bytes]]:
    times = [time for time, _ in packets(path)]
    units = path.with_suffix(".h264")
    films.ffmpeg("-i", str(path), "-c", "copy", "-bsf:v", "h264_mp4toannexb,h264_metadata=aud=insert", str(units))
    parts = units.read_bytes().split(b"\x00\x00\x00\x01\x09")[1:]
    return list(zip(times, parts, strict=True))


@pytest.mark.parametrize("fps", [None, 24, 60])
def test_captions_in_the_pictures_are_carried(tmp_path: Path, fps: int | None) -> None:
    """Captions are carried at the rate of the source, and at rates for which CEA-708 defines how many captions a picture has."""
    source = tmp_path / "source.ts"
    spoken = captioned.Line21("CC1").pop_on(40, "HELLO").pop_on(80, "WORLD")
    data = captioned.triples(120, spoken, services={20: captioned.dtvcc((1, "HELLO"))})
    captioned.captioned(source, data, fps=30)
    made = encoded(source, tmp_path, renditions=[{"height": 96, "bitrate": 200_000, **({"fps": fps} if fps else {})}])
    services, letters = carried(made.pictures[0])
    assert services == CaptionServices(("CC1",), (1,))
    assert letters.replace(" ", "") == "HELLOWORLD"
