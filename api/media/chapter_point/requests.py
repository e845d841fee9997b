"""Requests for chapter points and their custom properties."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from api.kernel.wire import Flag, Label, Text, Wire
from api.media.custom_property import MAX_PROPERTIES, CloneQuery, NamedProperty, PropertyQuery, PutPropertyRequest
from domain.kernel.errors import Malformed
from domain.kernel.stream_time import stream_point

_REFRESH_INDEX = "Accepted and ignored: every read shows the latest state."


def _date_or_time(text: str) -> str:
    try:
        stream_point(text, field="")
    except Malformed:
        raise PydanticCustomError("date_or_time", "must be an ISO 8601 date-time or a time hh:mm:ss[.fff]") from None
    return text


DateOrTime = Annotated[Text, StringConstraints(max_length=64), AfterValidator(_date_or_time)]
"""A time in ISO 8601 or as `hh:mm:ss[.fff]`, stored as sent."""


class PutChapterPointRequest(Wire):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "eventId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                    "startTime": "00:01:30",
                    "title": "Goal",
                    "propertyModels": [{"category": "web", "key": "icon", "value": "ball"}],
                }
            ]
        }
    )

    id: UUID | None = Field(
        None, description="The chapter point to change; unknown: a new one with this id. Absent or null: a new one."
    )
    event_id: UUID | None = Field(
        None, description="The Event; required for a new chapter point, unknown is 404. It never changes."
    )
    parent_id: UUID | None = Field(None, description="The chapter point above, of the same Event. null: none.")
    reference_id: Label | None = Field(None, description='An id in another system. null or "" clears it.')
    title: Label | None = Field(None, description='The title. null or "" clears it.')
    tag: Label | None = Field(None, description='A free text of the caller, unrelated to the tags of Events. null or "" clears it.')
    start_time: DateOrTime | None = Field(
        None,
        description="Start: ISO 8601 or hh:mm:ss[.fff] from the start of the stream; required for a new one. "
        "null leaves it unchanged.",
    )
    end_time: DateOrTime | None = Field(None, description="End: ISO 8601 or hh:mm:ss[.fff], not before `startTime`. null: no end.")
    refresh_index: Flag | None = Field(False, description=_REFRESH_INDEX)
    property_models: Annotated[tuple[NamedProperty, ...], Field(max_length=MAX_PROPERTIES)] | None = Field(
        (), description="Custom properties to add or change with it, at most 1000; none is removed."
    )


class PutChapterPointPropertyRequest(PutPropertyRequest):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"chapterPointId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "category": "web", "key": "icon", "value": "ball"}
            ]
        }
    )

    owner_id: UUID | None = Field(
        None,
        alias="chapterPointId",
        description="The chapter point that owns the property; required for a new one, unknown is 404. "
        "For a property of another chapter point it is 409.",
    )
    refresh_index: Flag | None = Field(False, description=_REFRESH_INDEX)


class ChapterPointPropertyQuery(PropertyQuery):
    owner_id: UUID | None = Field(None, alias="chapterPointId", description="Properties of this chapter point.")


class ChapterPointPropertyCloneQuery(CloneQuery):
    source_id: UUID = Field(alias="sourceChapterId", description="The chapter point to copy from; required.")
    target_id: UUID = Field(alias="targetChapterId", description="The chapter point to copy to; required.")
