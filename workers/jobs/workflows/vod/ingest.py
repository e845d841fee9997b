"""`vod_ingest`: a source file becomes the MP4 file of its content, which is packaged as by `vod_package`."""

from __future__ import annotations

from functools import partial
from hashlib import file_digest
from typing import Final, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from workers.jobs.context import StepContext, StepFailed, StepResult
from workers.jobs.media_paths import RelativePath
from workers.jobs.workflow import Step, WebUrl, Workflow
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.http_fetch_verify import Sha256
from workers.jobs.workflows.resumable import ResumableDownload
from workers.jobs.workflows.vod.captions import texts_of
from workers.jobs.workflows.vod.codecs import aac, h264, progressive_sdr
from workers.jobs.workflows.vod.package import packaging
from workers.jobs.workflows.vod.parameters import PackageParameters
from workers.jobs.workflows.vod.quality import QUALITY, Quality, measure_film
from workers.jobs.workflows.vod.renditions import CONVERTED, length_of, make_renditions
from workers.jobs.workflows.vod.texts import TEXTS, keep_texts
from workers.media.file import MediaFile, probe_at
from workers.media.outputs import MP4, language
from workers.media.source import Picture, Sound, source

_DOWNLOADED: Final = "download"
_BIT_RATE: Final = 40_000_000
"""The most for a picture that is encoded again: hardly anything is lost, and renditions are made of it."""
_COPIED_PICTURES: Final = frozenset({"h264", "hevc"})
_COPIED_SOUNDS: Final = frozenset({"aac", "mp3", "ac3", "eac3"})
_TIMED: Final = frozenset({"mp4", "matroska", "mpegts", "flv"})
"""Containers that say when each picture is shown."""


class VodIngest(PackageParameters):
    """Either `file`, a path below the media root, or `url`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"content_id": "8f51eaa1-decb-4863-89d3-9eb99768c67b", "url": "https://origin.example/match.mp4"}]
        }
    )

    file: RelativePath | None = Field(None, description="The source: a path below the media root. Either this or url.")
    url: WebUrl | None = Field(None, description="The source: an http or https address. Either this or file.")
    sha256: Sha256 | None = Field(None, description="SHA-256 that the source must have, 64 hexadecimal digits.")
    quality: Quality | None = Field(None, description="How the quality of the film is checked; by default it is not.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.file is None) == (self.url is None):
            raise PydanticCustomError("source", "need file or url, not both")
        return self


def fetch(context: StepContext[VodIngest]) -> StepResult:
    wanted = context.parameters
    if wanted.url is None:
        return _checked(context)
    download = ResumableDownload(context, wanted.url, size=None)
    download.run()
    if wanted.sha256 is not None and download.sha256 != wanted.sha256:
        download.discard()
        raise StepFailed(f"SHA-256 {wanted.sha256} was expected, {download.sha256} came.")
    context.keep(download.path, _DOWNLOADED, sha256=download.sha256)
    return StepResult(message=f"Downloaded {download.size} bytes", metadata={"size": download.size, "sha256": download.sha256})


def convert(context: StepContext[VodIngest]) -> StepResult:
    """Tracks are copied where MP4 and players can have them; a picture then keeps what it says of its rotation. One that is encoded
    again is turned."""
    found = source(_source_file(context))
    copied = found.picture.codec in _COPIED_PICTURES and not _TIMED.isdisjoint(found.file.formats)
    tracks = (_picture_copied if copied else _picture_encoded)(found.picture)
    sounds = (
        option for place, sound in enumerate(found.sounds) for option in _sound(sound, place, None if copied else found.picture)
    )
    encode(context, found.file, *found.file.input(), *tracks, *sounds, *MP4, CONVERTED, lasts=found.lasts)
    made_length = length_of(context, CONVERTED)
    found.check_length(made_length)
    context.keep(context.workspace / CONVERTED, CONVERTED)
    how = "copied" if copied else "encoded again"
    texts = keep_texts(context, texts_of(context, found.file, lasts=made_length))
    return StepResult(message=f"The picture of {found.file.name} was {how}", metadata={"copied": copied, TEXTS: texts})


def _checked(context: StepContext[VodIngest]) -> StepResult:
    wanted, name = context.parameters.sha256, str(context.parameters.file)
    path = context.path(name)
    if not path.is_file():
        raise StepFailed(f"There is no file {name}.", final=True)
    if wanted is not None:
        with path.open("rb") as opened:
            digest = file_digest(opened, "sha256").hexdigest()
        if digest != wanted:
            raise StepFailed(f"SHA-256 {wanted} was expected; {name} has {digest}.", final=True)
    return StepResult(message=f"Found {name}")


def _source_file(context: StepContext[VodIngest]) -> MediaFile:
    name = context.parameters.file
    if name is not None:
        return probe_at(context, context.path(name), name=name)
    return probe_at(context, context.job_file(_DOWNLOADED), name="the downloaded file")


def _picture_copied(picture: Picture) -> tuple[str, ...]:
    """Players of Apple know HEVC by one of its two names only."""
    tag = ("-tag:v", "hvc1") if picture.codec == "hevc" else ()
    return ("-map", f"0:{picture.index}", "-c:v", "copy", *tag)


def _picture_encoded(picture: Picture) -> tuple[str, ...]:
    size = picture.colours.film.sized(picture.width // 2 * 2, picture.height // 2 * 2)
    filters = ("-filter:v", ",".join((*progressive_sdr(picture), size)))
    return ("-map", f"0:{picture.index}", *filters, *h264(picture.lines, bit_rate=_BIT_RATE, quality=17))


def _sound(sound: Sound, place: int, picture: Picture | None) -> tuple[str, ...]:
    """With a picture that is encoded again sound is too: both then begin at time 0."""
    coded = (
        (f"-c:a:{place}", "copy")
        if picture is None and sound.codec in _COPIED_SOUNDS
        else aac(sound, place, at_zero=picture is not None)
    )
    return ("-map", f"0:{sound.index}", *coded, *language(sound.language, place))


VOD_INGEST: Final = Workflow(
    "vod_ingest",
    VodIngest,
    (
        Step("fetch", fetch, needs_network=True),
        Step("convert", convert, after=("fetch",)),
        Step("renditions", make_renditions, after=("convert",)),
        Step(QUALITY, partial(measure_film, kept=CONVERTED), after=("convert",)),
        *packaging(QUALITY),
    ),
    description="Fetches a film, converts it to MP4 and packages it for HLS and DASH.",
)
