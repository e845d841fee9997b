"""Chapter points and their custom properties; see docs/reference/api/chapter-points.md."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
from api.media.chapter_point.requests import (
    ChapterPointPropertyCloneQuery,
    ChapterPointPropertyQuery,
    PutChapterPointPropertyRequest,
    PutChapterPointRequest,
)
from api.media.chapter_point.responses import (
    ChapterPoint,
    ChapterPointProperty,
    ChapterPointPropertyClone,
    ChapterPointTrees,
    chapter_point_with_children,
    in_order,
)
from api.media.custom_property import OwnedProperties, property_routes
from api.media.resource import Resource
from domain.kernel.ports import Outcome
from domain.records.chapter_point_handlers import ChapterPointHandlers
from domain.records.kinds.chapter_point import ChapterPoint as ChapterPointRecord
from domain.records.kinds.custom_property import ChapterPointProperty as ChapterPointPropertyRecord
from domain.records.property_upserts import PropertyChange
from domain.records.record import Record
from domain.records.row import RecordRow
from projections.custom_property.queries import PropertyQueries
from projections.media_event.queries import EventQueries
from projections.records.history import RecordHistory
from projections.records.queries import RecordQueries

routes = Router("/chapterpoint", tag="Chapter points", surface=MEDIA)

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


async def chapter_point_written(request: Request, outcome: Outcome[Any], history: RecordHistory) -> Response:
    point = RecordRow.of(outcome.aggregate)
    return Response(200, await chapter_point_with_children(history.at(outcome.as_of), point), etag=point.version)


@routes.post("/", WRITE, response_model=ChapterPoint, absent=404, respond=chapter_point_written)
async def put_chapter_point(request: Request, body: PutChapterPointRequest, handlers: ChapterPointHandlers) -> Outcome[Record]:
    """Add a chapter point, or change the one with this id. Its propertyModels are added or changed with it; none is removed."""
    properties = [PropertyChange(None, model.model_dump(exclude_unset=True)) for model in body.property_models or ()]
    return await handlers.add_or_change(body.id, POINTS.values(body), properties=properties, invocation=request.invocation)


@routes.get("/{id}", READ, response_model=ChapterPoint, name="get_chapter_point")
async def chapter_point_by_id(
    request: Request, id: UUID, query: FreshQuery, records: RecordQueries, history: RecordHistory
) -> Response:
    """The chapter point with this id and the points below it."""
    point = await records.require(ChapterPointRecord.KIND, id)
    return Response(200, await chapter_point_with_children(history.at(None), point), etag=point.version)


@routes.get("/event/{eventId}", READ, response_model=list[ChapterPoint], absent=None, name="list_chapter_points_of_event")
async def chapter_points_of_event(
    request: Request,
    event_id: UUID,
    query: FreshQuery,
    events: EventQueries,
    records: RecordQueries,
    properties: PropertyQueries,
) -> Response:
    """The chapter points of an Event by startTime, each with the points below it; an empty list for an unknown Event."""
    points = await _points_of_event(event_id, events, records=records)
    owned = await properties.of_owners(ChapterPointPropertyRecord.KIND, [point.id for point in points])
    return Response(200, ChapterPointTrees(points).all(owned))


async def chapter_point_deleted(request: Request, outcome: Outcome[Any], history: RecordHistory) -> Response:
    """Return the deleted point with its properties and the points below it as they were before the deletion."""
    point = RecordRow.of(outcome.aggregate)
    return Response(200, await chapter_point_with_children(history.at(outcome.before), point), etag=point.version)


@routes.delete("/{id}", WRITE, response_model=ChapterPoint, respond=chapter_point_deleted)
async def delete_chapter_point(request: Request, id: UUID, handlers: ChapterPointHandlers) -> Outcome[Record]:
    """Delete a chapter point with its properties; the points below it move up. The response shows its last state."""
    return await handlers.delete(id, invocation=request.invocation)


@routes.get(
    "/customproperty/event/{eventId}",
    READ,
    response_model=list[ChapterPointProperty],
    absent=None,
    name="list_chapter_point_properties_of_event",
)
async def chapter_point_properties_of_event(
    request: Request, event_id: UUID, events: EventQueries, records: RecordQueries, properties: PropertyQueries
) -> Response:
    """The properties of all chapter points of an Event, in the order of the points."""
    ordered = [point.id for point in in_order(await _points_of_event(event_id, events, records=records))]
    owned = await properties.of_owners(ChapterPointPropertyRecord.KIND, ordered)
    return Response(200, [ChapterPointProperty.of(row) for point in ordered for row in owned.get(point, ())])


async def _points_of_event(event_id: UUID, events: EventQueries, *, records: RecordQueries) -> list[RecordRow]:
    event = await events.by_id(event_id)
    return await records.of_parent(ChapterPointRecord.KIND, event_id) if event is not None else []
