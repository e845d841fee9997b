"""The colours of a picture: those that a source names, those that are assumed if it names none, and the filters of ffmpeg that
convert them to those of a film or of a still picture. These are pure functions.

A film is in BT.709, or in BT.601 if its source is; a still picture is in sRGB, which JPEG codes by the matrix of BT.601 in full
range. Wider gamuts and high dynamic range are converted to BT.709 through linear light, with 16 bits. See ADR 0103.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from re import compile as regex
from typing import Any, Final

BT709: Final = "bt709"
_BT601: Final = frozenset({"smpte170m", "bt470bg"})
_MATRICES: Final = _BT601 | {BT709}
"""The matrices that films keep. Players treat the primaries of both kinds of BT.601 as those of BT.709, so nothing is converted
there."""
_TRANSFERS: Final = frozenset({BT709, "smpte170m", "iec61966-2-1"})
"""The transfers that films keep. Players show them, and the others of standard dynamic range, alike."""
_NUMBERS: Final = {BT709: 1, "bt470bg": 5, "smpte170m": 6, "iec61966-2-1": 13}
"""The numbers of ITU-T H.273."""
_NAMED_MATRICES: Final = _MATRICES | {"fcc", "smpte240m", "bt2020nc", "bt2020c", "ycgco", "ictcp"}
_PQ: Final = "smpte2084"
_HLG: Final = "arib-std-b67"
_HD_LINES: Final = 720
_WITHOUT_MATRIX: Final = regex(r"(gbr|rgb|bgr|[argbx]{3,4}\d|0rgb|0bgr|x2rgb|x2bgr|argb|abgr|gray|ya\d|mono|pal8|bayer|xyz)")
_FULL_RANGE: Final = regex(r"yuvj")

_CHROMATICITIES: Final[Mapping[str, Sequence[tuple[float, float]]]] = {
    BT709: ((0.640, 0.330), (0.300, 0.600), (0.150, 0.060)),
    "bt2020": ((0.708, 0.292), (0.170, 0.797), (0.131, 0.046)),
    "smpte431": ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060)),
    "smpte432": ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060)),
}
"""The x and y of red, green and blue, by ffmpeg's names of primaries. Other primaries are treated as BT.709."""
_WHITE: Final = (0.3127, 0.3290)

SDR_WHITE: Final = 203.0
"""The luminance in cd/m² of a picture of high dynamic range that becomes white: the reference white of Report ITU-R BT.2408."""
_USUAL_PEAK: Final = 1000.0
"""The peak luminance in cd/m² if a source does not state it. It is also that of HLG."""
_PQ_PEAK: Final = 10_000.0
_GAMMA: Final = 2.4
"""The gamma of a display of standard dynamic range, Recommendation ITU-R BT.1886."""
_M1, _M2, _C1, _C2, _C3 = 2610 / 16384, 2523 / 32, 3424 / 4096, 2413 / 128, 2392 / 128
"""The constants of PQ, SMPTE ST 2084."""
_A, _B, _C = 0.17883277, 0.28466892, 0.55991073
"""The constants of HLG, Recommendation ITU-R BT.2100."""
_LUMA_2020: Final = (0.2627, 0.6780, 0.0593)
_MOST: Final = 65535
"""The largest sample of 16 bits."""
_SIGNAL: Final = "min(val/65280,1)"
"""A sample of 16 bits that swscale has made of a picture with a matrix: it makes 65280 of white."""


@dataclass(frozen=True, slots=True)
class Colours:
    """Matrix, primaries and transfer by ffmpeg's names, and the range. `named` is True if the source names its matrix and its
    range; `yuv` if it has a matrix. `peak` is the brightest light of a source of high dynamic range in cd/m²."""

    matrix: str = BT709
    primaries: str = BT709
    transfer: str = BT709
    full: bool = False
    named: bool = True
    yuv: bool = True
    peak: float = _USUAL_PEAK

    @classmethod
    def of(cls, stream: Mapping[str, Any]) -> Colours:
        """Return the colours of a video stream as ffprobe shows it. What it does not name follows from the rest, and from its
        lines: below 720 it is BT.601, otherwise BT.709."""
        pixels = str(stream.get("pix_fmt") or "")
        yuv = not _WITHOUT_MATRIX.match(pixels)
        primaries, transfer, matrix = (str(stream.get(f"color_{name}")) for name in ("primaries", "transfer", "space"))
        named = matrix in _NAMED_MATRICES
        if not yuv:
            matrix = BT709
        elif not named:
            matrix = _usual_matrix(primaries, stream.get("height"))
        if primaries in ("None", "unknown", "reserved"):
            primaries = "bt2020" if matrix.startswith("bt2020") else matrix if matrix in _BT601 else BT709
        if transfer in ("None", "unknown", "reserved"):
            transfer = "smpte170m" if matrix in _BT601 else BT709
        full = stream.get("color_range") == "pc" or bool(_FULL_RANGE.match(pixels))
        named = named and (full or stream.get("color_range") == "tv")
        return cls(matrix, primaries, transfer, full, named or not yuv, yuv, _peak(stream))

    @property
    def hdr(self) -> bool:
        return self.transfer in (_PQ, _HLG)

    @property
    def film(self) -> Colours:
        """The colours of a film that is made from this source."""
        matrix = self.matrix if self.matrix in _MATRICES and self.yuv and not self._wide else BT709
        primaries = BT709 if matrix == BT709 else self.primaries if self.primaries in (*_BT601, BT709) else matrix
        transfer = self.transfer if self.transfer in _TRANSFERS else "smpte170m" if matrix in _BT601 else BT709
        return Colours(matrix, primaries, transfer)

    @property
    def is_film(self) -> bool:
        """True if a picture of these colours can be a part of a film as it is."""
        return self.yuv and replace(self, named=True, peak=_USUAL_PEAK) == self.film

    def converted(self) -> tuple[str, ...]:
        """Return the filters that come before those of the size. They name the matrix if the source does not name everything, and
        convert sources with more colours or more light than a film to BT.709. A source with usual colours that names them needs
        none."""
        named = () if self.named or not self.yuv else (f"setparams=colorspace={self.matrix}",)
        if self.transfer == _HLG:
            return (*named, "format=gbrp16", *_from_hlg(), *_to_bt709(self.primaries), *_AS_BT709)
        if self.transfer == _PQ:
            light = _to_sdr(_SIGNAL, peak=self.peak)
            return (*named, "format=gbrp16", _each(light), *_to_bt709(self.primaries), *_AS_BT709)
        if self._wide:
            linear = _each(f"{_MOST}*pow({_SIGNAL},{_GAMMA})")
            return (*named, "format=gbrp16", linear, *_to_bt709(self.primaries), *_AS_BT709)
        return named

    def sized(self, width: int, height: int) -> str:
        """Return the filters that convert a picture to the size and these colours, which it names: 8 bits, limited range, square
        pixels."""
        return f"scale={width}:{height}:flags=bicubic:{self.coded},setsar=1"

    @property
    def coded(self) -> str:
        """The end of a filter `scale` that does what `sized` does, except for the size and the shape of pixels."""
        return f"out_color_matrix={self.matrix}:out_range=tv,format=yuv420p,{self.names}"

    @property
    def names(self) -> str:
        """The filter that labels a picture with these colours."""
        by_name = f"colorspace={self.matrix}:color_primaries={self.primaries}:color_trc={self.transfer}"
        return f"setparams={by_name}:range={'pc' if self.full else 'tv'}"

    @property
    def h264_names(self) -> str:
        """The bitstream filter that writes the colours of a film to the headers of H.264."""
        numbers = (_NUMBERS[self.primaries], _NUMBERS[self.transfer], _NUMBERS[self.matrix])
        by_name = "colour_primaries={}:transfer_characteristics={}:matrix_coefficients={}".format(*numbers)
        return f"h264_metadata={by_name}:video_full_range_flag=0"

    @property
    def _wide(self) -> bool:
        return self.hdr or (self.primaries in _CHROMATICITIES and self.primaries != BT709)


FILM: Final = Colours()
"""The colours of most films: BT.709."""
UNNAMED: Final = Colours(named=False)
"""The colours of BT.709 for frames that do not say so, such as raw pictures."""
DRAWN: Final = Colours("smpte170m", BT709, "smpte170m", named=False)
"""The colours of pictures that ffmpeg draws."""
JPEG: Final = "scale=out_color_matrix=bt601:out_range=pc:flags=bicubic+accurate_rnd+full_chroma_int,format=yuvj420p"
"""The filters that convert a picture to the colours of JPEG files: those of JFIF."""


def _usual_matrix(primaries: str, lines: object) -> str:
    if primaries == "bt2020":
        return "bt2020nc"
    if primaries in _MATRICES:
        return primaries
    if not isinstance(lines, int) or lines >= _HD_LINES:
        return BT709
    return "smpte170m"


def _peak(stream: Mapping[str, Any]) -> float:
    """Return the peak luminance that a source of PQ was made for, in cd/m²."""
    side_data = stream.get("side_data_list")
    for entry in side_data if isinstance(side_data, list) else ():
        above, _, below = str(entry.get("max_luminance") if isinstance(entry, dict) else "").partition("/")
        if above.isdecimal() and below.isdecimal() and int(below):
            return min(max(int(above) / int(below), SDR_WHITE), _PQ_PEAK) if int(above) else _USUAL_PEAK
    return _USUAL_PEAK


def _each(expression: str) -> str:
    """Return a filter that maps each sample of red, green and blue by an expression, with a table."""
    quoted = expression.replace(",", "\\,").replace(";", "\\;")
    return f"lutrgb=r='{quoted}':g='{quoted}':b='{quoted}'"


def _from_pq(signal: str) -> str:
    """Return an expression for the light in cd/m²."""
    power = f"pow({signal},{1 / _M2:.12f})"
    return f"{_PQ_PEAK}*pow(max({power}-{_C1:.9f},0)/({_C2:.9f}-{_C3:.9f}*{power}),{1 / _M1:.12f})"


def _in_pq(light: str) -> str:
    """Return an expression for the signal of light in cd/m²."""
    power = f"pow({light}/{_PQ_PEAK},{_M1:.12f})"
    return f"pow(({_C1:.9f}+{_C2:.9f}*{power})/(1+{_C3:.9f}*{power}),{_M2:.9f})"


def _pq(light: float) -> float:
    power = (light / _PQ_PEAK) ** _M1
    return float(((_C1 + _C2 * power) / (1 + _C3 * power)) ** _M2)


def _to_sdr(signal: str, *, peak: float) -> str:
    """Return an expression that maps a signal of PQ to linear light in which white is `SDR_WHITE`, by the curve of Report ITU-R
    BT.2390: dark and middle tones stay, bright ones up to the peak are compressed."""
    source, target = _pq(peak), _pq(SDR_WHITE) / _pq(peak)
    knee = 1.5 * target - 0.5
    t = f"((ld(0)-{knee:.9f})/{max(1 - knee, 1e-6):.9f})"
    curve = (
        f"(2*pow({t},3)-3*pow({t},2)+1)*{knee:.9f}+(pow({t},3)-2*pow({t},2)+{t})*{1 - knee:.9f}"
        f"+(3*pow({t},2)-2*pow({t},3))*{target:.9f}"
    )
    mapped = f"{source:.9f}*if(lt(ld(0),{knee:.9f}),ld(0),{curve})"
    return f"st(0,min({signal}/{source:.9f},1));st(1,{mapped});{_MOST}*{_from_pq('ld(1)')}/{SDR_WHITE}"


def _from_hlg() -> tuple[str, ...]:
    """Return filters that convert HLG as a display of 1,000 cd/m² shows it: its light depends on the luminance of the pixel, to the
    power of 1.2 - 1."""
    scene = f"if(lte({_SIGNAL},0.5),pow({_SIGNAL},2)/3,(exp(({_SIGNAL}-{_C})/{_A})+{_B})/12)"
    red, green, blue = _LUMA_2020
    luma = ":".join(f"{name}r={red}:{name}g={green}:{name}b={blue}" for name in "rgb")
    factor = _each(f"{_MOST}*pow(val/{_MOST},0.2/{_GAMMA})")
    luminance = f"{_each(f'{_MOST}*({scene})')},colorchannelmixer={luma},{factor}[hlg_factor]"
    display = f"{_each(f'{_MOST}*pow({scene},1/{_GAMMA})')}[hlg_scene];[hlg_scene][hlg_factor]blend=all_mode=multiply"
    light = _in_pq(f"({_USUAL_PEAK}*pow(val/{_MOST},{_GAMMA}))")
    return (f"split[hlg_a][hlg_b];[hlg_b]{luminance};[hlg_a]{display}", _each(_to_sdr(light, peak=_USUAL_PEAK)))


def _to_bt709(primaries: str) -> tuple[str, ...]:
    """Return filters that convert linear light of these primaries to the signal of BT.709. Colours outside of BT.709 are
    clipped."""
    chromaticities = _CHROMATICITIES.get(primaries, _CHROMATICITIES[BT709])
    rows = _product(_inverse(_to_xyz(_CHROMATICITIES[BT709])), _to_xyz(chromaticities))
    gains = ":".join(f"{out}{into}={rows[i][j]:.6f}" for i, out in enumerate("rgb") for j, into in enumerate("rgb"))
    return (f"colorchannelmixer={gains}", _each(f"{_MOST}*pow(val/{_MOST},1/{_GAMMA})"))


_AS_BT709: Final = (
    "sidedata=mode=delete:type=MASTERING_DISPLAY_METADATA",
    "sidedata=mode=delete:type=CONTENT_LIGHT_LEVEL",
    f"setparams=color_primaries={BT709}:color_trc={BT709}",
)
"""Filters that remove the light and gamut of the source's display, which no longer apply."""

_Matrix = Sequence[Sequence[float]]


def _to_xyz(chromaticities: Sequence[tuple[float, float]]) -> _Matrix:
    """Return the matrix that converts linear light of these primaries to CIE XYZ, SMPTE RP 177."""
    columns = [_xyz(x, y) for x, y in chromaticities]
    rows = [[column[row] for column in columns] for row in range(3)]
    white = _xyz(*_WHITE)
    gains = [sum(inverse * part for inverse, part in zip(row, white, strict=True)) for row in _inverse(rows)]
    return [[value * gain for value, gain in zip(row, gains, strict=True)] for row in rows]


def _xyz(x: float, y: float) -> tuple[float, float, float]:
    return x / y, 1.0, (1 - x - y) / y


def _product(first: _Matrix, other: _Matrix) -> _Matrix:
    return [[sum(row[k] * other[k][j] for k in range(3)) for j in range(3)] for row in first]


def _inverse(matrix: _Matrix) -> _Matrix:
    (a, b, c), (d, e, f), (g, h, i) = matrix
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    adjugate = (
        (e * i - f * h, c * h - b * i, b * f - c * e),
        (f * g - d * i, a * i - c * g, c * d - a * f),
        (d * h - e * g, b * g - a * h, a * e - b * d),
    )
    return [[value / determinant for value in row] for row in adjugate]
