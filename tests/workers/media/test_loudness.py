"""The meter against the test signals of EBU Tech 3341, which are made here, and against pyloudnorm."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
import numpy.typing
import pyloudnorm
import pytest

from tests.support.sources.numbered_frames import tool
from workers.media.loudness import LoudnessMeasure, meter, read_meter

RATE = 48_000
Samples = numpy.typing.NDArray[numpy.float64]
Parts = Sequence[tuple[float, float]]
"""The dBFS of each part, and its duration in seconds."""


def _times(seconds: float) -> Samples:
    return numpy.arange(round(seconds * RATE)) / RATE


def _wave(parts: Parts) -> Samples:
    """Return a tone whose phase continues over the borders of parts."""
    amplitudes = numpy.concatenate([numpy.full(round(lasts * RATE), 10 ** (level / 20)) for level, lasts in parts])
    return amplitudes * numpy.sin(2 * numpy.pi * 1000 * _times(len(amplitudes) / RATE))


def _made(folder: Path, waves: Sequence[Samples], *, layout: str) -> Path:
    made = folder / "sound.wav"
    raw = ("-f", "f32le", "-ar", str(RATE), "-ch_layout", layout, "-i", "pipe:0", "-c:a", "pcm_f32le")
    samples = numpy.stack(waves, axis=1).astype("<f4").tobytes()
    subprocess.run([tool("ffmpeg"), "-v", "error", *raw, str(made)], input=samples, check=True)
    return made


def _measured(file: Path) -> LoudnessMeasure:
    command = [tool("ffmpeg"), "-v", "error", "-i", file.name, "-af", meter("meter.txt", peaks=True), "-f", "null", "-"]
    subprocess.run(command, cwd=file.parent, check=True)
    return read_meter(file.parent / "meter.txt")


@dataclass(frozen=True)
class Case:
    parts: Parts
    integrated: float | None = -23.0
    short_term: float | None = None
    momentary: float | None = None


CASES = {
    "1": Case([(-23, 20)], -23, -23, -23),
    "2": Case([(-33, 20)], -33, -33, -33),
    "3": Case([(-36, 10), (-23, 60), (-36, 10)]),
    "4": Case([(-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)]),
    "5": Case([(-26, 20), (-20, 20.1), (-26, 20)]),
    "9": Case([(-20, 1.34), (-30, 1.66)] * 5, None, short_term=-23),
    "12": Case([(-20, 0.18), (-30, 0.22)] * 25, None, momentary=-23),
}


@pytest.mark.parametrize("number", CASES)
def test_levels_are_as_ebu_tech_3341_wants_them(number: str, tmp_path: Path) -> None:
    case = CASES[number]
    sound = _made(tmp_path, [_wave(case.parts)] * 2, layout="stereo")
    result = _measured(sound)
    for name in ("integrated", "short_term", "momentary"):
        if (wanted := getattr(case, name)) is not None:
            assert getattr(result, name) == pytest.approx(wanted, abs=0.1), name


def test_surround_channels_count_more(tmp_path: Path) -> None:
    """Case 6 of EBU Tech 3341: five channels."""
    waves = [_wave([(level, 20)]) for level in (-28, -28, -24, -30, -30)]
    assert _measured(_made(tmp_path, waves, layout="5.0")).integrated == pytest.approx(-23, abs=0.1)


@pytest.mark.parametrize(
    ("divisor", "phase", "amplitude", "wanted"),
    [(4, 0, 0.5, -6.0), (4, 45, 0.5, -6.0), (6, 60, 0.5, -6.0), (8, 67.5, 0.5, -6.0), (4, 45, 1.41, 3.0)],
)
def test_peaks_between_samples_are_found(divisor: int, phase: float, amplitude: float, wanted: float, tmp_path: Path) -> None:
    """Cases 15 to 19 of EBU Tech 3341: +0.2 and -0.4 dB are allowed."""
    times = _times(1)
    fade = numpy.minimum(1, numpy.minimum(times, 1 - times) / 0.1)
    wave = amplitude * fade * numpy.sin(2 * numpy.pi * RATE / divisor * times + numpy.deg2rad(phase))
    peak = _measured(_made(tmp_path, [wave, wave], layout="stereo")).true_peak
    assert peak is not None
    assert wanted - 0.4 <= peak <= wanted + 0.2


def test_the_range_is_that_of_ebu_tech_3342(tmp_path: Path) -> None:
    for levels, wanted in (((-20, -30), 10), ((-20, -15), 5), ((-50, -35, -20, -35, -50), 15)):
        parts = [(level, 20.0) for level in levels]
        sound = _made(tmp_path, [_wave(parts)] * 2, layout="stereo")
        assert _measured(sound).range == pytest.approx(wanted, abs=1), levels
        sound.unlink()


def test_pyloudnorm_has_the_same_opinion(tmp_path: Path) -> None:
    """The sound is noise that comes and goes, with a tone in one channel."""
    times, random = _times(15), numpy.random.default_rng(1)
    noise, soft = ((random.random(len(times)) - 0.5) * level for level in (0.3, 0.05))
    left = noise * (0.6 + 0.4 * numpy.sin(2 * numpy.pi * 0.2 * times)) + 0.1 * numpy.sin(2 * numpy.pi * 90 * times)
    right = soft + 0.2 * numpy.sin(2 * numpy.pi * 6000 * times) * (times % 4 < 1)
    samples = numpy.stack([left, right], axis=1)
    sound = _made(tmp_path, [left, right], layout="stereo")
    assert _measured(sound).integrated == pytest.approx(pyloudnorm.Meter(RATE).integrated_loudness(samples), abs=0.1)


def test_silence_has_no_loudness(tmp_path: Path) -> None:
    result = _measured(_made(tmp_path, [_times(4) * 0] * 2, layout="stereo"))
    assert (result.integrated, result.momentary, result.short_term, result.true_peak) == (None, None, None, None)
    assert read_meter(tmp_path / "nothing.txt") == LoudnessMeasure()
