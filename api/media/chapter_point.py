"""Chapter points and their custom properties; see docs/reference/api/chapter-points.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Flag, Label, Text, Wire
from api.media.custom_property import (
    MAX_PROPERTIES,
    CloneQuery,
    NamedProperty,
    OwnedProperties,
    PropertyClone,
    PropertyQuery,
    PutPropertyRequest,
    property_routes,
)
from api.media.resource import Resource
from domain.kernel.errors import Malformed
from domain.kernel.ports import Outcome
from domain.kernel.stream_time import stream_point
from domain.record.chapter_point_handlers import ChapterPointHandlers
from domain.record.kinds.chapter_point import ChapterPoint as ChapterPointRecord
from domain.record.kinds.chapter_point import ChapterPointDetails
from domain.record.kinds.custom_property import ChapterPointProperty as ChapterPointPropertyRecord
from domain.record.kinds.custom_property import PropertyDetails
from domain.record.ports import RecordReader, RecordRow
from domain.record.property_upserts import PropertyChange
from domain.record.record import Record
from projections.custom_property.queries import PropertyQueries
from projections.event.queries import EventQueries
from projections.record.history import RecordHistory
from projections.record.queries import RecordQueries

Properties = Mapping[str, Sequence[RecordRow[PropertyDetails]]]
"""Custom properties by the id of their owner."""

_NO_DATE = datetime.min.replace(tzinfo=UTC)


class ChapterPointProperty(Wire):
    """A custom property of a chapter point in a response."""

    id: UUID = Field(description="The id of the property.")
    key: str = Field(description="The second half of the pair, which is unique for the owner.")
    category: str = Field(description="The first half of the pair, which is unique for the owner.")
    value: str | None = Field(description="The value; null for none.")
    chapter_point_id: UUID = Field(description="The chapter point that owns the property.")

    @classmethod
    def of(cls, row: RecordRow[PropertyDetails]) -> ChapterPointProperty:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id),
            key=details.key,
            category=details.category,
            value=details.value,
            chapter_point_id=details.owner_id,
        )


class ChapterPointPropertyClone(PropertyClone):
    source_id: UUID = Field(alias="sourceChapterId", description="The source chapter point.")
    target_id: UUID = Field(alias="targetChapterId", description="The target chapter point.")
    custom_properties: list[ChapterPointProperty] = Field(description="The copies in the target.")


class ChapterPoint(Wire):
    """A chapter point in a response, with the points below it."""

    id: UUID = Field(description="The id of the chapter point.")
    event_id: UUID = Field(description="The Event that it belongs to; never changes.")
    parent_id: UUID | None = Field(description="The chapter point above; null for none.")
    reference_id: str = Field(description='An id in another system; "" for none.')
    title: str = Field(description='The title; "" for none.')
    tag: str | None = Field(description="A free text of the caller; null for none.")
    start_time: str = Field(description="Start, as sent.")
    end_time: str | None = Field(description="End, as sent; null for no end.")
    chapter_point_custom_properties: list[ChapterPointProperty] = Field(description="Its custom properties, by category and key.")
    children: list[ChapterPoint] = Field(description="The chapter points below it, by start.")

    @classmethod
    def of(
        cls,
        row: RecordRow[ChapterPointDetails],
        properties: Sequence[RecordRow[PropertyDetails]] = (),
        children: Sequence[ChapterPoint] = (),
    ) -> ChapterPoint:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id),
            event_id=details.event_id,
            parent_id=details.parent_id,
            reference_id=details.reference_id or "",
            title=details.title or "",
            tag=details.tag,
            start_time=details.start_time,
            end_time=details.end_time,
            chapter_point_custom_properties=[ChapterPointProperty.of(owned) for owned in properties],
            children=list(children),
        )


async def chapter_point_with_children(reader: RecordReader, point: RecordRow[ChapterPointDetails]) -> ChapterPoint:
    """Return the point with its own fields as given, and with its properties and the points below it from `reader`."""
    others = await reader.of_parent(ChapterPointRecord, point.details.event_id)
    trees = ChapterPointTrees([*(row for row in others if row.id != point.id), point])
    return trees.tree_of(point, await reader.of_owners(ChapterPointPropertyRecord, trees.ids_of(point)))


def in_order(points: Iterable[RecordRow[ChapterPointDetails]]) -> list[RecordRow[ChapterPointDetails]]:
    """Sort points by startTime. Times from the start of the stream come before date-times, because they cannot be compared."""
    return sorted(points, key=_start)


def _start(point: RecordRow[ChapterPointDetails]) -> tuple[bool, datetime, str, str]:
    start = stream_point(point.details.start_time, field="startTime")
    return start.is_absolute, start.date_time or _NO_DATE, start.time_span, point.id


class ChapterPointTrees:
    """The points of one Event as trees. If two points are parents of each other, one of them is shown at the top, so that every
    point is shown."""

    def __init__(self, points: Iterable[RecordRow[ChapterPointDetails]]) -> None:
        self._points = in_order(points)
        self._by_id: dict[str | None, RecordRow[ChapterPointDetails]] = {point.id: point for point in self._points}
        self._children: dict[str | None, list[RecordRow[ChapterPointDetails]]] = {}
        for point in self._points:
            self._children.setdefault(_parent(point), []).append(point)

    def all(self, properties: Properties) -> list[ChapterPoint]:
        """Return the points without a parent, each with the points below it."""
        trees: dict[str, ChapterPoint] = {}
        shown: set[str] = set()
        for point in self._points:
            if point.id not in shown:
                root = self._root(point)
                trees[root.id] = self._tree(root, properties, shown)
        return [trees[point.id] for point in self._points if point.id in trees]

    def _root(self, point: RecordRow[ChapterPointDetails]) -> RecordRow[ChapterPointDetails]:
        """Return the highest point above this one; in a cycle, the first point that is reached twice."""
        passed: set[str] = set()
        while point.id not in passed and (parent := self._by_id.get(_parent(point))) is not None:
            passed.add(point.id)
            point = parent
        return point

    def tree_of(self, point: RecordRow[ChapterPointDetails], properties: Properties) -> ChapterPoint:
        return self._tree(point, properties, set())

    def ids_of(self, point: RecordRow[ChapterPointDetails]) -> list[str]:
        """Return the ids of a point and of all points below it."""
        ids: set[str] = set()
        waiting = [point]
        while waiting:
            row = waiting.pop()
            if row.id not in ids:
                ids.add(row.id)
                waiting += self._children.get(row.id, ())
        return sorted(ids)

    def _tree(self, point: RecordRow[ChapterPointDetails], properties: Properties, shown: set[str]) -> ChapterPoint:
        shown.add(point.id)
        children = [self._tree(child, properties, shown) for child in self._children.get(point.id, ()) if child.id not in shown]
        return ChapterPoint.of(point, properties.get(point.id, ()), children)


def _parent(point: RecordRow[ChapterPointDetails]) -> str | None:
    parent = point.details.parent_id
    return None if parent is None else str(parent)


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


routes = APIRouter(prefix="/api/chapterpoint", tags=["Chapter points"], route_class=MediaRoute)

POINTS = Resource(ChapterPointRecord, "/api/chapterpoint", ChapterPoint.of)
PROPERTIES = OwnedProperties(
    resource=Resource(ChapterPointPropertyRecord, "/api/chapterpoint/customproperty", ChapterPointProperty.of),
    model=ChapterPointProperty,
    request=PutChapterPointPropertyRequest,
    query=ChapterPointPropertyQuery,
    clone_query=ChapterPointPropertyCloneQuery,
    clone=ChapterPointPropertyClone,
)
custom_properties = property_routes(PROPERTIES)


async def chapter_point_written(request: Request, outcome: Outcome[Any], history: Service[RecordHistory]) -> Response:
    point = RecordRow.of(outcome.aggregate)
    return Response(await chapter_point_with_children(history.at(outcome.as_of), point), etag=point.version)


@routes.post("/", dependencies=[WRITE], response_model=ChapterPoint)
@rules(absent=404, respond=chapter_point_written)
async def put_chapter_point(
    request: Request, body: PutChapterPointRequest, handlers: Service[ChapterPointHandlers]
) -> Outcome[Record]:
    """Add a chapter point, or change the one with this id. Its propertyModels are added or changed with it; none is removed."""
    properties = [PropertyChange(None, model.model_dump(exclude_unset=True)) for model in body.property_models or ()]
    return await handlers.add_or_change(body.id, POINTS.values(body), properties=properties, invocation=request.invocation)


@routes.get("/{id}", dependencies=[READ], response_model=ChapterPoint, name="get_chapter_point")
async def chapter_point_by_id(
    request: Request,
    id: UUID,
    query: Annotated[FreshQuery, Query()],
    records: Service[RecordQueries],
    history: Service[RecordHistory],
) -> Response:
    """The chapter point with this id and the points below it."""
    point = await records.require(ChapterPointRecord, id)
    return Response(await chapter_point_with_children(history.at(None), point), etag=point.version)


@routes.get("/event/{eventId}", dependencies=[READ], response_model=list[ChapterPoint], name="list_chapter_points_of_event")
@rules(absent="never")
async def chapter_points_of_event(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    query: Annotated[FreshQuery, Query()],
    events: Service[EventQueries],
    records: Service[RecordQueries],
    properties: Service[PropertyQueries],
) -> Response:
    """The chapter points of an Event by startTime, each with the points below it; an empty list for an unknown Event."""
    points = await _points_of_event(event_id, events, records=records)
    owned = await properties.of_owners(ChapterPointPropertyRecord, [point.id for point in points])
    return Response(ChapterPointTrees(points).all(owned))


async def chapter_point_deleted(request: Request, outcome: Outcome[Any], history: Service[RecordHistory]) -> Response:
    """Return the deleted point with its properties and the points below it as they were before the deletion."""
    point = RecordRow.of(outcome.aggregate)
    return Response(await chapter_point_with_children(history.at(outcome.before), point), etag=point.version)


@routes.delete("/{id}", dependencies=[WRITE], response_model=ChapterPoint)
@rules(respond=chapter_point_deleted)
async def delete_chapter_point(request: Request, id: UUID, handlers: Service[ChapterPointHandlers]) -> Outcome[Record]:
    """Delete a chapter point with its properties; the points below it move up. The response shows its last state."""
    return await handlers.delete(id, invocation=request.invocation)


@routes.get(
    "/customproperty/event/{eventId}",
    dependencies=[READ],
    response_model=list[ChapterPointProperty],
    name="list_chapter_point_properties_of_event",
)
@rules(absent="never")
async def chapter_point_properties_of_event(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    events: Service[EventQueries],
    records: Service[RecordQueries],
    properties: Service[PropertyQueries],
) -> Response:
    """The properties of all chapter points of an Event, in the order of the points."""
    ordered = [point.id for point in in_order(await _points_of_event(event_id, events, records=records))]
    owned = await properties.of_owners(ChapterPointPropertyRecord, ordered)
    return Response([ChapterPointProperty.of(row) for point in ordered for row in owned.get(point, ())])


async def _points_of_event(event_id: UUID, events: EventQueries, *, records: RecordQueries) -> list[RecordRow[ChapterPointDetails]]:
    event = await events.by_id(event_id)
    return await records.of_parent(ChapterPointRecord, event_id) if event is not None else []
