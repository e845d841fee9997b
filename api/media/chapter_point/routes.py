"""Chapter points: decisions.md, "Records the documents only name"; document 2, "Chapter point custom properties"."""

from __future__ import annotations

from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.pages import FreshQuery
from api.kernel.routes import Routes
from api.kernel.wire import Flag, Wire
from api.media.chapter_point.shape import chapter_property_object, in_order
from api.media.chapter_point.writes import ChapterPointBody, ChapterPoints
from api.media.custom_property import PropertyBody, PropertyOwner, property_routes
from domain.records.kinds.custom_property import ChapterPointProperty
from projections.custom_property.queries import PropertyQueries

routes = Routes("/chapterpoint", tag="Chapter points")


class ChapterPropertyWire(Wire):
    """Document 2, "Chapter point custom property"."""

    id: UUID
    key: str
    category: str
    value: str | None
    chapter_point_id: UUID


class ChapterPropertyBody(PropertyBody):
    """refreshIndex is accepted; there is no index that could be behind."""

    refresh_index: Flag | None = False


class ChapterPointWire(Wire):
    id: UUID
    event_id: UUID
    parent_id: UUID | None
    reference_id: str
    title: str
    tag: str | None
    start_time: str
    end_time: str | None
    chapter_point_custom_properties: list[ChapterPropertyWire]
    children: list[ChapterPointWire]


PROPERTIES = PropertyOwner(
    ChapterPointProperty,
    "/chapterpoint/customproperty",
    chapter_property_object,
    ChapterPropertyWire,
    owner_id="chapterPointId",
    source_id="sourceChapterId",
    target_id="targetChapterId",
    body=ChapterPropertyBody,
)
custom_properties = property_routes(PROPERTIES)


@routes.post("/", WRITE, answers=ChapterPointWire)
async def put_chapter_point(call: Call, body: ChapterPointBody, points: ChapterPoints) -> Answer:
    """Add a chapter point, or change the one with this id. Its propertyModels are added or changed with it; none is removed."""
    return await points.put(call, body)


@routes.get("/{id}", READ, answers=ChapterPointWire)
async def chapter_point_by_id(call: Call, id: UUID, query: FreshQuery, points: ChapterPoints) -> Answer:
    """One chapter point, with the points below it."""
    return await points.one(id)


@routes.get("/event/{eventId}", READ, answers=list[ChapterPointWire])
async def chapter_points_of_event(call: Call, event_id: UUID, query: FreshQuery, points: ChapterPoints) -> Answer:
    """The chapter points of an Event by startTime, each with the points below it; none for an Event that is not there."""
    return await points.tree(event_id)


@routes.delete("/{id}", WRITE, answers=ChapterPointWire)
async def withdraw_chapter_point(call: Call, id: UUID, points: ChapterPoints) -> Answer:
    """Delete a chapter point with its properties; the points below it move up. The answer is the point as it last was."""
    return await points.withdraw(call, id)


@routes.get("/customproperty/event/{eventId}", READ, answers=list[ChapterPropertyWire])
async def chapter_properties_of_event(call: Call, event_id: UUID, points: ChapterPoints, properties: PropertyQueries) -> Answer:
    """The properties of all chapter points of an Event, point by point."""
    ordered = [point.id for point in in_order(await points.of_event(event_id))]
    owned = await properties.of_owners(ChapterPointProperty.KIND, ordered)
    return Answer(200, [chapter_property_object(row) for point in ordered for row in owned.get(point, ())])
