"""The sound of one item for one track of the film: copied as frames of AAC, or as samples that are encoded when the film is joined.

Both are streams that are joined by their bytes, and each item gets exactly its part of them, so that nothing drifts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from workers.jobs.context import StepContext, StepFailed
from workers.jobs.workflows.compose.loudness import cut, item_loudness, loudness, meter_filter, reading, steady_sound
from workers.jobs.workflows.compose.plan import Plan, PlannedItem, SourceSound
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.packets import is_heard
from workers.jobs.workflows.vod.codecs import LAYOUTS
from workers.jobs.workflows.vod.sounds import LoudnessTarget, limiter
from workers.media.adts import SAMPLES as AAC_SAMPLES
from workers.media.adts import frames
from workers.media.errors import Unreadable
from workers.media.file import MediaFile, seconds

_BYTES: Final = 2
"""Bytes in a sample."""
_TRIES: Final = 3
_NEAR: Final = 0.3
"""The accepted difference in LU. A limiter reduces the loudness of amplified sound, which is then amplified once more."""
_EARLY: Final = 1.0


def sound(context: StepContext[Any], plan: Plan, *, item: PlannedItem, file: MediaFile, track: int) -> Path:
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
    context: StepContext[Any], plan: Plan, *, item: PlannedItem, file: MediaFile, sound: SourceSound, channels: int, piece: Path
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
    context: StepContext[Any], plan: Plan, *, item: PlannedItem, file: MediaFile, sound: SourceSound, piece: Path
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


def _silent(context: StepContext[Any], file: MediaFile, *, sound: SourceSound) -> bytes:
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
