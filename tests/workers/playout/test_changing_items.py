"""The decoder of an item, which may change in the middle, begin anywhere or have a frozen picture: all its frames and samples, as a
playout reads them."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from domain.channel.encoder_settings import SAMPLE_RATE
from tests.support.sources import films
from tests.support.sources.films import CHANGES, Form
from tests.support.sources.measure import apart
from workers.adapters.encoders.canvas import CHANNELS, SAMPLE, Canvas
from workers.adapters.encoders.item_decoder import ItemDecoder, ItemStreams, Over, inspect_item
from workers.adapters.ffmpeg import find
from workers.adapters.step_account import program_confinement
from workers.ports.playout import OpenedItem

CANVAS = Canvas(160, 90, Fraction(25))
FRAME = 0.05


@dataclass(frozen=True)
class Played:
    """The decoded item, with times in seconds from the first frame. `bars` is, for each white frame, the number of black columns at
    the left."""

    frames: int
    flashes: Sequence[float]
    beeps: Sequence[float]
    silences: Sequence[float]
    bars: Sequence[int]
    length: float | None


async def played(path: Path, *, start: float = 0.0, end: float | None = None, sound: int = 0) -> Played:
    program = find("ffmpeg")
    assert program is not None
    canvas = Canvas(CANVAS.width, CANVAS.height, CANVAS.rate, sound)
    confinement = program_confinement(program)
    item = OpenedItem(os.open(path, os.O_RDONLY), start, end)
    result = await inspect_item(program, item, confinement=confinement, cache={})
    streams = ItemStreams.of(result, sound=sound)
    decoder = await ItemDecoder.start(program, item, streams=streams, canvas=canvas, confinement=confinement)
    try:
        await decoder.wait_for_first(seconds=60)
        pictures: list[bytes] = []
        samples = bytearray()
        while True:
            try:
                slot = decoder.take(len(pictures))
            except Over:
                break
            if slot is None:
                await decoder.read_more(seconds=60)
                continue
            pictures.append(slot.picture)
            samples += slot.sound
            assert len(samples) == canvas.samples(0) * SAMPLE * len(pictures)
    finally:
        await decoder.close()
    heard = array("h", bytes(samples))[::CHANNELS]
    return Played(
        len(pictures),
        _begins([picture[_middle] > 128 for picture in pictures], step=1 / 25),
        _begins([abs(value) > 5_000 for value in heard], step=1 / SAMPLE_RATE, apart=0.3),
        _quiet(heard),
        [
            next(x for x in range(CANVAS.width) if picture[_middle - CANVAS.width // 2 + x] > 128)
            for picture in pictures
            if picture[_middle] > 128
        ],
        streams.length,
    )


_middle = CANVAS.height // 2 * CANVAS.width + CANVAS.width // 2


def _bars(picture: bytes) -> int:
    row = picture[_middle - CANVAS.width // 2 :][: CANVAS.width]
    return next(place for place, value in enumerate(row) if value > 128)


def _begins(values: Sequence[bool], *, step: float, apart: float = 0.0) -> list[float]:
    result, last = [], float("-inf")
    for place, value in enumerate(values):
        if value:
            if place * step - last > max(apart, step * 1.5):
                result.append(round(place * step, 3))
            last = place * step
    return result


def _quiet(heard: Sequence[int]) -> list[float]:
    """Return the times at which there is silence for a tenth of a second, from the first sound to the last."""
    loud = [place for place, value in enumerate(heard) if abs(value) > 100]
    return [round(entry / SAMPLE_RATE, 2) for entry, after in pairwise(loud) if after - entry > SAMPLE_RATE / 10]


def evenly(until: float) -> list[float]:
    return [2.0 * place for place in range(int(until / 2 + 0.99))]


async def test_an_item_that_changes_is_whole_in_sync_and_ends_when_it_should(tmp_path: Path) -> None:
    result = await played(films.changing(tmp_path / "item.ts", (*CHANGES, Form(size=(90, 160)))))
    assert result.flashes == pytest.approx(evenly(16), abs=FRAME)
    assert apart(result.flashes, result.beeps) < FRAME
    assert result.silences == []
    assert result.frames == pytest.approx(16 * 25, abs=2)
    assert result.length == pytest.approx(16, abs=0.1)
    assert (result.bars[0], max(result.bars)) == pytest.approx((0, 55), abs=3), "whole, with bars"


async def test_a_part_of_an_item_that_changes_has_its_length(tmp_path: Path) -> None:
    """The end of the item is counted over the changes."""
    result = await played(films.changing(tmp_path / "item.ts"), start=1.0, end=9.0)
    assert result.flashes == pytest.approx([1.0, 3.0, 5.0, 7.0], abs=FRAME)
    assert apart(result.flashes, result.beeps) < FRAME
    assert result.frames == pytest.approx(8 * 25, abs=1)


@pytest.mark.parametrize(("video", "audio"), [(films.MPEG2, films.MP2), (films.H264, films.AAC)], ids=["mpeg2", "h264"])
async def test_an_item_that_begins_between_key_frames_begins_with_its_first_picture(
    tmp_path: Path, video: films.Coding, audio: films.Coding
) -> None:
    """The item begins at about 6 s of the whole stream, where it flashes."""
    path = films.between_keys(tmp_path / "item.ts", video=video, audio=audio)
    result = await played(path)
    first = result.flashes[0]
    assert result.flashes == pytest.approx([first, first + 2, first + 4], abs=FRAME)
    assert first < 0.15
    assert apart(result.flashes, result.beeps) < FRAME
    assert result.frames == pytest.approx((6 + first) * 25, abs=3)
    assert result.length == pytest.approx(6 + first, abs=0.1)
    part = await played(path, start=1.0, end=4.0)
    assert part.flashes == pytest.approx([first + 1], abs=FRAME)
    assert part.frames == 75
    assert apart(part.flashes, part.beeps) < FRAME


@pytest.mark.parametrize("container", ["mkv", "mp4"])
async def test_late_sound_and_a_late_picture_are_in_sync(tmp_path: Path, container: str) -> None:
    late_sound = await played(films.late(tmp_path / f"sound.{container}", sound=3.0))
    assert late_sound.flashes == pytest.approx(evenly(8), abs=FRAME)
    assert apart(late_sound.flashes[2:], late_sound.beeps) < FRAME
    assert late_sound.frames == pytest.approx(200, abs=2)
    late_picture = await played(films.late(tmp_path / f"picture.{container}", picture=3.0))
    assert late_picture.flashes == pytest.approx([1.0, 3.0], abs=FRAME), "it begins with its first picture"
    assert apart(late_picture.flashes, late_picture.beeps) < FRAME
    assert late_picture.frames == pytest.approx(125, abs=2)


@pytest.mark.parametrize("number", [0, 1])
async def test_the_programme_of_the_highest_picture_is_played_with_its_sound(tmp_path: Path, number: int) -> None:
    """The sound of another programme does not count as its second sound."""
    result = await played(films.two_programmes(tmp_path / "item.ts"), sound=number)
    assert len(result.flashes) == 3
    assert apart(result.flashes, result.beeps) < 0.06


@pytest.mark.parametrize(
    "make",
    [
        lambda path: films.still(path, begins=2, ends=33, seconds=36),
        lambda path: films.slides(path, (0.0, 31.0, 32.0), seconds=36),
    ],
    ids=["a still part", "slides"],
)
@pytest.mark.parametrize("container", ["mkv", "ts"])
async def test_a_picture_that_stands_still_for_long_is_in_sync(
    tmp_path: Path, make: Callable[[Path], Path], container: str
) -> None:
    """The picture is frozen for longer than sound is buffered for a missing picture."""
    result = await played(make(tmp_path / f"item.{container}"))
    assert result.frames == pytest.approx(36 * 25, abs=3)
    assert result.beeps == pytest.approx(evenly(36), abs=FRAME)
    assert result.silences == []
    if result.flashes[-1] > 33:
        assert result.flashes[-1] == pytest.approx(34, abs=0.07)
    else:
        assert result.flashes == pytest.approx([0.0, 32.0], abs=0.07)
