"""The step that encodes all renditions of a source in one run, so that their key frames are at the same times.

Pictures and sound begin at time 0, with the first picture. Frames keep the times of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from workers.jobs.context import StepContext, StepFailed, StepResult
from workers.jobs.workflows.content_file import probe
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.vod.codecs import aac, h264, progressive_sdr
from workers.jobs.workflows.vod.ladder import Rendition, ladder
from workers.jobs.workflows.vod.parameters import PackageParameters
from workers.media.file import MediaFile, probe_at
from workers.media.outputs import TRACKS, language
from workers.media.source import Sound, Source, lasts, source

CONVERTED: Final = "source.mp4"
"""What an earlier step of the job kept as the source."""
_QUALITY: Final = 21


def make_renditions(context: StepContext[PackageParameters]) -> StepResult:
    found = source(source_file(context))
    renditions = ladder(found.picture, context.parameters.renditions)
    for lines in context.parameters.renditions or ():
        if lines > found.picture.lines:
            context.log(f"No rendition of {lines} lines: the source has {found.picture.lines}.")
    sounds = {f"audio-{number}.mp4": sound for number, sound in enumerate(found.sounds, 1)}
    keys: Sequence[float] = context.results.get("join", {}).get("keys", ())
    shown = (option for number, one in enumerate(renditions) for option in _video(one, number, keys))
    heard = (option for name, sound in sounds.items() for option in _audio(sound, name))
    encode(
        context, found.file, *found.file.input(), "-filter_complex", _filters(found, renditions), *shown, *heard, lasts=found.lasts
    )
    names = (*(one.file for one in renditions), *sounds)
    lengths = {name: length for name in names if (length := length_of(context, name))}
    if renditions[0].file not in lengths:
        raise StepFailed(f"{found.file.name} shows no picture.", final=True)
    found.check_length(max(lengths.values()))
    for name in lengths:
        context.keep(context.workspace / name, name)
    return StepResult(
        message="1 rendition" if len(renditions) == 1 else f"{len(renditions)} renditions",
        metadata={
            "duration": round(lengths[renditions[0].file], 3),
            "videos": [{"file": one.file, "width": one.width, "height": one.height, "bitRate": one.bit_rate} for one in renditions],
            "audios": [{"file": name, "language": sound.language} for name, sound in sounds.items() if name in lengths],
        },
    )


def length_of(context: StepContext[Any], name: str) -> float:
    """How many seconds a file of the workspace lasts, that was made by this step."""
    return lasts(probe_at(context, context.workspace / name, name=name, show=("-show_format",)))


def has_source(context: StepContext[PackageParameters]) -> bool:
    """Whether an earlier step has made the source."""
    return not {"convert", "join"}.isdisjoint(context.results)


def source_file(context: StepContext[PackageParameters]) -> MediaFile:
    """What an earlier step converted, else the file that is published."""
    if has_source(context):
        return probe_at(context, context.job_file(CONVERTED), name="the source")
    return probe(context, f"{context.job.content_id}.mp4")


def _filters(found: Source, renditions: tuple[Rendition, ...]) -> str:
    split = "".join(f"[s{number}]" for number in range(len(renditions)))
    once = ",".join((*progressive_sdr(found.picture), f"split={len(renditions)}"))
    film = found.picture.colours.film
    scaled = (f"[s{number}]{film.sized(one.width, one.height)}[v{number}]" for number, one in enumerate(renditions))
    return ";".join((f"[0:{found.picture.index}]{once}{split}", *scaled))


def _video(one: Rendition, number: int, keys: Sequence[float]) -> tuple[str, ...]:
    return ("-map", f"[v{number}]", *h264(one.lines, bit_rate=one.bit_rate, quality=_QUALITY, keys=keys), *TRACKS, one.file)


def _audio(sound: Sound, name: str) -> tuple[str, ...]:
    return ("-map", f"0:{sound.index}", *aac(sound, at_zero=True), *TRACKS, *language(sound.language), name)
