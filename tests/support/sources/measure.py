"""Measures what a film shows and sounds like, on its decoded frames and samples: a file, or the address of an HLS playlist.

Times are those that the decoder gives, so that a film that begins at 10 s has its first flash there. The measure does not depend on
what it measures staying as it begins.
"""

from __future__ import annotations

import re
import subprocess
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.sources.numbered_frames import tool

_SHOWN: Final = re.compile(r"showinfo.* pts_time:\s*(-?[\d.]+) .*?\bs:(\d+)x(\d+)")
_HEARD: Final = re.compile(r"ashowinfo.* pts_time:(-?[\d.]+) .*? nb_samples:(\d+)")
_RATE: Final = 48_000
_BRIGHT: Final = 128
_LOUD: Final = 6_000
_SOFT: Final = 150
"""Levels, at most 32,767: a beep is louder than the first, the hum louder than the second."""
_BLOCK: Final = _RATE // 1000
"""The number of samples whose loudest is looked at: those of a millisecond."""
_WIDTH, _HEIGHT = 32, 18


@dataclass(frozen=True, slots=True)
class Picture:
    """`times` are those of all decoded frames, `flashes` those at which the picture becomes white. `sizes` are those of frames, in
    order, each change once."""

    times: tuple[float, ...]
    flashes: tuple[float, ...]
    sizes: tuple[tuple[int, int], ...]

    @property
    def gap(self) -> float:
        """The longest time between two frames."""
        return max((after - before for before, after in zip(self.times, self.times[1:], strict=False)), default=0.0)


@dataclass(frozen=True, slots=True)
class Sound:
    """`begins` and `ends` are those of its samples; `lasts` is how much of it there is, without what has no samples. `silences` are
    from when to when nothing is heard, for 0.1 s and more, with and without samples."""

    begins: float
    ends: float
    lasts: float
    beeps: tuple[float, ...]
    silences: tuple[tuple[float, float], ...]


def picture(path: Path | str, *, track: str = "v:0") -> Picture:
    filters = f"showinfo=checksum=0,scale={_WIDTH}:{_HEIGHT}:flags=area,format=gray"
    raw, lines = _decoded(path, track, "-vf", filters, "-fps_mode", "passthrough", "-f", "rawvideo")
    frames = [(float(match[1]), (int(match[2]), int(match[3]))) for line in lines if (match := _SHOWN.search(line))]
    size, white = _WIDTH * _HEIGHT, False
    flashes: list[float] = []
    sizes: list[tuple[int, int]] = []
    for number, (time, shape) in enumerate(frames):
        middle = number * size + _HEIGHT // 2 * _WIDTH + _WIDTH // 2
        if raw[middle] > _BRIGHT and not white:
            flashes.append(round(time, 3))
        white = raw[middle] > _BRIGHT
        if not sizes or sizes[-1] != shape:
            sizes.append(shape)
    return Picture(tuple(time for time, _ in frames), tuple(flashes), tuple(sizes))


def sound(path: Path | str, *, track: str = "a:0", gain: float = 1.0) -> Sound:
    """A `gain` makes up for sound that was made softer."""
    form = f"volume={gain},aformat=sample_fmts=s16:channel_layouts=mono:sample_rates={_RATE},ashowinfo"
    raw, lines = _decoded(path, track, "-af", form, "-c:a", "pcm_s16le", "-f", "s16le")
    frames = [(float(match[1]), int(match[2])) for line in lines if (match := _HEARD.search(line))]
    samples = array("h", raw[: len(raw) // 2 * 2])
    beeps: list[float] = []
    silences: list[tuple[float, float]] = []
    at, last, loud = 0, frames[0][0] if frames else 0.0, float("-inf")
    for time, count in frames:
        for place in range(0, count, _BLOCK):
            block = samples[at + place : at + min(place + _BLOCK, count)]
            value = max(max(block), -min(block)) if block else 0
            if value <= _SOFT:
                continue
            now = time + place / _RATE
            if now - last > 0.1:
                silences.append((round(last, 3), round(now, 3)))
            last = max(now, last)
            if value > _LOUD:
                if now - loud > 0.3:
                    beeps.append(round(now, 3))
                loud = now
        at += count
    ends = max((time + count / _RATE for time, count in frames), default=0.0)
    if ends - last > 0.1:
        silences.append((round(last, 3), round(ends, 3)))
    return Sound(frames[0][0] if frames else 0.0, ends, at / _RATE, tuple(beeps), tuple(silences))


def box(path: Path | str, at: float, *, track: str = "v:0") -> tuple[int, int, int, int]:
    """The white part of the frame that is shown at a time: its left and upper edge, its width and height, in pixels."""
    shown = picture(path, track=track)
    number = max(place for place, time in enumerate(shown.times) if time <= at + 0.001)
    width, height = shown.sizes[-1]
    chosen = ("-vf", f"select='eq(n,{number})',format=gray", "-fps_mode", "passthrough", "-frames:v", "1", "-f", "rawvideo")
    raw, _ = _decoded(path, track, *chosen)
    columns = [x for x in range(width) if raw[height // 2 * width + x] > _BRIGHT]
    rows = [y for y in range(height) if raw[y * width + width // 2] > _BRIGHT]
    return columns[0], rows[0], len(columns), len(rows)


def apart(flashes: Sequence[float], beeps: Sequence[float]) -> float:
    """Return the largest distance between a flash and its beep. There must be as many of both."""
    assert len(flashes) == len(beeps), (flashes, beeps)
    return max((abs(flash - beep) for flash, beep in zip(flashes, beeps, strict=True)), default=0.0)


def _decoded(path: Path | str, track: str, *output: str) -> tuple[bytes, list[str]]:
    command = [tool("ffmpeg"), "-hide_banner", "-nostats", "-copyts", "-i", str(path), "-map", f"0:{track}", *output, "-"]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    lines = done.stderr.decode(errors="replace").splitlines()
    assert done.returncode == 0, lines[-5:]
    return done.stdout, lines
