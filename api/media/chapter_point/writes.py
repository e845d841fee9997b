"""Adding, changing and deleting chapter points, each with what belongs to it: decisions.md, "Records the documents only name"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from api.kernel.answer import Answer
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.wire import Flag, Label, Text, Wire
from api.media.chapter_point.shape import Chapters
from api.media.custom_property import MOST, PropertyModel
from api.media.property_upserts import Upsert, Wanted, carried_out, upserts
from api.media.resource import Resource
from domain.kernel.command import Command
from domain.kernel.errors import FieldError, Malformed, NotFound
from domain.kernel.ids import new_id
from domain.media_event.aggregate import MediaEvent
from domain.media_event.stream_point import stream_point
from domain.records.kinds.chapter_point import ChapterPoint, check_times
from domain.records.kinds.custom_property import ChapterPointProperty
from domain.records.record import AmendRecord, Record, RegisterRecord, WithdrawRecord
from projections.custom_property.queries import PropertyQueries
from projections.log.ledger import Plan
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries, RecordRow

DEEPEST: Final = 32
"""Levels of points below points: what an answer can nest, and more than a reader can follow."""


def _date_or_time(text: str) -> str:
    try:
        stream_point(text, field="")
    except Malformed:
        raise PydanticCustomError("date_or_time", "must be an ISO 8601 date-time or a time hh:mm:ss[.fff]") from None
    return text


DateOrTime = Annotated[Text, StringConstraints(max_length=64), AfterValidator(_date_or_time)]
"""ISO 8601 or `hh:mm:ss[.fff]`, kept as sent."""


class ChapterPointBody(Wire):
    id: UUID | None = None
    event_id: UUID | None = None
    parent_id: UUID | None = None
    reference_id: Label | None = None
    title: Label | None = None
    tag: Label | None = None
    start_time: DateOrTime | None = None
    end_time: DateOrTime | None = None
    refresh_index: Flag | None = False
    property_models: Annotated[tuple[PropertyModel, ...], Field(max_length=MOST)] | None = ()


def shaped(point: RecordRow) -> dict[str, Any]:
    return Chapters([point]).one(point, {})


POINTS = Resource(ChapterPoint, "/api/chapterpoint", shaped)
"""Without properties and children; they are added by whoever shows a point."""


class ChapterPoints:
    """Chapter points with their properties and children, read and written."""

    def __init__(self, bus: CommandBus, events: EventQueries, records: RecordQueries, properties: PropertyQueries) -> None:
        self._bus = bus
        self._events = events
        self._records = records
        self._properties = properties

    async def put(self, call: Call, body: ChapterPointBody) -> Answer:
        key, values = body.id or new_id(), POINTS.values(body)
        properties: list[Upsert] = []

        async def plan() -> Plan[Record]:
            point, above = await self._upsert(key, values, new=body.id is None)
            wanted = [Wanted(None, one.model_dump(exclude_unset=True)) for one in body.property_models or ()]
            made = upserts(ChapterPointProperty, key, wanted=wanted, stored=await self._properties_of(key))
            properties[:] = made.commands
            return Plan(point, [*above, *made.commands])

        async def show(point: Record) -> Answer:
            own = carried_out(properties, await self._properties_of(key), at=point.modified_on)
            return Answer(200, await self._object(RecordRow.of(point), own), etag=point.version)

        return await self._bus.send(call, plan, show)

    async def _upsert(
        self, key: UUID, values: Mapping[str, Any], *, new: bool
    ) -> tuple[Command[Record], Sequence[Command[Record]]]:
        """The command for the point, and those that hold the points above it in their places while it is carried out."""
        found = None if new else await self._records.find(ChapterPoint.KIND, key)
        if found is None:
            missing = [FieldError(spelled, "is required") for name, spelled in _REQUIRED.items() if name not in values]
            if missing:
                raise Malformed(*missing)
        stored = None if found is None else found.details
        event_id = values["event_id"] if stored is None else values.get("event_id", stored.event_id)
        check_times(values, stored)
        parent = values.get("parent_id")
        above = await self._held_above(key, parent, event_id) if parent is not None else []
        if await self._events.by_id(event_id) is None:
            raise NotFound(MediaEvent.KIND, str(event_id))
        if found is None:
            return RegisterRecord(key, ChapterPoint, values, new=new), above
        return AmendRecord(key, ChapterPoint, values, still={}), above

    async def _held_above(self, key: UUID, parent: UUID, event_id: UUID) -> list[Command[Record]]:
        """A parent is another point of the same Event, and not below this one; nor may it come to be meanwhile."""
        points = {UUID(row.id): row.details.parent_id for row in await self._records.of_parent(ChapterPoint.KIND, event_id)}
        if parent not in points:
            raise Malformed.at("parentId", "there is no such chapter point of this Event")
        above = _upwards(points, parent)
        if key in above:
            raise Malformed.at("parentId", "is the chapter point itself or one below it")
        if len(above) + _height(points, key) > DEEPEST:
            raise Malformed.at("parentId", f"chapter points may be {DEEPEST} levels deep at most")
        return [AmendRecord(one, ChapterPoint, {}, still={"parent_id": points.get(one)}) for one in above]

    async def withdraw(self, call: Call, key: UUID) -> Answer:
        async def plan() -> Plan[Record]:
            details = (await self._records.known(ChapterPoint.KIND, key)).details
            points = await self._records.of_parent(ChapterPoint.KIND, details.event_id)
            up, here = {"parent_id": details.parent_id}, {"parent_id": key}
            return Plan(
                WithdrawRecord(key, ChapterPoint, still=up),
                [
                    *(WithdrawRecord(row.id, ChapterPointProperty, still={}) for row in await self._properties_of(key)),
                    *(AmendRecord(row.id, ChapterPoint, up, still=here) for row in points if row.details.parent_id == key),
                ],
            )

        async def show(point: Record) -> Answer:
            row = RecordRow.of(point)
            return Answer(200, await self._object(row, await self._properties_of(key)), etag=point.version)

        return await self._bus.send(call, plan, show)

    async def one(self, key: UUID) -> Answer:
        found = await self._records.known(ChapterPoint.KIND, key)
        return Answer(200, await self._object(found, await self._properties_of(key)), etag=found.version)

    async def of_event(self, event_id: UUID) -> list[RecordRow]:
        """None for an Event that is not there."""
        event = await self._events.by_id(event_id)
        return await self._records.of_parent(ChapterPoint.KIND, event_id) if event is not None else []

    async def tree(self, event_id: UUID) -> Answer:
        points = await self.of_event(event_id)
        owned = await self._properties.of_owners(ChapterPointProperty.KIND, [point.id for point in points])
        return Answer(200, Chapters(points).top(owned))

    async def _object(self, point: RecordRow, own: Sequence[RecordRow]) -> dict[str, Any]:
        """The point as it will be, with the others of its Event as they are."""
        others = await self._records.of_parent(ChapterPoint.KIND, point.details.event_id)
        chapters = Chapters([*(row for row in others if row.id != point.id), point])
        owned = await self._properties.of_owners(ChapterPointProperty.KIND, chapters.within(point))
        return chapters.one(point, {**owned, point.id: own})

    async def _properties_of(self, key: UUID) -> list[RecordRow]:
        return await self._properties.of_owner(ChapterPointProperty.KIND, key)


_REQUIRED = {"event_id": "eventId", "start_time": "startTime"}


def _upwards(points: Mapping[UUID, UUID | None], start: UUID) -> list[UUID]:
    """The point and all above it. Ends also where two points lie below each other."""
    above: list[UUID] = []
    at: UUID | None = start
    while at is not None and at not in above:
        above.append(at)
        at = points.get(at)
    return above


def _height(points: Mapping[UUID, UUID | None], key: UUID) -> int:
    """Levels from a point down to the lowest below it, its own counted."""
    depths = [above.index(key) + 1 for one in points if key in (above := _upwards(points, one))]
    return max(depths, default=1)
