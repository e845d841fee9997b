"""Films of bars of known colours, coded by the formulas of the standards, and the measure of colours in what was made of them.

The formulas are those of Recommendations ITU-R BT.601, BT.709, BT.2020 and BT.2100 and of Report BT.2390, written down once more:
nothing here is taken from what is tested.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from struct import pack
from typing import Any

from tests.support.sources.numbered_frames import tool

Rgb = tuple[float, float, float]

BARS: Sequence[Rgb] = (
    *((255, 255, 255), (128, 128, 128), (32, 32, 32), (0, 0, 0), (255, 0, 0), (0, 255, 0)),
    *((0, 0, 255), (255, 255, 0), (0, 255, 255), (255, 0, 255), (186, 126, 66), (60, 120, 200)),
)
NEAR = 6
BAR = 16
_MATRIX = {"601": (0.299, 0.114), "709": (0.2126, 0.0722), "2020": (0.2627, 0.0593)}
_RED, _GREEN, _BLUE = (0.6274, 0.3293, 0.0433), (0.0691, 0.9195, 0.0114), (0.0164, 0.0880, 0.8956)
"""Report ITU-R BT.2407: linear light of BT.709 in the primaries of BT.2020."""
_BACK = ((1.6605, -0.5876, -0.0728), (-0.1246, 1.1329, -0.0083), (-0.0182, -0.1006, 1.1187))


def _each(what: Callable[[float], float], colour: Rgb) -> Rgb:
    return what(colour[0]), what(colour[1]), what(colour[2])


def _by(rows: tuple[Rgb, Rgb, Rgb], colour: Rgb) -> Rgb:
    first, second, third = (sum(a * b for a, b in zip(row, colour, strict=True)) for row in rows)
    return first, second, third


def _wide(colour: Rgb) -> Rgb:
    """Return the light of a colour in the primaries of BT.2020."""
    return _by((_RED, _GREEN, _BLUE), _each(lambda part: (part / 255) ** 2.4, colour))


def _pq(light: float) -> float:
    power = (light / 10000) ** 0.1593017578125
    return float(((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power)) ** 78.84375)


def _from_pq(signal: float) -> float:
    power = signal ** (1 / 78.84375)
    return float(10000 * (max(power - 0.8359375, 0) / (18.8515625 - 18.6875 * power)) ** (1 / 0.1593017578125))


def _compressed(light: float, peak: float) -> float:
    """Report ITU-R BT.2390, 5.4.1: from this peak to 203 cd/m²."""
    most = _pq(203) / _pq(peak)
    knee = 1.5 * most - 0.5
    level = min(_pq(light) / _pq(peak), 1)
    if level >= knee:
        t = (level - knee) / (1 - knee)
        level = (2 * t**3 - 3 * t**2 + 1) * knee + (t**3 - 2 * t**2 + t) * (1 - knee) + (3 * t**2 - 2 * t**3) * most
    return _from_pq(level * _pq(peak)) / 203


def _shown(light: Rgb, *, peak: float) -> Rgb:
    """Return what a display of standard range shows of light in the primaries of BT.2020, in cd/m²."""
    narrow = _by(_BACK, _each(lambda part: _compressed(part, peak), light))
    return _each(lambda part: 255 * min(max(part, 0), 1) ** (1 / 2.4), narrow)


def _hlg(light: Rgb) -> Rgb:
    """The signal for light of a display of 1,000 cd/m²."""
    luminance = (0.2627 * light[0] + 0.6780 * light[1] + 0.0593 * light[2]) / 1000
    scene = _each(lambda part: part / 1000 * luminance ** (1 / 1.2 - 1) if luminance else 0.0, light)
    return _each(lambda part: (3 * part) ** 0.5 if part <= 1 / 12 else 0.17883277 * log(12 * part - 0.28466892) + 0.55991073, scene)


def _coded(signal: Rgb, matrix: str, *, bits: int, full: bool) -> Sequence[int]:
    red, blue = _MATRIX[matrix]
    luma = red * signal[0] + (1 - red - blue) * signal[1] + blue * signal[2]
    differences = ((signal[2] - luma) / (2 * (1 - blue)), (signal[0] - luma) / (2 * (1 - red)))
    unit, top = 1 << (bits - 8), (1 << bits) - 1
    if full:
        return [round(luma * top), *(min(round(difference * top + 128 * unit), top) for difference in differences)]
    return [round((16 + 219 * luma) * unit), *(round((128 + 224 * difference) * unit) for difference in differences)]


def _same(colour: Rgb) -> Rgb:
    return _each(lambda part: part / 255, colour)


def _sdr_2020(colour: Rgb) -> Rgb:
    return _each(lambda part: part ** (1 / 2.4), _wide(colour))


def _nits(colour: Rgb, times: float) -> Rgb:
    return _each(lambda part: 203 * times * part, _wide(colour))


def _bar(lines: int) -> int:
    """The width of a bar in pixels, of a picture in 16:9."""
    return lines * 16 // 9 // len(BARS) // 2 * 2


@dataclass(frozen=True)
class Bars:
    """`signal` makes the signal of a colour, `wanted` what is to be seen of it. `tags` are the options of ffmpeg's setparams."""

    matrix: str
    tags: str
    lines: int = 108
    bits: int = 8
    full: bool = False
    signal: Callable[[Rgb], Rgb] = _same
    wanted: Callable[[Rgb], Rgb] = lambda colour: colour

    def make(self, path: Path) -> Path:
        coded = [_coded(self.signal(colour), self.matrix, bits=self.bits, full=self.full) for colour in BARS]
        kind = "<H" if self.bits > 8 else "<B"
        wide = _bar(self.lines)
        rows = [b"".join(pack(kind, values[plane]) * wide for values in coded) * self.lines for plane in range(3)]
        pixels = "yuv444p12le" if self.bits > 8 else "yuv444p"
        size = f"{wide * len(BARS)}x{self.lines}"
        raw = ("-f", "rawvideo", "-pix_fmt", pixels, "-video_size", size, "-framerate", "5", "-i", "-")
        tagged = ("-vf", f"setparams={self.tags}") if self.tags else ()
        command = [tool("ffmpeg"), "-v", "error", "-y", *raw, *tagged, "-c:v", "ffv1", str(path)]
        subprocess.run(command, input=b"".join(rows) * 10, check=True)
        return path


HDR = "colorspace=bt2020nc:color_primaries=bt2020:range=tv:color_trc"
SD_525 = "colorspace=smpte170m:color_primaries=smpte170m:color_trc=smpte170m:range=tv"
SD_625 = "colorspace=bt470bg:color_primaries=bt470bg:color_trc=smpte170m:range=tv"
HD = "colorspace=bt709:color_primaries=bt709:color_trc=bt709:range"


SOURCES = {
    "601, 525 lines": Bars("601", SD_525),
    "601, 625 lines": Bars("601", SD_625, lines=576),
    "601 in HD": Bars("601", SD_525, lines=720),
    "709": Bars("709", f"{HD}=tv", lines=720),
    "709 in SD": Bars("709", f"{HD}=tv"),
    "709, full range": Bars("709", f"{HD}=pc", full=True),
    "601, full range": Bars("601", SD_525.replace("=tv", "=pc"), full=True),
    "nothing named, SD": Bars("601", ""),
    "nothing named, 625 lines": Bars("601", "", lines=576),
    "nothing named, HD": Bars("709", "", lines=720),
    "2020": Bars("2020", f"{HDR}=bt2020-10", bits=12, signal=_sdr_2020),
    "only the matrix of 2020 named": Bars("2020", "colorspace=bt2020nc:range=tv", bits=12, signal=_sdr_2020),
    "PQ": Bars(
        *("2020", f"{HDR}=smpte2084"),
        bits=12,
        signal=lambda colour: _each(_pq, _nits(colour, 1)),
        wanted=lambda colour: _shown(_nits(colour, 1), peak=1000),
    ),
    "PQ, bright": Bars(
        *("2020", f"{HDR}=smpte2084"),
        bits=12,
        signal=lambda colour: _each(_pq, _nits(colour, 4)),
        wanted=lambda colour: _shown(_nits(colour, 4), peak=1000),
    ),
    "HLG": Bars(
        *("2020", f"{HDR}=arib-std-b67"),
        bits=12,
        signal=lambda colour: _hlg(_nits(colour, 1)),
        wanted=lambda colour: _shown(_nits(colour, 1), peak=1000),
    ),
    "HLG, bright": Bars(
        *("2020", f"{HDR}=arib-std-b67"),
        bits=12,
        signal=lambda colour: _hlg(_nits(colour, 3)),
        wanted=lambda colour: _shown(_nits(colour, 3), peak=1000),
    ),
}


def rgb_bars(path: Path, *, lines: int = 108) -> Path:
    """A QuickTime film whose pictures are coded in RGB."""
    row = b"".join(bytes(map(int, colour)) * _bar(lines) for colour in BARS)
    raw = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-video_size", f"{_bar(lines) * len(BARS)}x{lines}", "-framerate", "5", "-i", "-")
    command = [tool("ffmpeg"), "-v", "error", "-y", *raw, "-c:v", "qtrle", str(path)]
    subprocess.run(command, input=row * lines * 10, check=True)
    return path


JFIF = "scale=in_color_matrix=bt601:in_range=pc"
"""The conversion of viewers of JPEG files, whatever else a file says."""


def shown_stream(path: Path) -> dict[str, Any]:
    shown = subprocess.run(
        [tool("ffprobe"), "-v", "error", "-show_streams", "-of", "json", str(path)], capture_output=True, check=True
    )
    stream: dict[str, Any] = json.loads(shown.stdout)["streams"][0]
    return stream


def colours_of(path: Path, *, how: str = "null") -> Sequence[Rgb]:
    """The colour in the middle of each bar. `how` is how a viewer takes the picture, as a filter: in RGB there is no question."""
    wide = BAR * len(BARS)
    taken = ("-vf", f"{how},format=gbrp,scale={wide}:16:flags=neighbor,format=rgb24", "-frames:v", "1", "-f", "rawvideo", "-")
    raw = subprocess.run([tool("ffmpeg"), "-v", "error", "-i", str(path), *taken], capture_output=True, check=True).stdout
    middle = 8 * wide
    places = (3 * (middle + BAR * bar + BAR // 2) for bar in range(len(BARS)))
    return [(raw[place], raw[place + 1], raw[place + 2]) for place in places]


def agree(seen: Sequence[Rgb], wanted: Sequence[Rgb], *, near: int = NEAR) -> None:
    for colour, seen_colour, wanted_colour in zip(BARS, seen, wanted, strict=True):
        assert max(abs(a - b) for a, b in zip(seen_colour, wanted_colour, strict=True)) <= near, (
            f"{colour} is {seen_colour}, not {wanted_colour}"
        )
