"""Event types: document 2, "Event Types"; DELETE is ours.

A type without a reference id or colour shows "" for it, as document 2 calls both strings; an Event of no type has null for its
colour, as for every name of an absent link."""

from __future__ import annotations

import re
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.kernel.answer import Answer
from api.kernel.auth import WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes
from api.kernel.wire import Label, Name, Wire
from api.media.event.changes import EventChanges
from api.media.event.documented import EventWire
from api.media.event.show import EventAnswers
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import AmendEvent, Replacement
from domain.records.kinds.event_type import EventType
from projections.log.ledger import Plan
from projections.records.queries import RecordRow

routes = Routes("/eventtype", tag="Event types")

_COLOUR = "^(#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}))?$"


def _colour(text: str) -> str:
    if not re.fullmatch(_COLOUR, text):
        raise PydanticCustomError("colour", "must be #rgb or #rrggbb")
    return text


Colour = Annotated[str, AfterValidator(_colour), WithJsonSchema({"type": "string", "pattern": _COLOUR})]
"""#rgb or #rrggbb, kept as sent; the empty text is none."""


class EventTypeBody(Wire):
    name: Name | None = None
    reference_id: Label | None = None
    colour: Colour | None = None


class NewEventTypeBody(EventTypeBody):
    name: Name


class EventTypeLinkBody(Wire):
    """`eventTypeId` must be there; null takes the type away."""

    event_type_id: UUID | None


class EventTypeWire(Wire):
    id: UUID
    name: str
    reference_id: str
    colour: str


def shaped(event_type: RecordRow) -> dict[str, Any]:
    details = event_type.details
    return {
        "id": event_type.id,
        "name": details.name,
        "referenceId": details.reference_id or "",
        "colour": details.colour or "",
    }


EVENT_TYPES = Resource(EventType, "/api/eventtype", shaped)
(
    StandardRoutes(routes, EVENT_TYPES, EventTypeWire)
    .add(NewEventTypeBody)
    .amend(EventTypeBody)
    .withdraw()
    .list()
    .by_id()
    .by_reference()
    .events()
)


@routes.put("/event/{id}", WRITE, answers=EventWire)
async def set_type_of_event(
    call: Call, id: UUID, body: EventTypeLinkBody, bus: CommandBus, changes: EventChanges, answers: EventAnswers
) -> Answer:
    """Set the type of an Event, or take it away; the answer is the Event."""

    async def plan() -> Plan[MediaEvent]:
        await changes.check_links({"event_type_id": body.event_type_id})
        return Plan(AmendEvent(id, (Replacement("event_type_id", body.event_type_id),)))

    return await bus.send(call, plan, lambda event: answers.written(call, event))
