"""How loud sound is, by EBU R 128: the integrated loudness of what ffmpeg decodes, in LUFS."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from workers.jobs.context import StepContext
from workers.jobs.workflows.compose.plan import Heard
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.media_file import MediaFile, seconds
from workers.jobs.workflows.vod.codecs import LAYOUTS

WANTED: Final = -23.0
SOFTEST: Final = -65.0
"""What is softer counts as silence: nothing but noise would become loud."""
_EARLY: Final = 1.0
_METER: Final = "ebur128=metadata=1,ametadata=mode=print:key=lavfi.r128.I:file={file}"
_FILE: Final = "loudness.txt"
_KEY: Final = "lavfi.r128.I="


def meter() -> str:
    """The filter whose findings `measured` reads."""
    return _METER.format(file=_FILE)


def measured(context: StepContext[Any]) -> float | None:
    """None: silence, or less than the 0.4 s that are needed to tell."""
    file, found = context.workspace / _FILE, float("-inf")
    try:
        with file.open() as lines:
            for line in lines:
                if line.startswith(_KEY):
                    found = float(line.removeprefix(_KEY))
    except (FileNotFoundError, ValueError):
        return None
    file.unlink()
    return found if isfinite(found) and found > SOFTEST else None


def loudness(
    context: StepContext[Any], file: MediaFile, *, sound: Heard, begin: float, lasts: float, channels: int | None = None
) -> float | None:
    """Of a track between two times, as it is or with so many channels."""
    mixed = "" if channels is None else f",{layout(channels)}"
    filters = f"{cut(begin, lasts)}{mixed},{meter()}"
    output = ("-map", f"0:{sound.index}", "-filter:a", filters, "-f", "null", "-")
    encode(context, file, *reading(file, begin=begin, lasts=lasts), *output, lasts=0.0)
    return measured(context)


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
