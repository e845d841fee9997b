"""Destinations: docs/reference/api/destinations.md. Keys and passwords in their configuration are write-only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from api.audit.past_states import Renderer
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import NO_CACHE, FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Flag, Listed, Name, NamedInt, Text, Wire
from api.media.resource import Resource
from domain.destination.handlers import DestinationHandlers
from domain.destination.targets import Target
from domain.kernel.errors import Malformed
from domain.kernel.ports import Outcome
from domain.record.kinds.destination import Destination as DestinationKind
from domain.record.kinds.destination import DestinationDetails
from domain.record.ports import RecordRow
from domain.record.record import Record
from projections.log.executor import CommandExecutor
from projections.record.queries import RecordQueries

routes = APIRouter(prefix="/api/media/destination", tags=["Destinations"], route_class=MediaRoute)

_CONFIGURATION: Final = (
    "The configuration of the target, as a text that holds a JSON object. Its members depend on the target. Keys and passwords in "
    'it are write-only: null or absent keeps them, "" clears them. null: {}.'
)
_EXAMPLE: Final = (
    '{"endpoint":"https://s3.example","bucket":"films","prefix":"archive","accessKeyId":"id","secretAccessKey":"secret"}'
)
OneTarget = Annotated[Target, NamedInt(Target)]


class UpdateDestinationRequest(Wire):
    """Changes of a destination. Absent fields stay unchanged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Archive two"}]})

    name: Name | None = Field(None, description="The name; not blank, not unique. null leaves it unchanged.")
    target: OneTarget | None = Field(
        None,
        description="The kind of target. A different target needs its own configuration. null leaves it unchanged.",
    )
    destination_json: Text | None = Field(None, description=_CONFIGURATION)
    config_json: Text | None = Field(
        None,
        description="Another name of destinationJson, which responses use. Send only one of them, or both with the same value.",
    )
    active: Flag | None = Field(None, description="false deactivates the destination. true is ignored: an activation sets it.")


class AddDestinationRequest(UpdateDestinationRequest):
    """A new destination, which is not active."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Archive", "target": "S3", "destinationJson": _EXAMPLE}]})

    name: Name = Field(description="The name; not blank, not unique.")
    target: OneTarget = Field(description="The kind of target.")


class Destination(Wire):
    """A destination in a response."""

    id: UUID = Field(description="The id of the destination; never changes.")
    name: str = Field(description="The name; not unique.")
    target: OneTarget = Field(description="The kind of target.")
    config_json: str = Field(description="The configuration as it was sent, with null for each key and password.")
    active: bool = Field(
        description="True if an activation has reached the target with its current configuration, or a client has set it."
    )

    @classmethod
    def of(cls, row: RecordRow[DestinationDetails]) -> Destination:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id), name=details.name, target=details.target, config_json=details.configuration_json, active=details.active
        )


class Activation(Wire):
    """The result of an activation."""

    action_title: str = Field(description="Active, or Action required.")
    action_description: str = Field(description="The fault and its remedy, in one sentence without secrets.")
    action_required: bool = Field(description="True if the fault must be corrected. false: the destination is active.")


class ActiveQuery(Wire):
    active: Flag = Field(description="The new active flag; required.")


class DestinationsQuery(Wire):
    """Query of the list of destinations."""

    target_filter: Annotated[list[OneTarget], Listed] = Field(
        default_factory=list, description="Only destinations of these targets: names or numbers, separated by commas."
    )
    only_active: Flag = Field(False, description="true: only active destinations. Default false.")
    no_cache: Flag = Field(False, description=NO_CACHE)

    def matches(self, details: DestinationDetails) -> bool:
        return (not self.target_filter or details.target in self.target_filter) and (details.active or not self.only_active)


DESTINATIONS = Resource(DestinationKind, "/api/media/destination", Destination.of)


def _values(body: UpdateDestinationRequest) -> dict[str, Any]:
    values = DESTINATIONS.values(body)
    texts = [getattr(body, name) for name in ("destination_json", "config_json") if name in body.model_fields_set]
    if len(set(texts)) > 1:
        raise Malformed.at("configJson", "must be the same as destinationJson, or absent")
    if texts:
        values["configuration_json"] = texts[0] if texts[0] is not None else "{}"
    return values


@routes.post("/", dependencies=[WRITE], response_model=Destination)
@rules(respond=DESTINATIONS.respond)
async def add_destination(request: Request, body: AddDestinationRequest, handlers: Service[DestinationHandlers]) -> Outcome[Record]:
    """Add a destination. It is not active until it has been activated."""
    return await handlers.add(_values(body), invocation=request.invocation)


@routes.put("/active/{id}", dependencies=[WRITE], response_model=Destination)
@rules(respond=DESTINATIONS.respond)
async def set_destination_active(
    request: Request, id: UUID, query: Annotated[ActiveQuery, Query()], executor: Service[CommandExecutor]
) -> Outcome[Record]:
    """Set or reset the active flag of a destination without testing the target."""
    return await executor.execute(DestinationKind.amend.on(id, {"active": query.active}), invocation=request.invocation)


async def destination_tried(request: Request, outcome: Outcome[Record]) -> Response:
    fault = outcome.result["fault"]
    description = fault or "The target was reached; publications can be sent to it."
    title = "Active" if fault is None else "Action required"
    body = Activation.model_construct(action_title=title, action_description=description, action_required=fault is not None)
    return Response(body)


@routes.put("/activate/{id}", dependencies=[WRITE], response_model=Activation)
@rules(absent=404, respond=destination_tried)
async def activate_destination(request: Request, id: UUID, handlers: Service[DestinationHandlers]) -> Outcome[Record]:
    """Test the target with its current configuration: connect, log in, and write and remove a file as a publication would.

    If that succeeds, the destination becomes active. Otherwise it stays unchanged and the response names the fault.
    """
    return await handlers.activate(id, invocation=request.invocation)


@routes.put("/{id}", dependencies=[WRITE], response_model=Destination)
@rules(respond=DESTINATIONS.respond)
async def update_destination(
    request: Request, id: UUID, body: UpdateDestinationRequest, handlers: Service[DestinationHandlers]
) -> Outcome[Record]:
    """Change a destination. A changed configuration or target is not active until it is activated again."""
    return await handlers.change(id, _values(body), invocation=request.invocation)


@routes.get("/", dependencies=[READ], response_model=list[Destination])
async def list_destinations(
    request: Request, query: Annotated[DestinationsQuery, Query()], records: Service[RecordQueries]
) -> Response:
    """Destinations, by name."""
    parts = records.parts(DestinationKind)
    return await DESTINATIONS.array([row for row in part if query.matches(row.details)] async for part in parts)


@routes.get("/{id}", dependencies=[READ], response_model=Destination, name="get_destination")
async def destination_by_id(
    request: Request, id: UUID, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries]
) -> Response:
    """The destination with this id."""
    return DESTINATIONS.single(await records.find(DestinationKind, id), id)


@routes.delete("/{id}", dependencies=[WRITE], response_model=Destination)
@rules(respond=DESTINATIONS.respond)
async def delete_destination(request: Request, id: UUID, handlers: Service[DestinationHandlers]) -> Outcome[Record]:
    """Delete a destination with its properties and publications; 409 while one of the publications is running."""
    return await handlers.delete(id, invocation=request.invocation)


def past_states() -> Mapping[str, Renderer]:
    return {DestinationKind.KIND: DESTINATIONS.past_state}
