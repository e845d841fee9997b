"""Parameters of `compose`: a playlist in the form in which its composition has it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from domain.composition.values import MOST_ITEMS, MOST_MARKERS
from domain.kernel.errors import Malformed
from domain.kernel.stream_time import stream_point
from workers.job.workflows.vod.parameters import PackageParameters
from workers.job.workflows.vod.sounds import LoudnessTarget

_BOUNDS: Final = ("start", "end")
_CONFIG: Final = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


def _point(text: str) -> str:
    try:
        stream_point(text, field="time")
    except Malformed:
        raise PydanticCustomError("time", "must be an ISO 8601 date-time, or a time hh:mm:ss[.fff] from the start") from None
    return text


def _event(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise PydanticCustomError("event", "must be the id of an Event") from None


Point = Annotated[str, AfterValidator(_point)]


class Marker(BaseModel):
    """A marker of an item. `type` is 0 for an insertion, which shifts what follows, and 1 for a replacement of the media there."""

    model_config = _CONFIG

    startAt: Point  # noqa: N815
    duration: Annotated[str, Field(pattern=r"^[0-9]{2}:[0-5][0-9]:[0-5][0-9]$")]
    frameAccurate: bool | None = None  # noqa: N815
    type: Literal[0, 1] = 0


class Item(BaseModel):
    """An item of a playlist: an Event. Only `start`, `end` and `frameAccurate` of its `properties` are used."""

    model_config = _CONFIG

    type: Literal[0]
    value: Annotated[str, AfterValidator(_event)]
    properties: dict[str, Any] = {}
    markers: tuple[Marker, ...] | None = None

    @field_validator("properties")
    @classmethod
    def _times(cls, given: dict[str, Any]) -> dict[str, Any]:
        for name in _BOUNDS:
            if given.get(name) is not None:
                if not isinstance(given[name], str):
                    raise PydanticCustomError("time", "{name} must be a string", {"name": name})
                _point(given[name])
        return given

    @property
    def start(self) -> str | None:
        return self.properties.get("start")

    @property
    def end(self) -> str | None:
        return self.properties.get("end")

    @property
    def frame_accurate(self) -> bool:
        return self.properties.get("frameAccurate") is True


class Playlist(BaseModel):
    """A playlist of Events. `looped` has no effect on a film."""

    model_config = _CONFIG

    name: str = ""
    looped: bool = False
    loudness: LoudnessTarget | None = None
    items: Annotated[tuple[Item, ...], Field(min_length=1, max_length=MOST_ITEMS)]

    @field_validator("items")
    @classmethod
    def _few_markers(cls, items: tuple[Item, ...]) -> tuple[Item, ...]:
        if sum(len(item.markers or ()) for item in items) > MOST_MARKERS:
            raise PydanticCustomError("markers", "must have at most {most} markers in total", {"most": MOST_MARKERS})
        return items


class Compose(PackageParameters):
    """The parameters of `compose`. `generation` counts the playlists of the composition."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "content_id": "8f51eaa1-decb-4863-89d3-9eb99768c67b",
                    "generation": 0,
                    "playlist": {"items": [{"type": 0, "value": "0b1c6a52-6a4e-4b0e-9d0e-0a5a86d6a0f1"}]},
                }
            ]
        }
    )

    generation: Annotated[int, Field(ge=0)] = Field(description="Number of the playlist among those of the composition, from 0.")
    playlist: Playlist = Field(description="The films in their order: ids of Events, with bounds and markers.")
