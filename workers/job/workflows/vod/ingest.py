"""`vod_ingest`: turns a source file into the MP4 file of its content, which is packaged as by `vod_package`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from hashlib import file_digest
from typing import Final, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.media_paths import RelativePath
from workers.job.workflow import Step, WebUrl, Workflow
from workers.job.workflows.encode import encode
from workers.job.workflows.http_fetch_verify import Sha256
from workers.job.workflows.resumable import ResumableDownload
from workers.job.workflows.vod.captions import texts_of
from workers.job.workflows.vod.codecs import aac, h264
from workers.job.workflows.vod.package import packaging
from workers.job.workflows.vod.parameters import PackageParameters
from workers.job.workflows.vod.quality import QUALITY, Quality, measure_film
from workers.job.workflows.vod.reading import Reading, listing_options, stay
from workers.job.workflows.vod.renditions import CONVERTED, length_of, make_renditions
from workers.job.workflows.vod.sounds import MOST_SOURCE_TRACKS, FilmSounds, SoundParameters, film_sounds
from workers.job.workflows.vod.texts import TEXTS, keep_texts
from workers.media.changes import Watch
from workers.media.file import ProbedFile, probe_at
from workers.media.filters import preceded, steady
from workers.media.outputs import MP4
from workers.media.source import MOST_SOUNDS, Picture, Sound, SourceFile, source

_DOWNLOADED: Final = "download"
_BIT_RATE: Final = 40_000_000
"""The largest bit rate of a picture that is encoded again: hardly anything is lost, and renditions are made from it."""
_COPIED_PICTURES: Final = frozenset({"h264", "hevc"})
_COPIED_SOUNDS: Final = frozenset({"aac", "mp3", "ac3", "eac3"})
_TIMED: Final = frozenset({"mp4", "matroska", "mpegts", "flv"})
"""Containers that state when each picture is shown."""
_LATE: Final = 1.0
"""Seconds of sound without a picture after which the film begins black."""
_FRAME_OF_SOUND: Final = 0.05
"""Seconds. Decoders need the frame before the first audible one."""


class VodIngest(PackageParameters, SoundParameters):
    """The parameters of `vod_ingest`: either `file`, a path below the media root, or `url`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"content_id": "8f51eaa1-decb-4863-89d3-9eb99768c67b", "url": "https://origin.example/match.mp4"}]
        }
    )

    file: RelativePath | None = Field(None, description="The source: a path below the media root. Either this or url.")
    url: WebUrl | None = Field(None, description="The source: an http or https address. Either this or file.")
    sha256: Sha256 | None = Field(None, description="SHA-256 that the source must have, 64 hexadecimal digits.")
    quality: Quality | None = Field(None, description="Check of the quality of the film; by default there is none.")

    programme: int | None = Field(
        None,
        ge=1,
        le=65_535,
        description="Number of the programme of a transport stream to read; by default the one with the highest picture.",
        examples=[1],
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.file is None) == (self.url is None):
            raise PydanticCustomError("source", "must have either file or url")
        return self


def fetch(context: StepContext[VodIngest]) -> StepResult:
    parameters = context.parameters
    if parameters.url is None:
        return _check_file(context)
    download = ResumableDownload(context, parameters.url, size=None)
    download.run()
    if parameters.sha256 is not None and download.sha256 != parameters.sha256:
        download.discard()
        raise StepFailed(f"Expected SHA-256 {parameters.sha256}, received {download.sha256}.")
    context.keep(download.path, _DOWNLOADED, sha256=download.sha256)
    return StepResult(message=f"Downloaded {download.size} bytes", metadata={"size": download.size, "sha256": download.sha256})


def convert(context: StepContext[VodIngest]) -> StepResult:
    """Convert the source to the MP4 file of the film.

    Tracks are copied if MP4 and players support them, and if their form does not change; a picture then keeps its rotation flag. A
    picture that is encoded again is turned.
    """
    parameters = context.parameters
    joins = parameters.sounds is not None or parameters.stereo_pairs
    whole = source(_source_file(context), most_sounds=MOST_SOURCE_TRACKS if joins else MOST_SOUNDS)
    sounds = film_sounds(context, _with_black(whole), parameters=parameters)
    media, copied = sounds.media, _can_be_copied(sounds)
    changed = _convert_film(context, sounds, copied)
    if changed:
        what = " and ".join(name for stream, name in _names(media) if stream in changed)
        context.log(f"The form of {what} of {media.file.name} changes in the middle, so it is encoded again.")
        copied = frozenset() if media.picture.index in changed else copied - changed
        _convert_film(context, sounds, copied)
    context.keep(context.workspace / CONVERTED, CONVERTED)
    how = "copied" if media.picture.index in copied else "encoded again"
    texts = keep_texts(context, texts_of(context, media.file, lasts=length_of(context, CONVERTED)))
    message = f"The picture of {media.file.name} was {how}"
    return StepResult(
        message=message,
        metadata={"copied": media.picture.index in copied, "sounds": [track.noted() for track in sounds.tracks], TEXTS: texts},
    )


def _with_black(media: SourceFile) -> SourceFile:
    """Return the source, with black before its picture if the picture begins long after the sound.

    Otherwise a film begins with its first picture. Pictures that cannot be shown, at the start of a recording, do not count: the
    sound that belongs to them is cut.
    """
    earliest = min((sound.begins for sound in media.sounds if sound.begins is not None), default=0.0)
    if media.picture.begins is None or media.picture.begins - earliest < _LATE:
        return media
    media.file.programs.log(f"The picture of {media.file.name} begins {-earliest:.1f} s after the sound; it is black until then.")
    return source(replace(media.file, early=-earliest))


def _can_be_copied(sounds: FilmSounds) -> frozenset[int]:
    """Return the streams that can be copied. If the picture is encoded again, the sound is too: both then begin at time 0."""
    media = sounds.media
    timed = media.picture.codec in _COPIED_PICTURES and not _TIMED.isdisjoint(media.file.formats)
    if not timed or media.file.early:
        return frozenset()
    changed = {part.index for track in sounds.tracks if track.changed for part in track.parts}
    copied_sounds = {sound.index for sound in media.sounds if sound.codec in _COPIED_SOUNDS} - changed
    return frozenset({media.picture.index, *copied_sounds})


def _convert_film(context: StepContext[VodIngest], sounds: FilmSounds, copied: frozenset[int]) -> frozenset[int]:
    """Make the film, and return the streams of copied tracks whose parameters change. If there are any, the film is not used."""
    media, picture, reading = sounds.media, sounds.media.picture, Reading(context, sounds.media, copied)
    width, height = picture.width // 2 * 2, picture.height // 2 * 2
    formed = reading.formed(width, height)
    labels = {int(track.stream.removeprefix("0:")): formed.label(place) for place, track in enumerate(formed.tracks)}
    graphs, outputs = [], []
    if picture.index in copied:
        outputs += ["-map", f"0:{picture.index}", *_picture_copy_options(picture)]
    else:
        graphs.append(_picture_graph(media, labels[picture.index], "track0", size=(width, height)))
        outputs += ["-map", "[track0]", *h264(picture.lines, bit_rate=_BIT_RATE, quality=17), *listing_options("track-0", "0")]
    for place, track in enumerate(sounds.tracks):
        sound, label = track.parts[0], f"track{place + 1}"
        if sound.index in copied:
            outputs += ["-map", f"0:{sound.index}", *_sound_copy_options(sound, place)]
        else:
            graphs.append(sounds.graph(place, labels, made=label))
            outputs += ["-map", f"[{label}]", *aac(track.channels, place), *listing_options(f"track-{place + 1}", str(place + 1))]
        outputs += track.tags(place)
    names = ["track-0", *(f"track-{sounds.files[sound.index] + 1}" for sound in media.sounds)]
    headed = not {"mpegts", "aac"}.isdisjoint(media.file.formats)
    watches = [Watch(stream, codec, context.workspace, headed) for stream, codec in _codecs(media) if stream in copied]
    watched = (option for watch in watches for option in watch.options())
    graph = ("-filter_complex", ";".join(graphs)) if graphs else ()
    made = (*formed.options(), *graph, *outputs, *MP4, CONVERTED, *reading.listings(), *watched)
    used = (picture.index, *(sound.index for sound in media.sounds))
    encode(context, media.file, *media.file.input(used=used), *made, lasts=media.lasts)
    changed = {watch.stream for watch in watches if watch.changed()}
    changed |= {
        stream for (stream, _), track in zip(_names(media), reading.read, strict=True) if track.changes and stream in copied
    }
    if not changed:
        reading.check(made=names, tells=True)
    return frozenset(changed)


def _names(media: SourceFile) -> list[tuple[int, str]]:
    """Return the streams that are used, with their names in the log."""
    sounds = [(sound.index, f"sound track {number}") for number, sound in enumerate(media.sounds, 1)]
    return [(media.picture.index, "the picture"), *(sounds if len(sounds) > 1 else [(stream, "the sound") for stream, _ in sounds])]


def _codecs(media: SourceFile) -> list[tuple[int, str]]:
    return [(media.picture.index, media.picture.codec), *((sound.index, sound.codec) for sound in media.sounds)]


def _picture_graph(media: SourceFile, decoded: str, made: str, *, size: tuple[int, int]) -> str:
    still_picture = stay(media, size[1])
    if not media.file.early:
        return steady(decoded, made, stay=still_picture)
    names = media.picture.colours.film.names
    black = preceded(decoded, "preceded", size=size, until=media.file.early, coded=names)
    return f"{black};{steady('preceded', made, stay=still_picture)}"


def _check_file(context: StepContext[VodIngest]) -> StepResult:
    expected, name = context.parameters.sha256, str(context.parameters.file)
    path = context.path(name)
    if not path.is_file():
        raise StepFailed(f"There is no file {name}.", final=True)
    if expected is not None:
        with path.open("rb") as opened:
            digest = file_digest(opened, "sha256").hexdigest()
        if digest != expected:
            raise StepFailed(f"Expected SHA-256 {expected}; {name} has {digest}.", final=True)
    return StepResult(message=f"Found {name}")


def _source_file(context: StepContext[VodIngest]) -> ProbedFile:
    name = context.parameters.file
    if name is not None:
        return probe_at(context, context.path(name), name=name, programme=context.parameters.programme)
    downloaded = context.job_file(_DOWNLOADED)
    return probe_at(context, downloaded, name="the downloaded file", programme=context.parameters.programme)


def _picture_copy_options(picture: Picture) -> tuple[str, ...]:
    """Return the options of a copied picture. Players of Apple know only one of the two names of HEVC."""
    return ("-c:v", "copy", *(("-tag:v", "hvc1") if picture.codec == "hevc" else ()))


def _sound_copy_options(sound: Sound, place: int) -> tuple[str, ...]:
    """Return the options of copied sound, without what is heard before the first picture."""
    early = sound.begins is None or sound.begins < -_FRAME_OF_SOUND
    cut = (f"-bsf:a:{place}", f"noise=drop=lt((pts+d)*tb\\,{-_FRAME_OF_SOUND:g})") if early else ()
    return (f"-c:a:{place}", "copy", *cut)


VOD_INGEST: Final = Workflow(
    "vod_ingest",
    VodIngest,
    (
        Step("fetch", fetch, needs_network=True),
        Step("convert", convert, after=("fetch",)),
        Step("renditions", make_renditions, after=("convert",)),
        Step(QUALITY, partial(measure_film, film=CONVERTED), after=("convert",)),
        *packaging(QUALITY),
    ),
    description="Fetches a film, converts it to MP4 and packages it for HLS and DASH.",
)
