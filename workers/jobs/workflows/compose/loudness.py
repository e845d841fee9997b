"""The loudness of sound by EBU R 128: the integrated loudness of what ffmpeg decodes, in LUFS."""

from __future__ import annotations

from typing import Any, Final

from workers.jobs.context import StepContext
from workers.jobs.workflows.compose.plan import SourceSound
from workers.jobs.workflows.encode import encode
from workers.media.file import MediaFile, seconds
from workers.media.filters import SOUND_LINE, FormedTracks, Track, sound_form
from workers.media.loudness import meter, read_meter

_EARLY: Final = 1.0
_FILE: Final = "loudness.txt"


def meter_filter() -> str:
    """Return the filter whose result `item_loudness` reads."""
    return meter(_FILE)


def item_loudness(context: StepContext[Any]) -> float | None:
    """Return the measured loudness in LUFS; None for silence, or for less than the 0.4 s that a measurement needs."""
    file = context.workspace / _FILE
    integrated = read_meter(file).integrated
    file.unlink(missing_ok=True)
    return integrated


def loudness(
    context: StepContext[Any], file: MediaFile, *, sound: SourceSound, begin: float, lasts: float, channels: int | None = None
) -> float | None:
    """Measure a track between two times, with its own channels or with this number of them. Returns LUFS, or None for silence."""
    formed = steady_sound(sound, channels or sound.channels)
    filters = f"{cut(file, formed, begin=begin, lasts=lasts)},{meter_filter()}[made]"
    output = ("-filter_complex", filters, "-map", "[made]", "-f", "null", "-")
    encode(context, file, *reading(file, begin=begin, lasts=lasts), *formed.options(), *output, lasts=0.0)
    return item_loudness(context)


def reading(file: MediaFile, *, begin: float, lasts: float) -> tuple[str, ...]:
    """Return the source as an input, from shortly before a time. Frames and samples keep their time stamps."""
    seek = max(begin - _EARLY, 0.0)
    return file.stamped(seek, lasts=begin - seek + lasts + _EARLY)


def steady_sound(sound: SourceSound, channels: int) -> FormedTracks:
    """Return the track in one form, whatever it changes to."""
    return FormedTracks((Track(f"0:{sound.index}", sound_form(channels), is_picture=False),))


def cut(file: MediaFile, formed: FormedTracks, *, begin: float, lasts: float) -> str:
    """Return filters for a stretch of sound from a time. Sound that begins late, or has holes, has silence there."""
    moved = f"asetpts=PTS-{seconds(begin + file.start)}/TB"
    return f"[{formed.label(0)}]{moved},{SOUND_LINE},atrim=end={seconds(lasts)}"
