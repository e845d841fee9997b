"""Request bodies and query parameters of the asset routes. See docs/reference/api/assets.md."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from api.http.model import SentFile
from api.kernel.pages import WHOLE, FreshQuery, Whole
from api.kernel.wire import Between, Flag, Integer, Label, Listed, Name, NamedInt, Text, Wire
from domain.asset.caption_handlers import LONGEST as LONGEST_LANGUAGE
from domain.asset.caption_handlers import NewCaption
from domain.asset.handlers import NewAsset
from domain.asset.ports import AssetFilter
from domain.asset.row import AssetRow
from domain.asset.track_filter import LONGEST, InvalidFilter, track_filter
from domain.asset.values import AssetState, AssetType, CaptionKind
from domain.job.values import DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY
from domain.kernel.errors import Malformed
from domain.kernel.urls import check_url
from projections.asset.queries import AssetPlace
from projections.kernel.database.page import LARGEST
from workers.job.media_paths import path_fault

_EVENT: Final = "8f51eaa1-decb-4863-89d3-9eb99768c67b"
_MOST: Final = 1000
_LARGEST_JOB: Final = 2**63
_FROM_START: Final = "hh:mm:ss[.fff] from the start of the stream"
_EITHER: Final = f"{_FROM_START}; ISO 8601 if the stream carries timecode."


def _number(value: Any) -> float:
    try:
        number = float(value) if type(value) in (int, float, str) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or not isfinite(number):
        raise PydanticCustomError("number", "must be a number")
    return number


def _switch(value: Any) -> Any:
    return int(value) if type(value) is float and value in (0.0, 1.0) else value


def _filter(text: str) -> str:
    try:
        track_filter(text)
    except InvalidFilter as refusal:
        raise PydanticCustomError("filter", "{fault}", {"fault": str(refusal)}) from None
    return text


Switch = Annotated[Flag, BeforeValidator(_switch)]
"""A flag that may also be sent as the number 0 or 1."""
Time = Annotated[Text, StringConstraints(max_length=64)]
Number = BeforeValidator(_number)
Side = Annotated[float, Number, Field(gt=0, le=8192), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 8192})]
Speed = Annotated[float, Number, Field(ge=0, le=100), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100})]
Filter = Annotated[Text, StringConstraints(max_length=LONGEST), AfterValidator(_filter)]
State = Annotated[AssetState, NamedInt(AssetState)]
Type = Annotated[AssetType, NamedInt(AssetType)]


class _Clip(Wire):
    """A part of the stream of an Event."""

    event_id: UUID = Field(description="Id of the Event. Required.")
    start: Time = Field(description=f"Start of the clip: {_FROM_START}. Required.")
    end: Time = Field(description="End of the clip, after its start, in the same form. Required.")


class GifClip(_Clip):
    """The part of a stream that a GIF shows."""


class VideoClip(_Clip):
    """The part of a stream that a video clip contains."""

    start: Time = Field(description=f"Start of the clip: {_EITHER} Required.")
    end: Time = Field(description="End of the clip, after its start, in the same forms. Required.")
    filter: Filter | None = Field(
        default=None,
        description='Filter of the tracks of the clip, such as type=="audio" || type=="video" && bitrate<=1500000. The names '
        "are type, "
        "bitrate, height and language. null: all tracks.",
    )


class _NewAsset(Wire):
    TYPE: ClassVar[AssetType]

    name: Name = Field(description="Name of the asset. Required, not blank.")
    filename: Label | None = Field(
        default=None,
        description="Name of the file, without slashes and `..`; the extension is added. null or absent: derived from the "
        "name. A name "
        "that is already used gets a suffix.",
    )
    priority: Annotated[Integer, Between(HIGHEST_PRIORITY, LOWEST_PRIORITY)] | None = Field(
        default=None, description=f"Priority of the job, from 1 (highest) to 10 (lowest). Default {DEFAULT_PRIORITY}."
    )

    def _request(self, event_id: UUID, times: dict[str, str], *, prefix: str = "", **options: Any) -> NewAsset:
        """Return the command. Options that are null count as absent."""
        return NewAsset(
            type=self.TYPE,
            event_id=event_id,
            name=self.name,
            times=times,
            fields={name: f"{prefix}{name}" for name in times},
            filename=self.filename,
            priority=self.priority or DEFAULT_PRIORITY,
            options={name: value for name, value in options.items() if value is not None},
        )


class RequestImageRequest(_NewAsset):
    """A picture of one frame."""

    TYPE = AssetType.IMAGE
    model_config = ConfigDict(json_schema_extra={"examples": [{"eventId": _EVENT, "name": "Goal", "time": "00:12:03.250"}]})

    event_id: UUID = Field(description="Id of the Event. Required.")
    time: Time = Field(description=f"Time of the frame: {_EITHER} Required.")

    def new_asset(self) -> NewAsset:
        return self._request(self.event_id, {"time": self.time})


class RequestGifRequest(_NewAsset):
    """An animated or still GIF."""

    TYPE = AssetType.GIF
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "clip": {"eventId": _EVENT, "start": "00:12:00.000", "end": "00:12:05.000"},
                    "name": "Goal",
                    "fps": 10,
                    "width": 480,
                    "playbackRepeats": 0,
                }
            ]
        }
    )

    clip: GifClip = Field(description="The part of the stream that the GIF shows. Required.")
    fps: Annotated[Integer, Between(1, 60)] | None = Field(default=None, description="Frames per second, 1 to 60. Default 10.")
    height: Side | None = Field(
        default=None, description="Height in pixels, made even. Without it the picture keeps its aspect ratio."
    )
    width: Side | None = Field(
        default=None, description="Width in pixels, made even. Without it the picture keeps its aspect ratio."
    )
    playback_speed: Speed | None = Field(
        default=None, description="0 is a still picture of the first frame, 1 the normal speed; at most 100. Default 1."
    )
    playback_repeats: Annotated[Integer, Between(-1, 65_535)] | None = Field(
        default=None, description="-1 plays once, 0 repeats endlessly, n repeats n times. Default 0."
    )

    def new_asset(self) -> NewAsset:
        return self._request(
            self.clip.event_id,
            {"start": self.clip.start, "end": self.clip.end},
            prefix="clip.",
            fps=self.fps,
            width=self.width,
            height=self.height,
            playback_speed=self.playback_speed,
            playback_repeats=self.playback_repeats,
        )


class RequestVideoRequest(_NewAsset):
    """A video clip."""

    TYPE = AssetType.VIDEO
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "clip": {"eventId": _EVENT, "start": "00:12:00.000", "end": "00:13:30.000"},
                    "name": "Second half",
                    "mezzanine": True,
                    "frameAccurate": True,
                    "filename": "second-half",
                    "priority": 3,
                }
            ]
        }
    )

    clip: VideoClip = Field(description="The part of the stream that the clip contains. Required.")
    mezzanine: Switch | None = Field(
        default=None, description="true: only the highest video track and the first audio track; false: all tracks. Default false."
    )
    frame_accurate: Switch | None = Field(
        default=None,
        description="true: encoded again, accurate to the frame; false: copied from the key frame before the start. Default false.",
    )
    copy_ts: Switch | None = Field(default=None, description="true: the clip keeps the times of the stream. Default false.")

    def new_asset(self) -> NewAsset:
        return self._request(
            self.clip.event_id,
            {"start": self.clip.start, "end": self.clip.end},
            prefix="clip.",
            mezzanine=self.mezzanine,
            frame_accurate=self.frame_accurate,
            copy_ts=self.copy_ts,
            filter=self.clip.filter,
        )


class AddCaptionRequest(Wire):
    """A text that players show with the film of an Event. Exactly one of file and url is required."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "eventId": _EVENT,
                    "language": "de",
                    "kind": "captions",
                    "name": "Deutsch (Untertitel für Hörgeschädigte)",
                    "url": "https://subtitles.example/match.de.srt",
                }
            ]
        }
    )

    event_id: UUID = Field(description="Id of the Event, which has a VOD file. Required.")
    language: Annotated[Text, StringConstraints(min_length=1, max_length=LONGEST_LANGUAGE)] = Field(
        description="Language of the text, a tag of BCP 47 such as de, en-GB or zh-Hant. Required."
    )
    kind: CaptionKind = Field(
        description="captions (including sounds, for deaf viewers), subtitles, descriptions (of the picture), or forced "
        "(translations of foreign passages only, shown by default). Required."
    )
    name: Name = Field(description="Name of the text, which players list. Required, not blank.")
    file: SentFile | Text | None = Field(
        default=None,
        description="The text as WebVTT, SRT, TTML (IMSC, EBU-TT-D) or SCC: a file of a form (multipart/form-data), or else the "
        "path of a file below the media root.",
    )
    url: Text | None = Field(default=None, description="http or https address from which a job fetches the text.")
    priority: Annotated[Integer, Between(HIGHEST_PRIORITY, LOWEST_PRIORITY)] | None = Field(
        default=None, description=f"Priority of the job, from 1 (highest) to 10 (lowest). Default {DEFAULT_PRIORITY}."
    )

    def new_caption(self) -> NewCaption:
        if (self.file is None) == (self.url is None):
            raise Malformed.at("file", "exactly one of file and url is required")
        if self.url is not None:
            check_url(self.url, field="url")
        if isinstance(self.file, str) and (fault := path_fault(self.file)) is not None:
            raise Malformed.at("file", f"must be the path of a file below the media root: each part of it {fault}")
        sent = self.file if isinstance(self.file, SentFile) else None
        return NewCaption(
            event_id=self.event_id,
            language=self.language,
            kind=self.kind,
            name=self.name,
            content=None if sent is None else sent.content,
            file=self.file if isinstance(self.file, str) else None,
            url=self.url,
            priority=self.priority or DEFAULT_PRIORITY,
        )


class RenameAssetQuery(Wire):
    """The new name of an asset."""

    name: Name = Field(description="The name. Required, not blank. The file keeps its name.")


class _AssetFilters(Wire):
    event_id: UUID | None = Field(default=None, description="Assets of this Event.")
    content_id: Text | None = Field(default=None, description="Assets of this content.")
    job_id: Text | None = Field(default=None, description="The asset that this job produces.")
    name: Text | None = Field(default=None, description="Assets with exactly this name.")
    states: Annotated[tuple[State, ...], Listed] = Field(
        default=(), description="Assets in any of these states, by number or name, comma separated."
    )
    types: Annotated[tuple[Type, ...], Listed] = Field(
        default=(), description="Assets of any of these types, by number or name, comma separated."
    )

    def filter(self, *, extensions: tuple[str, ...] = ()) -> AssetFilter | None:
        """Return the filter; None if nothing can match because the job id is not valid."""
        job = None if self.job_id is None else _job(self.job_id)
        if self.job_id is not None and job is None:
            return None
        return AssetFilter(
            event_id=self.event_id,
            content_id=self.content_id,
            job=job,
            name=self.name,
            states=self.states,
            types=self.types,
            extensions=extensions,
        )


class AssetListQuery(_AssetFilters, FreshQuery):
    """Query of the list of assets."""

    page_size: Whole | None = Field(
        default=None,
        description="Maximum number of assets; sizes above 1000 are reduced to 1000. Absent: 10000. The header Link leads to "
        "the rest.",
    )
    after: str | None = Field(default=None, description="Assets after this position, copied from the address in the header Link.")

    extensions: Annotated[tuple[str, ...], Field(max_length=_MOST), Listed] = Field(
        default=(), description="Assets whose path has one of these endings, ignoring case, such as _sprite.jpg; comma-separated."
    )

    @property
    def limit(self) -> int:
        return WHOLE if self.page_size is None else min(self.page_size, LARGEST)

    @property
    def place(self) -> AssetPlace | None:
        if self.after is None:
            return None
        created, _, key = self.after.partition("~")
        try:
            return AssetPlace(_MOMENT.validate_strings(created), UUID(key))
        except ValueError:
            raise Malformed.at("after", "must be copied from the address in the header Link") from None


_MOMENT: Final = TypeAdapter(AwareDatetime)


def place_of(row: AssetRow) -> str:
    """Return the position of an asset in a list as the parameter `after`."""
    return f"{row.date_created.isoformat()}~{row.id}"


class DeleteAssetsQuery(_AssetFilters):
    """Filters of the assets to delete. At least one is required."""


def _job(text: str) -> int | None:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else _LARGEST_JOB
    return number if number < _LARGEST_JOB else None
