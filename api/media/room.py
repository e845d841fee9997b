"""Rooms; see docs/reference/api/rooms.md."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Label, Name, Wire
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.record.kinds.room import Room as RoomRecord
from domain.record.kinds.room import RoomDetails
from domain.record.ports import RecordRow

routes = APIRouter(prefix="/api/room", tags=["Rooms"], route_class=MediaRoute)

_REFERENCE_ID = 'An id in another system; not unique. null or "": no id, shown as "".'


class AddRoomRequest(Wire):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Hall A", "referenceId": "A"}]})

    name: Name = Field(description="The name of the room; required, not blank, not unique.")
    reference_id: Label | None = Field(None, description=_REFERENCE_ID)


class UpdateRoomRequest(Wire):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Hall B"}]})

    name: Name | None = Field(None, description="The name of the room; not blank, not unique. null leaves it unchanged.")
    reference_id: Label | None = Field(None, description=_REFERENCE_ID)


class Room(Wire):
    """A room in a response. Its field names begin with a capital letter, unlike those of all other resources."""

    id: UUID = Field(alias="Id", description="The id of the room; never changes.")
    name: str = Field(alias="Name", description="The name of the room; not unique.")
    reference_id: str = Field(alias="ReferenceId", description='An id in another system; "" for none. Not unique.')

    @classmethod
    def of(cls, row: RecordRow[RoomDetails]) -> Room:
        return cls.model_construct(id=UUID(row.id), name=row.details.name, reference_id=row.details.reference_id or "")


ROOMS = Resource(RoomRecord, "/api/room", Room.of)
(
    StandardRoutes(routes, ROOMS, Room, absent=204)
    .add(AddRoomRequest, status=201)
    .amend(UpdateRoomRequest)
    .delete()
    .list()
    .by_id()
    .by_reference()
)
