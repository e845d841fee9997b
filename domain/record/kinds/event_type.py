"""Event type: the type of an Event, such as match or concert; see docs/reference/api/event-types.md."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from domain.record.record import Record


class EventTypeDetails(BaseModel):
    """Fields of an event type. `colour` is #rgb or #rrggbb, as sent."""

    name: str
    reference_id: str | None = None
    colour: str | None = None


class EventType(Record[EventTypeDetails]):
    KIND: ClassVar[str] = "event_type"
