"""`encoderSpecific` of the encoders that the product supports: docs/reference/api/encoders.md.

A channel may store anything there. It is therefore checked when an encoder is started or tested, and errors are reported then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr
from pydantic_core import PydanticCustomError

from domain.channel.encoding import EncoderPlan
from domain.channel.streaming_options import EncoderOptions
from domain.kernel.json_document import Section, WriteOnly, checked, one_of

M = TypeVar("M", bound=Section)

FIELD: Final = "encoderSpecific"
SEGMENT: Final = 2.0
DVR: Final = 60
LONGEST_DVR: Final = 7_200
"""The limit of a window in seconds, for playlists that are sent: each has an entry for every segment, and is sent again after
each."""
SAMPLE_RATE: Final = 48_000
_MOST_RENDITIONS: Final = 8
_MOST_INPUTS: Final = 16


def _within(least: float, most: float, words: str) -> AfterValidator:
    def check(value: float) -> float:
        if not (math.isfinite(value) and least <= value <= most):
            raise PydanticCustomError("within", "{expected}", {"expected": f"must be {words}"})
        return value

    return AfterValidator(check)


def _even(value: int) -> int:
    if value % 2:
        raise PydanticCustomError("even", "must be even")
    return value


_Size = Annotated[StrictInt, _within(16, 8_192, "from 16 to 8192"), AfterValidator(_even)]
_Fps = Annotated[float, _within(1, 120, "from 1 to 120")]


class Source(Section):
    """A source of an encoder. `file` is below the media root, `video` and `audio` are devices of the machine."""

    type: Annotated[StrictStr, one_of("test", "file", "device", "url")] | None = None
    pattern: Annotated[StrictStr, one_of("testsrc2", "smptebars", "smptehdbars", "pal75bars")] | None = None
    file: StrictStr | None = None
    loop: StrictBool | None = None
    url: StrictStr | None = Field(None, repr=False)
    video: StrictStr | None = None
    audio: StrictStr | None = None


class Rendition(Section):
    height: _Size | None = None
    width: _Size | None = None
    bitrate: Annotated[StrictInt, _within(32_000, 100_000_000, "from 32000 to 100000000")] | None = None
    fps: _Fps | None = None


class AudioInputEntry(Section):
    id: StrictStr | None = None
    name: StrictStr | None = None
    index: Annotated[StrictInt, _within(0, 63, "from 0 to 63")] | None = None
    language: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9-]{0,35}$")] | None = None


class FfmpegSpecific(Section):
    source: Source | None = None
    renditions: Annotated[tuple[Rendition, ...], Field(max_length=_MOST_RENDITIONS)] | None = None
    audio_inputs: Annotated[tuple[AudioInputEntry, ...], Field(max_length=_MOST_INPUTS)] | None = None
    key_frame_interval: Annotated[float, _within(0.5, 20, "from 0.5 to 20 seconds")] | None = None
    audio_bitrate: Annotated[StrictInt, _within(16_000, 512_000, "from 16000 to 512000")] | None = None
    delete_segments: StrictBool | None = None


class HttpSpecific(Section):
    url: StrictStr | None = Field(None, repr=False)
    api_key: WriteOnly = None


@dataclass(frozen=True, slots=True)
class RenditionPlan:
    """A rendition. With `fps` None the frame rate is that of the source."""

    height: int
    width: int | None
    bitrate: int
    fps: float | None


@dataclass(frozen=True, slots=True)
class EncodeSettings:
    """All settings of an encode, with defaults filled in. Times are in seconds."""

    source: Source
    renditions: Sequence[RenditionPlan]
    audio_inputs: Sequence[AudioInputEntry]
    audio_bitrate: int
    segment: float
    """The time between two key frames that begin a segment."""
    window: int
    """The time that playlists reach back."""
    dvr_length: int | None
    """The window that the Event requests."""
    delete_segments: bool
    encode: Mapping[str, str]
    notes: Sequence[str] = ()
    """Requests that were not followed, in sentences."""


def encode_settings(plan: EncoderPlan) -> EncodeSettings:
    """Return the settings of a plan for ffmpeg. Raises `Malformed`, whose messages name members and never values."""
    specific = _checked(FfmpegSpecific, plan.specific)
    options = plan.options
    renditions, notes = _limited(_renditions(specific, options), options)
    return EncodeSettings(
        specific.source or Source.model_construct(type="test"),
        renditions,
        specific.audio_inputs or (),
        int(options.encode.get("-b:a", specific.audio_bitrate or 128_000)),
        options.segment_length or specific.key_frame_interval or SEGMENT,
        min(options.dvr_length or DVR, LONGEST_DVR),
        options.dvr_length,
        (specific.delete_segments or False) if options.archive is None else not options.archive,
        options.encode,
        notes,
    )


def http_settings(plan: EncoderPlan) -> HttpSpecific:
    """Return the settings of a plan for an encoder over HTTP. Raises `Malformed`, whose messages name members and never values."""
    return _checked(HttpSpecific, plan.specific)


def _checked(model: type[M], specific: Mapping[str, object]) -> M:
    return checked(model, json.dumps(specific), field=FIELD)


def _renditions(specific: FfmpegSpecific, options: EncoderOptions) -> Sequence[RenditionPlan]:
    renditions = specific.renditions or (Rendition.model_construct(),)
    bitrate, fps = options.encode.get("-b:v"), options.encode.get("-r")
    return [
        RenditionPlan(
            height=rendition.height or 360,
            width=rendition.width,
            bitrate=int(bitrate) if bitrate else rendition.bitrate or _usual_bitrate(rendition.height or 360),
            fps=float(Fraction(fps)) if fps else rendition.fps,
        )
        for rendition in renditions
    ]


def _limited(renditions: Sequence[RenditionPlan], options: EncoderOptions) -> tuple[Sequence[RenditionPlan], Sequence[str]]:
    """Return the renditions within the Event's limits of bitrates. If none is, the limits were probably meant in another unit or
    for another channel, and all renditions are returned."""
    least, most = options.min_bitrate or 0, options.max_bitrate or math.inf
    within = [rendition for rendition in renditions if least <= rendition.bitrate <= most]
    if within:
        return within, ()
    return renditions, ("No rendition is within the Event's limits of bitrates, so they were not followed.",)


def _usual_bitrate(height: int) -> int:
    """Return the bits per second for H.264 of ordinary content: 1 Mbit/s at 360 lines, 4 at 720, 9 at 1080."""
    return max(200_000, round((height / 360) ** 2 * 1_000_000))
