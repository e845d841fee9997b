"""The step that encodes all renditions of a source in one run, so that their key frames are at the same times.

Pictures and sound begin at time 0, with the first picture. Frames keep the times of the source; a picture that stands still is
repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.workflows.content_file import probe
from workers.job.workflows.encode import encode
from workers.job.workflows.vod.codecs import aac, h264
from workers.job.workflows.vod.parameters import PackageParameters
from workers.job.workflows.vod.reading import Reading, listing_options, stay
from workers.job.workflows.vod.sounds import track_of
from workers.media.file import ProbedFile, probe_at
from workers.media.filters import FormedTracks, steady
from workers.media.outputs import TRACKS, language
from workers.media.source import Picture, Sound, SourceFile, lasts, source

USUAL: Final = (1440, 1080, 720, 480, 360, 240)
LARGEST: Final = 2160
_APART: Final = 0.8
"""The largest ratio of a rendition's lines to those of the next larger one; one in between would help no player."""
_FULL_HD: Final = 1920 * 1080
_AT_FULL_HD: Final = 5_000_000
_LEAST: Final = 200_000
_FAST: Final = 35.0


@dataclass(frozen=True, slots=True)
class FilmRendition:
    """A rendition. `bit_rate` is the largest, in bits per second."""

    lines: int
    width: int
    height: int
    bit_rate: int

    @property
    def file(self) -> str:
        return f"video-{self.lines}.mp4"


def ladder(picture: Picture, wanted: Sequence[int] | None) -> tuple[FilmRendition, ...]:
    """Return the renditions from the largest to the smallest.

    `wanted` sizes larger than the source are left out. The source's own size is used if none remains, or if none is wanted.
    """
    top = min(picture.lines, LARGEST)
    if wanted is not None:
        sizes = sorted((lines for lines in wanted if lines <= picture.lines), reverse=True)
    else:
        sizes = [top]
        for lines in USUAL:
            if lines <= sizes[-1] * _APART:
                sizes.append(lines)
    made = [_rendition(picture, lines) for lines in sizes or [top]]
    return tuple({rendition.lines: rendition for rendition in made}.values())


def _rendition(picture: Picture, lines: int) -> FilmRendition:
    scale = lines / picture.lines
    width, height = _even(picture.width * scale), _even(picture.height * scale)
    weight = (width * height / _FULL_HD) ** 0.75 * (1.5 if picture.rate > _FAST else 1.0)
    return FilmRendition(min(width, height), width, height, max(round(_AT_FULL_HD * weight), _LEAST))


def _even(pixels: float) -> int:
    """Round down to an even number, allowing for rounding errors."""
    return max(2 * int((pixels + 0.01) / 2), 2)


CONVERTED: Final = "source.mp4"
"""The name under which an earlier step of the job keeps the source."""
_QUALITY: Final = 21


def make_renditions(context: StepContext[PackageParameters]) -> StepResult:
    media = source(source_file(context))
    renditions = ladder(media.picture, context.parameters.renditions)
    for lines in context.parameters.renditions or ():
        if lines > media.picture.lines:
            context.log(f"No rendition of {lines} lines: the source has {media.picture.lines}.")
    sounds = {f"audio-{number}.mp4": sound for number, sound in enumerate(media.sounds, 1)}
    keys: Sequence[float] = context.results.get("join", {}).get("keys", ())
    top, reading = renditions[0], Reading(context, media)
    formed = reading.formed(top.width, top.height)
    shown = (option for number, rendition in enumerate(renditions) for option in _video(rendition, number, keys))
    spoken = (option for number, (name, sound) in enumerate(sounds.items(), 1) for option in _audio(sound, number, name))
    encoded = (*formed.options(), "-filter_complex", _filters(media, formed, renditions), *shown, *spoken, *reading.listings())
    encode(context, media.file, *media.file.input(), *encoded, lasts=media.lasts)
    reading.check(made=[top.file, *sounds], tells=not has_source(context))
    names = (*(rendition.file for rendition in renditions), *sounds)
    lengths = {name: length for name in names if (length := length_of(context, name))}
    if top.file not in lengths:
        raise StepFailed(f"{media.file.name} shows no picture.", final=True)
    for name in lengths:
        context.keep(context.workspace / name, name)
    return StepResult(
        message="1 rendition" if len(renditions) == 1 else f"{len(renditions)} renditions",
        metadata={
            "duration": round(lengths[top.file], 3),
            "videos": [
                {"file": rendition.file, "width": rendition.width, "height": rendition.height, "bitRate": rendition.bit_rate}
                for rendition in renditions
            ],
            "audios": [
                {"file": name, **noted} for name, noted in zip(sounds, _sound_notes(context, media), strict=True) if name in lengths
            ],
        },
    )


def _sound_notes(context: StepContext[PackageParameters], media: SourceFile) -> list[Mapping[str, str]]:
    """Return the notes on each sound track, of the step that made the source; otherwise those of the source."""
    noted: Sequence[Mapping[str, str]] = context.results.get("convert", {}).get("sounds", ())
    source_notes: list[Mapping[str, str]] = [track_of(sound).noted() for sound in media.sounds]
    return [*noted] if len(noted) == len(source_notes) else source_notes


def length_of(context: StepContext[Any], name: str) -> float:
    """Return the length, in seconds, of a file of the workspace that this step has made."""
    return lasts(probe_at(context, context.workspace / name, name=name, show=("-show_format",)))


def has_source(context: StepContext[PackageParameters]) -> bool:
    """Return True if an earlier step has made the source."""
    return not {"convert", "join"}.isdisjoint(context.results)


def source_file(context: StepContext[PackageParameters]) -> ProbedFile:
    """Return the file that an earlier step converted, otherwise the published file."""
    if has_source(context):
        return probe_at(context, context.job_file(CONVERTED), name="the source")
    return probe(context, f"{context.job.content_id}.mp4")


def _filters(media: SourceFile, formed: FormedTracks, renditions: tuple[FilmRendition, ...]) -> str:
    split = "".join(f"[s{number}]" for number in range(len(renditions)))
    sizes = (f"scale={rendition.width}:{rendition.height}:flags=bicubic,setsar=1" for rendition in renditions)
    scaled = (f"[s{number}]{size}[v{number}]" for number, size in enumerate(sizes))
    sounds = (track_of(sound).graph([formed.label(number)], f"a{number}") for number, sound in enumerate(media.sounds, 1))
    shown = steady(formed.label(0), "shown", stay=stay(media, renditions[0].height))
    return ";".join((shown, f"[shown]split={len(renditions)}{split}", *scaled, *sounds))


def _video(rendition: FilmRendition, number: int, keys: Sequence[float]) -> tuple[str, ...]:
    coded = h264(rendition.lines, bit_rate=rendition.bit_rate, quality=_QUALITY, keys=keys)
    return ("-map", f"[v{number}]", *coded, *(listing_options(rendition.file) if number == 0 else ()), *TRACKS, rendition.file)


def _audio(sound: Sound, number: int, name: str) -> tuple[str, ...]:
    return ("-map", f"[a{number}]", *aac(sound.channels), *listing_options(name), *TRACKS, *language(sound.language), name)
