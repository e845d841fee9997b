"""Rooms: document 2, "Rooms"; DELETE is ours."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.pages import FreshQuery, PageQuery, ReferenceQuery
from api.kernel.routes import Routes
from api.kernel.wire import Label, Wire
from api.media.event.documented import EventCollectionWire
from api.media.event.show import EventAnswers
from domain.kernel.errors import NotFound, Refused
from domain.kernel.ids import new_id
from domain.records.kinds.room import Room
from domain.records.record import AmendRecord, Record, RegisterRecord, WithdrawRecord
from projections.media_event.filters import EventFilter
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries, RecordRow

routes = Routes("/room", tag="Rooms")

Name = Annotated[Label, Field(min_length=1, pattern=r"\S")]


class NewRoomBody(Wire):
    name: Name
    reference_id: Label | None = None


class RoomBody(Wire):
    name: Name | None = None
    reference_id: Label | None = None


class RoomWire(Wire):
    """Document 2, "Room": capitalised, as shown there."""

    id: UUID = Field(alias="Id")
    name: str = Field(alias="Name")
    reference_id: str = Field(alias="ReferenceId")


@routes.post("/", WRITE, answers=RoomWire, status=201)
async def add_room(call: Call, body: NewRoomBody, bus: CommandBus) -> Answer:
    """Add a room."""
    command = RegisterRecord(str(new_id()), Room, _values(body), new=True)
    return await bus.send(call, command, _created)


@routes.put("/{id}", WRITE, answers=RoomWire)
async def amend_room(call: Call, id: UUID, body: RoomBody, bus: CommandBus) -> Answer:
    """Change a room's name or reference id."""
    return await bus.send(call, AmendRecord(str(id), Room, _values(body)), _written)


@routes.delete("/{id}", WRITE, answers=RoomWire)
async def withdraw_room(call: Call, id: UUID, bus: CommandBus, events: EventQueries) -> Answer:
    """Delete a room that no Event uses; the answer is the room as it last was."""

    async def unused(room: Record) -> Answer:
        """Asked when the room is known and If-Match holds, before anything is written: 404 and 412 come before 409."""
        users = await events.users_of("room_id", id)
        if users:
            raise Refused("the room is in use by " + ", ".join(f"Event {key} {title!r}" for key, title in users))
        return await _written(room)

    return await bus.send(call, WithdrawRecord(str(id), Room), unused)


@routes.get("/", READ, answers=list[RoomWire])
async def list_rooms(call: Call, query: FreshQuery, records: RecordQueries) -> Answer:
    """All rooms, by name."""
    return Answer(200, [shaped(row.id, row.details) for row in await records.all(Room.KIND)])


@routes.get("/{id}", READ, answers=RoomWire, absent=204)
async def room_by_id(call: Call, id: UUID, query: FreshQuery, records: RecordQueries) -> Answer:
    """One room."""
    return _found(await records.find(Room.KIND, id), str(id))


@routes.get("/reference", READ, answers=RoomWire, absent=204)
async def room_by_reference(call: Call, query: ReferenceQuery, records: RecordQueries) -> Answer:
    """The most recently created room with this reference id."""
    return _found(await records.by_reference(Room.KIND, query.id), query.id)


@routes.get("/{id}/events/", READ, answers=EventCollectionWire)
async def events_in_room(call: Call, id: UUID, query: PageQuery, events: EventQueries, answers: EventAnswers) -> Answer:
    """The Events in a room, by scheduled start."""
    wanted = EventFilter(room_id=id, descending=query.order, window=query.window)
    return await answers.listed(call, await events.page(wanted))


def shaped(key: str, details: Any) -> dict[str, Any]:
    return {"Id": key, "Name": details.name, "ReferenceId": details.reference_id or ""}


def _values(body: NewRoomBody | RoomBody) -> dict[str, Any]:
    """What the body sets. A name cannot be cleared: null leaves it as it is."""
    values: dict[str, Any] = {"name": body.name} if body.name is not None else {}
    if "reference_id" in body.model_fields_set:
        values["reference_id"] = body.reference_id or None
    return values


async def _written(room: Record) -> Answer:
    return Answer(200, shaped(room.key, room.details), etag=room.version)


async def _created(room: Record) -> Answer:
    return Answer(201, shaped(room.key, room.details), etag=room.version, location=f"/api/room/{room.key}")


def _found(row: RecordRow | None, key: str) -> Answer:
    if row is None:
        raise NotFound(Room.KIND, key)
    return Answer(200, shaped(row.id, row.details), etag=row.version)
