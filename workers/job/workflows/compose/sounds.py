"""The sound of one item for one track of the film: copied as frames of AAC, or as samples that are encoded when the film is joined.

Both are streams that are joined by their bytes, and each item gets exactly its part of them, so that nothing drifts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from workers.job.context import StepContext, StepFailed
from workers.job.workflows.compose.plan import FilmPlan, PlannedItem, SourceSound
from workers.job.workflows.encode import encode
from workers.job.workflows.packets import is_heard
from workers.job.workflows.vod.codecs import LAYOUTS
from workers.job.workflows.vod.sounds import LoudnessTarget, limiter
from workers.media.codecs import SAMPLES as AAC_SAMPLES
from workers.media.codecs import frames
from workers.media.errors import Unreadable
from workers.media.file import ProbedFile, seconds
from workers.media.filters import SOUND_LINE, FilteredTrack, FormedTracks, sound_form
from workers.media.loudness import meter, read_meter

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
    context: StepContext[Any], file: ProbedFile, *, sound: SourceSound, begin: float, lasts: float, channels: int | None = None
) -> float | None:
    """Measure a track between two times, with its own channels or with this number of them. Returns LUFS, or None for silence."""
    formed = steady_sound(sound, channels or sound.channels)
    filters = f"{cut(file, formed, begin=begin, lasts=lasts)},{meter_filter()}[made]"
    output = ("-filter_complex", filters, "-map", "[made]", "-f", "null", "-")
    encode(context, file, *reading(file, begin=begin, lasts=lasts), *formed.options(), *output, lasts=0.0)
    return item_loudness(context)


def reading(file: ProbedFile, *, begin: float, lasts: float) -> tuple[str, ...]:
    """Return the source as an input, from shortly before a time. Frames and samples keep their time stamps."""
    seek = max(begin - _EARLY, 0.0)
    return file.stamped(seek, lasts=begin - seek + lasts + _EARLY)


def steady_sound(sound: SourceSound, channels: int) -> FormedTracks:
    """Return the track in one form, whatever it changes to."""
    return FormedTracks((FilteredTrack(f"0:{sound.index}", sound_form(channels), is_picture=False),))


def cut(file: ProbedFile, formed: FormedTracks, *, begin: float, lasts: float) -> str:
    """Return filters for a stretch of sound from a time. Sound that begins late, or has holes, has silence there."""
    moved = f"asetpts=PTS-{seconds(begin + file.start)}/TB"
    return f"[{formed.label(0)}]{moved},{SOUND_LINE},atrim=end={seconds(lasts)}"


_BYTES: Final = 2
"""Bytes in a sample."""
_TRIES: Final = 3
_NEAR: Final = 0.3
"""The accepted difference in LU. A limiter reduces the loudness of amplified sound, which is then amplified once more."""
_EARLY: Final = 1.0


def sound(context: StepContext[Any], plan: FilmPlan, *, item: PlannedItem, file: ProbedFile, track: int) -> Path:
    piece, index = context.workspace / f"sound-{track}.piece", item.sounds[track]
    if index is not None and plan.tracks.copied:
        _copy_sound(context, plan, item=item, file=file, sound=item.part.sounds[index], piece=piece)
        return piece
    first, last = plan.samples(item)
    channels, samples = plan.tracks.channels[track], last - first
    if index is None:
        return _write_silence(piece, samples * channels * _BYTES)
    heard = item.part.sounds[index]
    if not is_heard(context, file, track=heard.index, begin=item.begin, lasts=plan.time(item.frames)):
        return _write_silence(piece, samples * channels * _BYTES)
    _encode_sound(context, plan, item=item, file=file, sound=heard, channels=channels, piece=piece)
    if piece.stat().st_size != samples * channels * _BYTES:
        span = f"from {item.begin:.3f} s to {item.begin + plan.time(item.frames):.3f} s"
        raise StepFailed(f"The sound of {file.name} cannot be decoded {span}.", final=True)
    return piece


def _write_silence(piece: Path, size: int) -> Path:
    with piece.open("wb") as silent:
        silent.truncate(size)
    return piece


def _encode_sound(
    context: StepContext[Any],
    plan: FilmPlan,
    *,
    item: PlannedItem,
    file: ProbedFile,
    sound: SourceSound,
    channels: int,
    piece: Path,
) -> None:
    """Write the samples at the wanted loudness, unless the sound is silent."""
    begin, lasts = item.begin, plan.time(item.frames)
    first, last = plan.samples(item)
    formed = steady_sound(sound, channels)
    target = context.parameters.playlist.loudness or LoudnessTarget()
    source = loudness(context, file, sound=sound, begin=begin, lasts=lasts, channels=channels)
    gain = 0.0 if source is None else target.lufs - source
    for _ in range(_TRIES):
        louder = (f"volume={gain:.3f}dB", *(limiter(target.peak) if gain > 0 else ()))
        exact = f"apad=whole_len={last - first},atrim=end_sample={last - first}"
        filters = ",".join((cut(file, formed, begin=begin, lasts=lasts), *louder, meter_filter(), exact))
        output = ("-filter_complex", f"{filters}[made]", "-map", "[made]", "-c:a", "pcm_s16le", "-f", "s16le", piece.name)
        encode(context, file, *reading(file, begin=begin, lasts=lasts), *formed.options(), *output, lasts=0.0)
        made = item_loudness(context)
        if source is None or made is None or abs(made - target.lufs) <= _NEAR:
            return
        gain += target.lufs - made


def _copy_sound(
    context: StepContext[Any], plan: FilmPlan, *, item: PlannedItem, file: ProbedFile, sound: SourceSound, piece: Path
) -> None:
    """Write the frames that are nearest to the picture, with silent frames if the source has none there."""
    lasts = AAC_SAMPLES / sound.rate
    first, last = plan.samples(item, unit=AAC_SAMPLES)
    begin = round((item.begin + first * lasts - plan.time(item.first) - sound.begins) / lasts)
    from_, until = (sound.begins + file.start + (place - 0.5) * lasts for place in (max(begin, 0), begin + last - first))
    seek = max(from_ - file.start - _EARLY, 0.0)
    inputs = (*file.stamped(seek, lasts=until - file.start - seek + _EARLY), "-map", f"0:{sound.index}")
    copy_options = ("-c", "copy", "-bsf:a", f"noise=drop=lt(pts*tb\\,{seconds(from_)})+gte(pts*tb\\,{seconds(until)})")
    encode(context, file, *inputs, *copy_options, "-f", "adts", "copied.aac", lasts=0.0)
    copied = context.workspace / "copied.aac"
    read = _frames(copied)[: last - first]
    copied.unlink()
    before = min(max(-begin, 0), last - first - len(read))
    after = last - first - len(read) - before
    silent = _silent(context, file, sound=sound) if before or after else b""
    piece.write_bytes(b"".join((silent * before, *read, silent * after)))


def _silent(context: StepContext[Any], file: ProbedFile, *, sound: SourceSound) -> bytes:
    """Return a frame of silence."""
    nothing = f"anullsrc=sample_rate={sound.rate}:channel_layout={LAYOUTS[sound.channels][0]}"
    made = ("-frames:a", "4", "-c:a", "aac", "-f", "adts", "silent.aac")
    encode(context, file, "-f", "lavfi", "-i", nothing, *made, lasts=0.0)
    return _frames(context.workspace / "silent.aac")[-1]


def _frames(file: Path) -> list[bytes]:
    try:
        return list(frames(file.read_bytes()))
    except Unreadable as fault:
        raise StepFailed(f"The sound of a source cannot be copied: {fault}.", final=True) from None
