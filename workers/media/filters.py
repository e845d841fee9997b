"""Filters of ffmpeg for sources whose form changes.

ffmpeg makes a new filter graph whenever the size, pixel format, sample rate or sound layout of decoded frames changes. A filter
with a memory of "the start" then begins again: `setpts=PTS-STARTPTS` goes back to 0, `aresample=first_pts=0` inserts silence for
all the time that has passed, `fps` repeats frames. Therefore there are two graphs (ADR 0106):

1. `FormedTracks` converts every track to a single form: one size, one pixel format, one layout and rate. Its filters have no
memory, so it does not matter that they are made again. Their output continues in the same process, uncompressed. 2. The graph that
reads it never sees a change, and may have a memory: `SOUND_LINE` fills silence, `steady` repeats a frozen picture.

Times are absolute: `MediaFile.input` makes them count from the first picture. Nothing here subtracts a start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

RATE: Final = 48_000
"""Samples a second of all sound that is encoded."""
KEY_SECONDS: Final = 2
"""Seconds between two key frames. Segments begin with key frames."""
TIME_BASE: Final = 360_000
"""The time base of pictures. Frames of all usual rates begin at whole numbers of it, including 23.976 and 59.94."""
PICTURE_TIMES: Final = (
    *("-fps_mode", "vfr", "-enc_time_base", f"1:{TIME_BASE}"),
    *("-bsf:v", f"setts=pts=PTS:dts=DTS:duration=if(gt(DURATION\\,0)\\,DURATION\\,{TIME_BASE // 25})"),
)
"""Options that keep the times of frames from `steady`. A frame that is not later than the previous one is dropped. A last frame
without a duration would be missing in MP4."""
_SAME_SHAPE: Final = 0.02
"""The difference of shapes below which a picture is scaled to the size; otherwise it is fitted with bars."""
_LONGEST_FRAME: Final = 0.1
"""Seconds for which a picture is frozen before it is repeated. Players stop at a long time without a frame. Frames are decoded in
another order than they are shown, so a segment that ends with long ones seems to be shorter than it is."""
_NEAR: Final = 0.004
"""Seconds: less than half a frame at 120 frames a second."""
_HARD: Final = 0.02
"""Seconds by which sound must be late or early to be moved, with silence or a cut. Smaller differences come from the rounding of
times in containers."""
LAYOUTS: Final = {1: "mono", 2: "stereo", 6: "5.1"}
"""The layout in which sound is encoded, for each number of channels."""


def channels_of(channels: int) -> int:
    """Return the number of channels that are encoded for sound with `channels`."""
    return max(number for number in LAYOUTS if number <= max(channels, 1))


def fitted(width: int, height: int, *, coded: str = "format=yuv420p") -> str:
    """Return filters that give a picture this size and square pixels, and then `coded`: the end of a filter `scale` with colours
    and pixel format. A picture of another shape is fitted between bars, not stretched. The filters have no memory."""
    shape = f"{width}/{height}"
    same = f"lt(abs(dar/({shape})-1),{_SAME_SHAPE})"
    across = f"if({same},{width},max(2,2*trunc((min({width},{height}*dar)+0.01)/2)))"
    down = f"if({same},{height},max(2,2*trunc((min({height},{width}/dar)+0.01)/2)))"
    joined = "," if coded.startswith("format") else ":"
    return f"scale=w='{across}':h='{down}':flags=bicubic{joined}{coded},pad={width}:{height}:-1:-1,setsar=1"


def sound_form(channels: int, *, rate: int = RATE, sample: str = "flt") -> str:
    """Return the filter that gives sound one rate and layout. It has no memory."""
    return f"aformat=sample_fmts={sample}:sample_rates={rate}:channel_layouts={LAYOUTS[channels_of(channels)]}"


def sound_line(*, rate: int = RATE, begins: float = 0.0, stretch: int = 1, hard: float = _HARD) -> str:
    """Return the filter that makes sound continuous from a time on: it inserts silence in gaps, and drops sound from before. It has
    a memory, so its input must have a single form. `stretch` is the number of samples a second by which sound may be stretched or
    squeezed if its clock is not that of the picture; above `hard` seconds it is moved instead."""
    return f"aresample={rate}:async={stretch}:min_hard_comp={hard:g}:first_pts={round(begins * rate)}"


SOUND_LINE: Final = sound_line()


@dataclass(frozen=True, slots=True)
class Stay:
    """The time until which a picture of so many `lines` that ends early is frozen."""

    until: float
    lines: int


def steady(source: str, made: str, *, name: str = "steady", stay: Stay | None = None, most: float | None = None) -> str:
    """Return a graph from the picture `source` to `made`, both labels: a frozen picture is repeated ten times a second.

    Frames keep their times. The graph has a memory, so its input must have a single form. `name` distinguishes the graphs of one
    command. `most` is the largest length of the picture: if no picture can be decoded, ffmpeg would wait forever.

    The clock only causes the picture to be repeated: at odd ticks of a time base in which frames of the picture have even ones. A
    repetition of a recent frame is dropped, and captions are not repeated.
    """
    film, clock, base = f"{name}-film", f"{name}-clock", 2 * TIME_BASE
    repeated = f"mod(round(t*{base})\\,2)"
    if stay is None:
        size, both, end = "16x16", "streamselect=inputs=2:map=0", ""
    else:  # this filter continues when the picture has ended
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
    """Return a graph from a picture that begins at a time to one that is black until then, both labels. `coded` are filters that
    name its colours."""
    black = f"color=black:s={size[0]}x{size[1]}:r={1 / _LONGEST_FRAME:g}:d={until - _NEAR:.6f},format=yuv420p,{coded}"
    return f"{black}[{made}-black];[{made}-black][{source}]interleave=n=2[{made}]"


def key_frames(keys: Sequence[float] = (), *, every: float = KEY_SECONDS) -> tuple[str, ...]:
    """Return options for a key frame at the multiples of so many seconds, and at these `keys`. A key frame that is late, because
    there was no picture, is followed by the next one at its time, not by all that were missed."""
    usual = f"isnan(prev_forced_t)+gte(t+{_NEAR},(floor((prev_forced_t+{_NEAR})/{every:g})+1)*{every:g})"
    forced = "+".join((usual, *(f"lt(abs(t-{key:.6f}),{_NEAR})" for key in keys)))
    return ("-force_key_frames", f"expr:{forced}", "-forced-idr", "1", "-sc_threshold", "0", "-g", "600")


@dataclass(frozen=True, slots=True)
class FilteredTrack:
    """A track of the source, by its stream, such as `0:1`, and the filters that convert it to a single form."""

    stream: str
    filters: str
    is_picture: bool


@dataclass(frozen=True, slots=True)
class FormedTracks:
    """Tracks in a single form. The options come first among the outputs of a command, and `label` names a track in the filters of
    the outputs after them. `times` is a file for each track: it lists the begin of its decoded frames (`tracks.decoded`)."""

    tracks: tuple[FilteredTrack, ...]
    times: tuple[str, ...] = ()

    def options(self) -> tuple[str, ...]:
        """Return the options. ffmpeg decodes what this output encodes without compression: frames are passed on as they are."""
        mapped = tuple(option for number, track in enumerate(self.tracks) for option in self._map_options(track, number))
        again = tuple(option for number in range(len(self.tracks)) for option in ("-dec", f"0:{number}"))
        return (*mapped, "-f", "null", "-", *again) if mapped else ()

    def label(self, number: int) -> str:
        return f"dec:{number}"

    def _map_options(self, track: FilteredTrack, number: int) -> tuple[str, ...]:
        coded = (f"-c:{number}", "wrapped_avframe" if track.is_picture else "pcm_f32le")
        timing = (f"-fps_mode:{number}", "passthrough", f"-enc_time_base:{number}", "demux") if track.is_picture else ()
        form = "{t}" if track.is_picture else "{t} {samp}"
        listed = (f"-stats_enc_pre:{number}", self.times[number], f"-stats_enc_pre_fmt:{number}", form) if self.times else ()
        return ("-map", track.stream, f"-filter:{number}", track.filters, *coded, *timing, *listed)
