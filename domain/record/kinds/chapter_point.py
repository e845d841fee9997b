"""Chapter point: a named place in the stream of an Event; see docs/reference/api/chapter-points.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final
from uuid import UUID

from pydantic import BaseModel

from domain.kernel.errors import Conflict, Malformed
from domain.kernel.stream_time import stream_point
from domain.record.record import Record

EVENT: Final = "event"
"""The kind of a chapter point's owner."""


class ChapterPointDetails(BaseModel):
    """Fields of a chapter point. Times are ISO 8601 or `hh:mm:ss[.fff]` from the start of the stream, stored as sent."""

    event_id: UUID
    parent_id: UUID | None = None
    reference_id: str | None = None
    title: str | None = None
    tag: str | None = None
    start_time: str
    end_time: str | None = None


class ChapterPoint(Record[ChapterPointDetails]):
    """A chapter point. It refers to its Event without a link, so the Event can be deleted and restored independently."""

    KIND: ClassVar[str] = "chapter_point"
    LINKS: ClassVar[Mapping[str, str]] = {"parent_id": "chapter_point"}
    PARENT: ClassVar[str] = "event_id"

    @classmethod
    def prepare_values(cls, values: Mapping[str, Any], stored: ChapterPointDetails | None) -> Mapping[str, Any]:
        if stored is not None and values.get("event_id", stored.event_id) != stored.event_id:
            raise Conflict("the chapter point belongs to another Event")
        check_times(values, stored)
        return values


def check_times(values: Mapping[str, Any], stored: ChapterPointDetails | None) -> None:
    """Check that a chapter point does not end before it starts. A time from the start of the stream and a date-time cannot be
    compared."""
    start, end = (values.get(name, getattr(stored, name, None)) for name in ("start_time", "end_time"))
    if stream_point(end, field="endTime").is_before(stream_point(start, field="startTime")):
        raise Malformed.at("endTime", "is before startTime")
