"""The routes of provisioning. See docs/reference/api/provisioning.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import Field
from pydantic_core import to_json

from api.audit.past_states import Moment, Renderer
from api.http.errors import Unauthenticated
from api.http.response import Response
from api.http.routing import OPEN, Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Flag, Instant, NamedInt, Wire
from domain.event.aggregate import MediaEvent
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from domain.provision import values
from domain.provision.aggregate import ProvisionInfo as ProvisionAggregate
from domain.provision.aggregate import provision_key
from domain.provision.handlers import ProvisionHandlers
from domain.provision.row import ProvisionRow
from domain.provision.values import UP, ProvisionState
from projections.event.queries import EventQueries
from projections.provision.queries import ProvisionQueries
from workers.provision.callbacks import ServiceCallbacks

# Responses of the provisioning routes. See docs/reference/api/provisioning.md.

State = Annotated[ProvisionState, NamedInt(ProvisionState)]


class ProvisionSummary(Wire):
    """The infrastructure of an Event as shown in the Event."""

    id: UUID = Field(description="Id of the Provision Info; the audit has its history under this id.")
    infrastructure_key: str = Field(description="The key of the infrastructure. Events with the same key share it.")
    provisioned_at: Instant = Field(
        description="The time when provisioning was last requested or ended; before the first time, when the Provision Info "
        "was made."
    )
    terminated_at: Instant | None = Field(description="The time when the infrastructure was terminated; null while it is not.")
    state: State = Field(description="The state, as a number.")
    state_string: str = Field(description="The state, by name.")

    @classmethod
    def of(cls, event_id: UUID, summary: values.ProvisionSummary) -> ProvisionSummary:
        return cls.model_construct(id=provision_key(event_id), **_shown(summary))


class ProvisionInfo(ProvisionSummary):
    """The infrastructure of an Event, with its resources."""

    resources_json: str = Field(description="The running resources with their discovered attributes, as a text that holds JSON.")

    @classmethod
    def of_row(cls, row: ProvisionRow) -> ProvisionInfo:
        resources = to_json(list(row.resources)).decode()
        return cls.model_construct(id=row.id, resources_json=resources, **_shown(row.summary))


class ProvisionResources(Wire):
    """The resources of an Event: the running resources, or those that its infrastructure profile names."""

    event_id: UUID = Field(description="Id of the Event.")
    state: State = Field(description="The state of the infrastructure, as a number.")
    state_string: str = Field(description="The state, by name.")
    infrastructure_key: str = Field(description="The current or future key of the infrastructure.")
    resources: list[dict[str, Any]] = Field(
        description="The resources, each with the attributes of the profile and those that the provisioner added."
    )


def _shown(summary: values.ProvisionSummary) -> dict[str, Any]:
    return {
        "infrastructure_key": summary.infrastructure_key,
        "provisioned_at": summary.provisioned_at,
        "terminated_at": summary.terminated_at,
        "state": summary.state,
        "state_string": summary.state.name,
    }


routes = APIRouter(prefix="/api/provision", tags=["Provisioning"], route_class=MediaRoute)


_NO_PROFILE: Final = {409: "The Event is not provisioned, and has no infrastructure profile"}


_SIGNATURE: Final = (b"webhook-id", b"webhook-timestamp", b"webhook-signature")


class ProvisionQuery(Wire):
    """Query of a provisioning."""

    allow_updates: Flag | None = Field(
        default=None,
        description="True if existing resources may be changed; absent: the setting of the infrastructure profile, else false.",
    )


class Callback(Wire):
    """A message of a service about its work. The service is queried for the result, whatever the message says."""

    run: int | None = Field(default=None, description="The number of the run that has ended or is in progress.")


async def provision_written(request: Request, outcome: Outcome[ProvisionAggregate]) -> Response:
    """Return the response of a route that changes the infrastructure of an Event."""
    row = ProvisionRow.of(outcome.aggregate)
    return Response(ProvisionInfo.of_row(row), etag=row.version)


@routes.post("/{eventId}", dependencies=[WRITE], response_model=ProvisionInfo)
@rules(absent=404, respond=provision_written)
async def provision_event(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    query: Annotated[ProvisionQuery, Query()],
    handlers: Service[ProvisionHandlers],
) -> Outcome[ProvisionAggregate]:
    """Provision the resources of the infrastructure profile of an Event. The Event is PROVISIONING when the response arrives."""
    return await handlers.provision(event_id, allow_updates=query.allow_updates, invocation=request.invocation)


@routes.delete("/reset/{eventId}", dependencies=[WRITE], response_model=ProvisionInfo)
@rules(respond=provision_written)
async def reset_provision(
    request: Request, event_id: Annotated[UUID, Path(alias="eventId")], handlers: Service[ProvisionHandlers]
) -> Outcome[ProvisionAggregate]:
    """Mark an Event as not provisioned. Its existing infrastructure is terminated in the background if possible."""
    return await handlers.reset(event_id, invocation=request.invocation)


@routes.delete("/{eventId}", dependencies=[WRITE], response_model=ProvisionInfo)
@rules(respond=provision_written)
async def terminate_provision(
    request: Request, event_id: Annotated[UUID, Path(alias="eventId")], handlers: Service[ProvisionHandlers]
) -> Outcome[ProvisionAggregate]:
    """Terminate the infrastructure of an Event. A running provisioning is cancelled."""
    return await handlers.terminate(event_id, invocation=request.invocation)


@routes.get("/{eventId}", dependencies=[READ], response_model=ProvisionInfo)
async def get_provision(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    query: Annotated[FreshQuery, Query()],
    provisions: Service[ProvisionQueries],
    events: Service[EventQueries],
) -> Response:
    """The Provision Info of an Event."""
    row = await provisions.of_event(event_id) if await events.by_id(event_id) is not None else None
    if row is None:
        raise NotFound(ProvisionAggregate.KIND, str(event_id))
    return Response(ProvisionInfo.of_row(row), etag=row.version)


@routes.get("/resources/{eventId}", dependencies=[READ], response_model=ProvisionResources)
@rules(errors=_NO_PROFILE)
async def get_provision_resources(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    query: Annotated[FreshQuery, Query()],
    provisions: Service[ProvisionQueries],
    events: Service[EventQueries],
    handlers: Service[ProvisionHandlers],
) -> Response:
    """The running resources of an Event; without any, those that its infrastructure profile names."""
    event = await events.by_id(event_id)
    if event is None:
        raise NotFound(MediaEvent.KIND, str(event_id))
    row = await provisions.of_event(event_id)
    if row is not None and (row.resources or row.summary.state in UP):
        key, resources = row.summary.infrastructure_key, list(row.resources)
    else:
        key, resources = await handlers.listed(event)
        key = key if row is None else row.summary.infrastructure_key
    state = ProvisionState.SCHEDULED if row is None else row.summary.state
    body = ProvisionResources.model_construct(
        event_id=event_id, state=state, state_string=state.name, infrastructure_key=key, resources=resources
    )
    return Response(body)


@routes.post("/callback/{template}/{infrastructure}", dependencies=[OPEN], status_code=202, include_in_schema=False)
@rules(
    absent="never", if_match=False, errors={401: "The callback is not signed by the service", 503: "The database cannot be reached"}
)
async def hurry_provisioning(
    request: Request, template: str, infrastructure: str, body: Callback, callbacks: Service[ServiceCallbacks]
) -> Response:
    """Take a signed callback of a provisioning service, and query the service earlier."""
    given = {
        name: request.fields.get(f"webhook-{name}".encode(), b"").decode("latin-1") for name in ("id", "timestamp", "signature")
    }
    message, timestamp, signature = given.values()
    if not await callbacks.take(
        template, infrastructure, message=message, timestamp=timestamp, signature=signature, body=request.content
    ):
        raise Unauthenticated("The callback is not signed by the service.")
    return Response({}, 202)


def past_states() -> Mapping[str, Renderer]:
    async def info(root: ProvisionAggregate, moment: Moment) -> Any:
        return ProvisionInfo.of_row(ProvisionRow.of(root))

    return {ProvisionAggregate.KIND: info}
