"""Filters of ffmpeg for sources that do not stay as they begin.

ffmpeg makes a filter graph anew whenever the size, pixel format, sample rate or sound layout of decoded frames changes. A filter
with a memory of "the start" then begins again: `setpts=PTS-STARTPTS` goes back to 0, `aresample=first_pts=0` puts in silence for
all the time that has passed, `fps` repeats frames. So there are two graphs (ADR 0106):

1. `FormedTracks` brings every track to its one form: one size, one pixel format, one layout and rate. Its filters have no memory,
   so it does not matter that they are made anew. What comes out goes on in the same process, uncompressed.
2. What reads it never sees a change, and may remember: `SOUND_LINE` fills silence, `steady` repeats a picture that stands still.

Times are absolute: `MediaFile.input` makes them count from the first picture. Nothing here subtracts a start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

RATE: Final = 48_000
"""Samples in a second, of all sound that is encoded."""
KEY_SECONDS: Final = 2
"""Between two key frames. Segments begin with them."""
TIME_BASE: Final = 360_000
"""The time base of pictures. Frames of all usual rates begin at whole numbers of it, also those of 23.976 and 59.94."""
PICTURE_TIMES: Final = (
    *("-fps_mode", "vfr", "-enc_time_base", f"1:{TIME_BASE}"),
    *("-bsf:v", f"setts=pts=PTS:dts=DTS:duration=if(gt(DURATION\\,0)\\,DURATION\\,{TIME_BASE // 25})"),
)
"""Frames keep the times that `steady` gave them. One that is not later than the one before is left out. A last frame that lasts for
no time would be left out of MP4."""
_SAME_SHAPE: Final = 0.02
"""A picture whose shape differs by less is scaled to the size; else it is fitted with bars."""
_LONGEST_FRAME: Final = 0.1
"""Seconds that a picture stands still before it is repeated. Players stop at what has no frame for long. Frames are decoded in
another order than they are shown, so a segment that ends with long ones seems to be shorter than it is."""
_NEAR: Final = 0.004
"""Seconds: less than half a frame at 120 frames in a second."""
_HARD: Final = 0.02
"""Seconds: sound that is so much too late or too early is moved, with silence or a cut. Less is how containers round times."""
LAYOUTS: Final = {1: "mono", 2: "stereo", 6: "5.1"}
"""The layout in which sound is encoded, for each number of channels."""


def channels_of(channels: int) -> int:
    """Return how many channels are encoded of sound that has `channels`."""
    return max(known for known in LAYOUTS if known <= max(channels, 1))


def fitted(width: int, height: int, *, coded: str = "format=yuv420p") -> str:
    """Filters that give a picture this size and square pixels, and then `coded`: the end of a filter `scale` with colours and pixel
    format. One of another shape is fitted between bars, not stretched. They have no memory."""
    shape = f"{width}/{height}"
    same = f"lt(abs(dar/({shape})-1),{_SAME_SHAPE})"
    across = f"if({same},{width},max(2,2*trunc((min({width},{height}*dar)+0.01)/2)))"
    down = f"if({same},{height},max(2,2*trunc((min({height},{width}/dar)+0.01)/2)))"
    joined = "," if coded.startswith("format") else ":"
    return f"scale=w='{across}':h='{down}':flags=bicubic{joined}{coded},pad={width}:{height}:-1:-1,setsar=1"


def sound_form(channels: int, *, rate: int = RATE, sample: str = "flt") -> str:
    """The filter that gives sound one rate and layout. It has no memory."""
    return f"aformat=sample_fmts={sample}:sample_rates={rate}:channel_layouts={LAYOUTS[channels_of(channels)]}"


def sound_line(*, rate: int = RATE, begins: float = 0.0, stretch: int = 1, hard: float = _HARD) -> str:
    """The filter that makes sound go on without a break from a time: silence where there is none, nothing from before. It
    remembers, so it must come behind what has one form. `stretch`: by how many samples in a second it may be stretched or
    squeezed where its clock is not that of the picture; `hard`: the seconds from which on it is moved instead."""
    return f"aresample={rate}:async={stretch}:min_hard_comp={hard:g}:first_pts={round(begins * rate)}"


SOUND_LINE: Final = sound_line()


@dataclass(frozen=True, slots=True)
class Stay:
    """A picture of so many `lines` that ends early stands still until this time."""

    until: float
    lines: int


def steady(source: str, made: str, *, name: str = "steady", stay: Stay | None = None, most: float | None = None) -> str:
    """A graph from the picture `source` to `made`, both labels: a picture that stands still is repeated ten times a second.
    Frames keep their times. It remembers, so it must come behind what has one form. `name` tells the graphs of one command apart.
    `most` is how long the picture can be: where none of it can be decoded, ffmpeg would wait for one for ever.

    The clock only lets the other picture be repeated: at odd ticks of a time base in which frames of the picture have even ones.
    What would repeat a frame that is not long ago is left out, and captions are not repeated.
    """
    film, clock, base = f"{name}-film", f"{name}-clock", 2 * TIME_BASE
    repeated = f"mod(round(t*{base})\\,2)"
    if stay is None:
        size, both, end = "16x16", "streamselect=inputs=2:map=0", ""
    else:  # this filter goes on when the picture has ended
        size, both = f"2x{stay.lines}", "hstack=inputs=2,crop=iw-2:ih:0:0:exact=1"
        end = f",trim=end={stay.until:.6f}"
    ended = "" if most is None else f":d={most + 2:.6f}"
    return ";".join(
        (
            f"[{source}]settb=1/{TIME_BASE},settb=1/{base}[{film}]",
            f"color=s={size}:r={1 / _LONGEST_FRAME:g}{ended},format=yuv420p,settb=1/{base},setpts=PTS+1-{base}[{clock}]",
            f"[{film}][{clock}]{both},select=not({repeated})+gte(t-prev_selected_t\\,{_LONGEST_FRAME - 0.001:g}),"
            f"sidedata=mode=delete:type=A53_CC:enable={repeated}{end},settb=1/{TIME_BASE}[{made}]",
        )
    )


def preceded(source: str, made: str, *, size: tuple[int, int], until: float, coded: str) -> str:
    """A graph from a picture that begins at a time to one that is black until then, both labels. `coded` are filters that name its
    colours."""
    black = f"color=black:s={size[0]}x{size[1]}:r={1 / _LONGEST_FRAME:g}:d={until - _NEAR:.6f},format=yuv420p,{coded}"
    return f"{black}[{made}-black];[{made}-black][{source}]interleave=n=2[{made}]"


def key_frames(keys: Sequence[float] = (), *, every: float = KEY_SECONDS) -> tuple[str, ...]:
    """Options: a key frame at the multiples of so many seconds, and at these `keys`. One that is late, since there was no picture,
    is followed by the next one at its time, not by all that were missed."""
    usual = f"isnan(prev_forced_t)+gte(t+{_NEAR},(floor((prev_forced_t+{_NEAR})/{every:g})+1)*{every:g})"
    forced = "+".join((usual, *(f"lt(abs(t-{key:.6f}),{_NEAR})" for key in keys)))
    return ("-force_key_frames", f"expr:{forced}", "-forced-idr", "1", "-sc_threshold", "0", "-g", "600")


@dataclass(frozen=True, slots=True)
class Track:
    """A track of the source, by its stream, such as `0:1`, and the filters that give it its one form."""

    stream: str
    filters: str
    is_picture: bool


@dataclass(frozen=True, slots=True)
class FormedTracks:
    """Tracks in their one form. The options come first among the outputs of a command, and `label` names a track in the filters of
    the outputs behind them. `times` is a file for each track: it lists when its decoded frames begin (`tracks.decoded`)."""

    tracks: tuple[Track, ...]
    times: tuple[str, ...] = ()

    def options(self) -> tuple[str, ...]:
        """ffmpeg decodes what this output encodes, which is nothing: frames are handed on as they are."""
        mapped = tuple(option for number, one in enumerate(self.tracks) for option in self._mapped(one, number))
        again = tuple(option for number in range(len(self.tracks)) for option in ("-dec", f"0:{number}"))
        return (*mapped, "-f", "null", "-", *again) if mapped else ()

    def label(self, number: int) -> str:
        return f"dec:{number}"

    def _mapped(self, one: Track, number: int) -> tuple[str, ...]:
        coded = (f"-c:{number}", "wrapped_avframe" if one.is_picture else "pcm_f32le")
        kept = (f"-fps_mode:{number}", "passthrough", f"-enc_time_base:{number}", "demux") if one.is_picture else ()
        said = "{t}" if one.is_picture else "{t} {samp}"
        listed = (f"-stats_enc_pre:{number}", self.times[number], f"-stats_enc_pre_fmt:{number}", said) if self.times else ()
        return ("-map", one.stream, f"-filter:{number}", one.filters, *coded, *kept, *listed)
