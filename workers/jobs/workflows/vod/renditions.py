"""The step that encodes all renditions of a source in one run, so that their key frames are at the same times.

Pictures and sound begin at time 0, with the first picture. Frames keep the times of the source; a picture that stands still is
repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from workers.jobs.context import StepContext, StepFailed, StepResult
from workers.jobs.workflows.content_file import probe
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.vod.codecs import aac, h264, heard
from workers.jobs.workflows.vod.ladder import Rendition, ladder
from workers.jobs.workflows.vod.parameters import PackageParameters
from workers.jobs.workflows.vod.reading import Reading, listed, stay
from workers.jobs.workflows.vod.sounds import track_of
from workers.media.file import MediaFile, probe_at
from workers.media.filters import FormedTracks, steady
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
    top, reading = renditions[0], Reading(context, found)
    formed = reading.formed(top.width, top.height)
    shown = (option for number, one in enumerate(renditions) for option in _video(one, number, keys))
    spoken = (option for number, (name, sound) in enumerate(sounds.items(), 1) for option in _audio(sound, number, name))
    encoded = (*formed.options(), "-filter_complex", _filters(found, formed, renditions), *shown, *spoken, *reading.listings())
    encode(context, found.file, *found.file.input(), *encoded, lasts=found.lasts)
    reading.check(made=[top.file, *sounds], tells=not has_source(context))
    names = (*(one.file for one in renditions), *sounds)
    lengths = {name: length for name in names if (length := length_of(context, name))}
    if top.file not in lengths:
        raise StepFailed(f"{found.file.name} shows no picture.", final=True)
    for name in lengths:
        context.keep(context.workspace / name, name)
    return StepResult(
        message="1 rendition" if len(renditions) == 1 else f"{len(renditions)} renditions",
        metadata={
            "duration": round(lengths[top.file], 3),
            "videos": [{"file": one.file, "width": one.width, "height": one.height, "bitRate": one.bit_rate} for one in renditions],
            "audios": [
                {"file": name, **noted} for name, noted in zip(sounds, _noted(context, found), strict=True) if name in lengths
            ],
        },
    )


def _noted(context: StepContext[PackageParameters], found: Source) -> list[Mapping[str, str]]:
    """What the step that made the source has noted of each sound track; else what the source says."""
    noted: Sequence[Mapping[str, str]] = context.results.get("convert", {}).get("sounds", ())
    said: list[Mapping[str, str]] = [track_of(one).noted() for one in found.sounds]
    return [*noted] if len(noted) == len(said) else said


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


def _filters(found: Source, formed: FormedTracks, renditions: tuple[Rendition, ...]) -> str:
    split = "".join(f"[s{number}]" for number in range(len(renditions)))
    sizes = (f"scale={one.width}:{one.height}:flags=bicubic,setsar=1" for one in renditions)
    scaled = (f"[s{number}]{size}[v{number}]" for number, size in enumerate(sizes))
    sounds = (heard(formed.label(number), f"a{number}", sound=sound) for number, sound in enumerate(found.sounds, 1))
    shown = steady(formed.label(0), "shown", stay=stay(found, renditions[0].height))
    return ";".join((shown, f"[shown]split={len(renditions)}{split}", *scaled, *sounds))


def _video(one: Rendition, number: int, keys: Sequence[float]) -> tuple[str, ...]:
    coded = h264(one.lines, bit_rate=one.bit_rate, quality=_QUALITY, keys=keys)
    return ("-map", f"[v{number}]", *coded, *(listed(one.file) if number == 0 else ()), *TRACKS, one.file)


def _audio(sound: Sound, number: int, name: str) -> tuple[str, ...]:
    return ("-map", f"[a{number}]", *aac(sound.channels), *listed(name), *TRACKS, *language(sound.language), name)
