"""Room: the place of an Event; see docs/reference/api/rooms.md."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from domain.record.record import Record


class RoomDetails(BaseModel):
    name: str
    reference_id: str | None = None


class Room(Record[RoomDetails]):
    KIND: ClassVar[str] = "room"
