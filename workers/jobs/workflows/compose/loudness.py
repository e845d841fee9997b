"""How loud sound is, by EBU R 128: the integrated loudness of what ffmpeg decodes, in LUFS."""

from __future__ import annotations

from typing import Any, Final

from workers.jobs.context import StepContext
from workers.jobs.workflows.compose.plan import Heard
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.vod.codecs import LAYOUTS
from workers.media.file import MediaFile, seconds
from workers.media.loudness import meter, read_meter

WANTED: Final = -23.0
_EARLY: Final = 1.0
_FILE: Final = "loudness.txt"


def meter_filter() -> str:
    """The filter whose result `item_loudness` reads."""
    return meter(_FILE)


def item_loudness(context: StepContext[Any]) -> float | None:
    """LUFS. None: silence, or less than the 0.4 s that are needed to tell."""
    file = context.workspace / _FILE
    integrated = read_meter(file).integrated
    file.unlink(missing_ok=True)
    return integrated


def loudness(
    context: StepContext[Any], file: MediaFile, *, sound: Heard, begin: float, lasts: float, channels: int | None = None
) -> float | None:
    """Of a track between two times, as it is or with so many channels."""
    mixed = "" if channels is None else f",{layout(channels)}"
    filters = f"{cut(begin, lasts)}{mixed},{meter_filter()}"
    output = ("-map", f"0:{sound.index}", "-filter:a", filters, "-f", "null", "-")
    encode(context, file, *reading(file, begin=begin, lasts=lasts), *output, lasts=0.0)
    return item_loudness(context)


def reading(file: MediaFile, *, begin: float, lasts: float) -> tuple[str, ...]:
    """The source as an input, from shortly before a time. Times of its tracks then count from `begin`."""
    seek = seek_to(begin)
    return ("-t", seconds(begin - seek + lasts + _EARLY), *file.input(seek))


def seek_to(begin: float) -> float:
    return max(begin - _EARLY, 0.0)


def cut(begin: float, lasts: float) -> str:
    """From the time until so much later. Sound that begins late, or has holes, has silence there."""
    early = begin - seek_to(begin)
    return f"asetpts=PTS-{seconds(early)}/TB,aresample=48000:async=1:first_pts=0,atrim=end={seconds(lasts)}"


def layout(channels: int) -> str:
    return f"aformat=sample_fmts=fltp:channel_layouts={LAYOUTS[channels][0]}"
