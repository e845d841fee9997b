"""Rooms: document 2, "Rooms"; DELETE is ours."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from api.kernel.routes import Routes
from api.kernel.wire import Label, Name, Wire
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.records.kinds.room import Room
from projections.records.queries import RecordRow

routes = Routes("/room", tag="Rooms")


class NewRoomBody(Wire):
    name: Name
    reference_id: Label | None = None


class RoomBody(Wire):
    name: Name | None = None
    reference_id: Label | None = None


class RoomWire(Wire):
    """Document 2, "Room": capitalised, as shown there."""

    id: Annotated[UUID, Field(alias="Id")]
    name: Annotated[str, Field(alias="Name")]
    reference_id: Annotated[str, Field(alias="ReferenceId")]


def shaped(room: RecordRow) -> dict[str, Any]:
    return {"Id": room.id, "Name": room.details.name, "ReferenceId": room.details.reference_id or ""}


ROOMS = Resource(Room, "/api/room", shaped)
(
    StandardRoutes(routes, ROOMS, RoomWire, absent=204)
    .add(NewRoomBody, status=201)
    .amend(RoomBody)
    .withdraw()
    .list()
    .by_id()
    .by_reference()
    .events()
)
