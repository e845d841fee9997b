"""Event types; see docs/reference/api/event-types.md."""

from __future__ import annotations

import re
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.http.routing import Service, rules
from api.kernel.auth import WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Label, Name, Wire
from api.media.event.responses import Event
from api.media.event.routes import event_written
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.event.aggregate import MediaEvent
from domain.event.handlers import EventHandlers
from domain.kernel.ports import Outcome
from domain.record.kinds.event_type import EventType as EventTypeRecord
from domain.record.kinds.event_type import EventTypeDetails
from domain.record.ports import RecordRow

routes = APIRouter(prefix="/api/eventtype", tags=["Event types"], route_class=MediaRoute)

_COLOUR = "^(#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}))?$"


def _colour(text: str) -> str:
    if not re.fullmatch(_COLOUR, text):
        raise PydanticCustomError("colour", "must be #rgb or #rrggbb")
    return text


Colour = Annotated[str, AfterValidator(_colour), WithJsonSchema({"type": "string", "pattern": _COLOUR})]
"""A colour as #rgb or #rrggbb, stored as sent; the empty text means no colour."""


class UpdateEventTypeRequest(Wire):
    model_config = ConfigDict(json_schema_extra={"examples": [{"colour": "#f00"}]})

    name: Name | None = Field(None, description="The name of the event type; not blank, not unique. null leaves it unchanged.")
    reference_id: Label | None = Field(None, description='An id in another system; not unique. null or "": no id, shown as "".')
    colour: Colour | None = Field(None, description='#rgb or #rrggbb, stored as sent. null or "": no colour, shown as "".')


class AddEventTypeRequest(UpdateEventTypeRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Match", "referenceId": "match", "colour": "#1e90ff"}]})

    name: Name = Field(description="The name of the event type; required, not blank, not unique.")


class SetEventTypeRequest(Wire):
    model_config = ConfigDict(json_schema_extra={"examples": [{"eventTypeId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301"}]})

    event_type_id: UUID | None = Field(description="The event type; required. null removes the type.")


class EventType(Wire):
    """An event type in a response."""

    id: UUID = Field(description="The id of the event type; never changes.")
    name: str = Field(description="The name of the event type; not unique.")
    reference_id: str = Field(description='An id in another system; "" for none. Not unique.')
    colour: str = Field(description='#rgb or #rrggbb, as sent; "" for none.')

    @classmethod
    def of(cls, row: RecordRow[EventTypeDetails]) -> EventType:
        details = row.details
        reference_id, colour = details.reference_id or "", details.colour or ""
        return cls.model_construct(id=UUID(row.id), name=details.name, reference_id=reference_id, colour=colour)


EVENT_TYPES = Resource(EventTypeRecord, "/api/eventtype", EventType.of)
(
    StandardRoutes(routes, EVENT_TYPES, EventType)
    .add(AddEventTypeRequest)
    .amend(UpdateEventTypeRequest)
    .delete()
    .list()
    .by_id()
    .by_reference()
)


@routes.put("/event/{id}", dependencies=[WRITE], response_model=Event)
@rules(respond=event_written)
async def set_type_of_event(
    request: Request, id: UUID, body: SetEventTypeRequest, handlers: Service[EventHandlers]
) -> Outcome[MediaEvent]:
    """Set or remove the type of an Event. The response is the Event."""
    return await handlers.set_event_type(id, body.event_type_id, invocation=request.invocation)
