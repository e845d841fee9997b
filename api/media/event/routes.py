"""The routes of media Events. See docs/reference/api/events.md."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query

from api.http.body import FORM, JSON, JSON_PATCH
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import PageQuery, ReferenceQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.media.event.overlaps import overlap_warnings
from api.media.event.patch import changes_of, patch_of
from api.media.event.playback_requests import PlaybackQuery, PlaybackReferenceQuery
from api.media.event.presenter import EventPresenter
from api.media.event.requests import (
    AddFlowTaskRequest,
    AddOrUpdateEventRequest,
    ChangeEventProtectionRequest,
    ChangeEventStateRequest,
    EventListQuery,
    Patch,
    SetDvrWindowLengthRequest,
)
from api.media.event.responses import Event, EventCollection, ExternalIdCheck
from domain.event.aggregate import MediaEvent
from domain.event.commands import AmendEvent, Replacement, flow_task
from domain.event.deletion import EventDeletion
from domain.event.handlers import EventHandlers
from domain.event.on_air_handlers import OnAirHandlers
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from projections.event.filters import EventFilter
from projections.event.queries import EventQueries
from projections.log.executor import CommandExecutor

_FILTERS = EventListQuery.model_fields.keys() - PageQuery.model_fields.keys()

routes = APIRouter(prefix="/api/event", tags=["Events"], route_class=MediaRoute)


async def event_written(
    request: Request, outcome: Outcome[MediaEvent], presenter: Service[EventPresenter], events: Service[EventQueries]
) -> Response:
    """Return the response of a route that writes an Event, with a warning if it is scheduled at the same time as another Event."""
    return await presenter.written(request, outcome, headers=await overlap_warnings(outcome, events))


@routes.post("/", dependencies=[WRITE], response_model=Event)
@rules(body_types=(JSON, FORM), respond=event_written)
async def add_or_update_event(
    request: Request, body: AddOrUpdateEventRequest, handlers: Service[EventHandlers]
) -> Outcome[MediaEvent]:
    """Add an Event, or update the Event with this id."""
    return await handlers.add_or_update_event(body.id, changes_of(body), invocation=request.invocation)


@routes.patch("/{id}", dependencies=[WRITE], response_model=Event)
@rules(body_types=(JSON_PATCH,), respond=event_written)
async def patch_event(request: Request, id: UUID, body: Patch, handlers: Service[EventHandlers]) -> Outcome[MediaEvent]:
    """Change fields of an Event by JSON Patch: replace, add, remove and test. All operations apply, or none."""
    return await handlers.patch_event(id, patch_of(body), invocation=request.invocation)


@routes.patch("/reference/{referenceid}", dependencies=[WRITE], response_model=Event)
@rules(body_types=(JSON_PATCH,), respond=event_written)
async def patch_event_by_reference(
    request: Request, referenceid: str, body: Patch, handlers: Service[EventHandlers]
) -> Outcome[MediaEvent]:
    """Change the most recently created Event with this reference id by JSON Patch."""
    return await handlers.patch_event_by_reference(referenceid, patch_of(body), invocation=request.invocation)


@routes.post("/stream/dvrwindowlength/{id}", dependencies=[WRITE], response_model=Event)
@rules(respond=event_written)
async def set_dvr_window_length(
    request: Request, id: UUID, body: SetDvrWindowLengthRequest, executor: Service[CommandExecutor]
) -> Outcome[MediaEvent]:
    """Set the length of the DVR window, in seconds."""
    change = Replacement("dvr_length", body.dvr_window_length or None)
    return await executor.execute(AmendEvent(id, (change,)), invocation=request.invocation)


@routes.post("/flow/add/", dependencies=[WRITE], response_model=Event)
@rules(absent=404, respond=event_written)
async def add_flow_task(request: Request, body: AddFlowTaskRequest, executor: Service[CommandExecutor]) -> Outcome[MediaEvent]:
    """Set the flow task of an Event; without an id, add an Event with it."""
    command = flow_task(body.id, body.task_engine_json, state=body.event_state, mp4_state=body.mp4_state)
    return await executor.execute(command, invocation=request.invocation)


@routes.put("/forcestop/{id}", dependencies=[WRITE], response_model=Event)
@rules(respond=event_written)
async def force_stop_event(request: Request, id: UUID, on_air: Service[OnAirHandlers]) -> Outcome[MediaEvent]:
    """Stop an Event, whatever its state."""
    return await on_air.force_stop(id, invocation=request.invocation)


@routes.put("/state/{id}", dependencies=[WRITE], response_model=Event)
@rules(respond=event_written)
async def change_event_state(
    request: Request, id: UUID, body: ChangeEventStateRequest, on_air: Service[OnAirHandlers]
) -> Outcome[MediaEvent]:
    """Change the state of an Event. Any state may follow any other."""
    return await on_air.change_state(id, body.requested_state(), invocation=request.invocation)


@routes.put("/flow/protection/{contentId}", dependencies=[WRITE], response_model=Event)
@rules(respond=event_written)
async def change_event_protection(
    request: Request,
    content_id: Annotated[str, Path(alias="contentId")],
    body: ChangeEventProtectionRequest,
    executor: Service[CommandExecutor],
) -> Outcome[MediaEvent]:
    """Move an on-demand Event between VOD_PRIVATE and VOD_PUBLIC."""
    try:
        key = UUID(content_id)
    except ValueError:
        raise NotFound(MediaEvent.KIND, content_id) from None
    return await executor.execute(MediaEvent.change_protection.on(key, body.protection), invocation=request.invocation)


@routes.delete("/{id}", dependencies=[WRITE], response_model=Event)
@rules(respond=event_written)
async def delete_event(request: Request, id: UUID, deletion: Service[EventDeletion]) -> Outcome[MediaEvent]:
    """Delete an Event. It keeps its history and can be restored. Its infrastructure is terminated."""
    return await deletion.delete(id, invocation=request.invocation)


@routes.put("/restore/{id}", dependencies=[WRITE], response_model=Event)
@rules(respond=event_written)
async def restore_event(request: Request, id: UUID, executor: Service[CommandExecutor]) -> Outcome[MediaEvent]:
    """Restore a deleted Event to its last state."""
    return await executor.execute(MediaEvent.restore.on(id), invocation=request.invocation)


@routes.get("/", dependencies=[READ], response_model=EventCollection)
async def list_events(
    request: Request, query: Annotated[EventListQuery, Query()], events: Service[EventQueries], presenter: Service[EventPresenter]
) -> Response:
    """List Events. Filters combine with AND, the values of one filter with OR."""
    return await presenter.page(request, await events.page(event_filter(query)))


@routes.get("/deleted/", dependencies=[READ], response_model=EventCollection)
async def list_deleted_events(
    request: Request, query: Annotated[EventListQuery, Query()], events: Service[EventQueries], presenter: Service[EventPresenter]
) -> Response:
    """List deleted Events, with the same filters."""
    return await presenter.page(request, await events.page(event_filter(query, deleted=True)))


@routes.get("/{id}", dependencies=[READ], response_model=Event)
@rules(absent=204)
async def get_event(
    request: Request,
    id: UUID,
    query: Annotated[PlaybackQuery, Query()],
    events: Service[EventQueries],
    presenter: Service[EventPresenter],
) -> Response:
    """The Event with this id."""
    read = events.by_id if query.process_video else events.shown
    return await presenter.single(request, await read(id), key=id, query=query)


@routes.get("/reference", dependencies=[READ], response_model=Event)
@rules(absent=204)
async def get_event_by_reference(
    request: Request,
    query: Annotated[PlaybackReferenceQuery, Query()],
    events: Service[EventQueries],
    presenter: Service[EventPresenter],
) -> Response:
    """The most recently created Event with this reference id."""
    read = events.by_reference if query.process_video else events.shown_by_reference
    return await presenter.single(request, await read(query.id), key=query.id, query=query)


@routes.get("/external", dependencies=[READ], response_model=Event)
@rules(absent=204)
async def get_event_by_external_id(
    request: Request,
    query: Annotated[PlaybackReferenceQuery, Query()],
    events: Service[EventQueries],
    presenter: Service[EventPresenter],
) -> Response:
    """The most recently created Event with this external id."""
    read = events.by_external_id if query.process_video else events.shown_by_external_id
    return await presenter.single(request, await read(query.id), key=query.id, query=query)


@routes.get("/external/unique", dependencies=[READ], response_model=ExternalIdCheck)
async def check_external_id(request: Request, query: Annotated[ReferenceQuery, Query()], events: Service[EventQueries]) -> Response:
    """Check whether an external id is unused. Deleted Events do not count."""
    event = await events.by_external_id(query.id)
    return Response(ExternalIdCheck.model_construct(is_unique=event is None, value=query.id, value_type="ExternalId"))


def event_filter(query: EventListQuery, *, deleted: bool = False) -> EventFilter:
    filters = {name: getattr(query, name) for name in _FILTERS}
    return EventFilter(**filters, deleted=deleted, descending=query.order, window=query.window)
