"""The routes of compositions. See docs/reference/api/compositions.md."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query

from api.engine.job_counts import WaitingJobs
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA, MediaRoute
from api.media.composition.requests import (
    CloneQuery,
    ComposeFilmRequest,
    ComposeForEncoderRequest,
    ReplaceEncoderPlaylistRequest,
    ReplaceFilmPlaylistRequest,
    SetDrmRequest,
)
from api.media.composition.responses import ComposePlaylist
from api.media.event.overlaps import overlap_warnings
from domain.composition.aggregate import Composition
from domain.composition.handlers import CompositionHandlers
from domain.composition.row import CompositionRow
from domain.composition.values import CompositionKind
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from projections.composition.queries import CompositionQueries
from projections.event.queries import EventQueries

routes = APIRouter(prefix="/api/compose", tags=["Compositions"], route_class=MediaRoute)

_TOO_MANY: Final = {429: "The client has reached its limit of waiting jobs; see Retry-After"}
_NOT_STORED: Final = (("cache-control", "no-store"),)


async def event_composed(request: Request, outcome: Outcome[Composition], events: Service[EventQueries]) -> Response:
    event = str(outcome.aggregate.event_id)
    return Response(event, 201, location=f"{MEDIA.prefix}/compose/{event}", headers=await overlap_warnings(outcome, events))


async def playlist_written(request: Request, outcome: Outcome[Composition]) -> Response:
    """Return the playlist as a GET shows it, or its last state if it was deleted."""
    row = CompositionRow.of(outcome.aggregate)
    return Response(ComposePlaylist.of(row), etag=row.version)


async def playlist_cloned(request: Request, outcome: Outcome[Composition]) -> Response:
    row = CompositionRow.of(outcome.aggregate)
    location = f"{MEDIA.prefix}/compose/{row.event_id}"
    return Response(ComposePlaylist.of(row), 201, etag=row.version, location=location, headers=_NOT_STORED)


@routes.post("/", dependencies=[WRITE], response_model=UUID, status_code=201)
@rules(if_match=False, respond=event_composed, errors=_TOO_MANY)
async def add_composition(
    request: Request, body: ComposeFilmRequest, handlers: Service[CompositionHandlers], waiting: Service[WaitingJobs]
) -> Outcome[Composition]:
    """Give an Event a playlist from which a film is made, immediately or at liveStreamStart. Answers the id of the Event."""
    await waiting.admit(request.caller.name)
    return await handlers.compose(body.new_composition(), invocation=request.invocation)


@routes.post("/encoder/", dependencies=[WRITE], response_model=UUID, status_code=201)
@rules(if_match=False, respond=event_composed)
async def add_encoder_composition(
    request: Request, body: ComposeForEncoderRequest, handlers: Service[CompositionHandlers]
) -> Outcome[Composition]:
    """Give a live Event a playlist that its encoder plays. Answers the id of the Event."""
    return await handlers.compose(body.new_composition(), invocation=request.invocation)


@routes.put("/event/{eventId}", dependencies=[WRITE], response_model=ComposePlaylist)
@rules(respond=playlist_written, errors=_TOO_MANY)
async def replace_film_playlist(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    body: ReplaceFilmPlaylistRequest,
    handlers: Service[CompositionHandlers],
    waiting: Service[WaitingJobs],
) -> Outcome[Composition]:
    """Change the playlist of a film, which is made again. A job that is still making the previous film is broken."""
    await waiting.admit(request.caller.name)
    return await handlers.replace(event_id, CompositionKind.STANDARD, changes=body.changes(), invocation=request.invocation)


@routes.put("/encoder/event/{eventId}", dependencies=[WRITE], response_model=ComposePlaylist)
@rules(respond=playlist_written)
async def replace_encoder_playlist(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    body: ReplaceEncoderPlaylistRequest,
    handlers: Service[CompositionHandlers],
) -> Outcome[Composition]:
    """Change the playlist that an encoder plays, or give an Event its first. A playlist on the air changes at its next item."""
    return await handlers.replace(event_id, CompositionKind.ENCODER, changes=body.changes(), invocation=request.invocation)


@routes.put("/event/{eventId}/drm/", dependencies=[WRITE], response_model=ComposePlaylist)
@rules(respond=playlist_written)
async def set_film_drm(
    request: Request, event_id: Annotated[UUID, Path(alias="eventId")], body: SetDrmRequest, handlers: Service[CompositionHandlers]
) -> Outcome[Composition]:
    """Set the DRM settings of an Event whose playlist makes a film."""
    return await handlers.set_drm(event_id, body.drm_json, invocation=request.invocation)


@routes.get("/clone/{sourceEventId}", dependencies=[WRITE], response_model=ComposePlaylist, status_code=201)
@rules(respond=playlist_cloned, errors=_TOO_MANY)
async def clone_composition(
    request: Request,
    source_event_id: Annotated[UUID, Path(alias="sourceEventId")],
    query: Annotated[CloneQuery, Query()],
    handlers: Service[CompositionHandlers],
    waiting: Service[WaitingJobs],
) -> Outcome[Composition]:
    """Copy the playlist of an Event to another Event.

    This call writes: it replaces the playlist of the target, and the film is made immediately.
    """
    await waiting.admit(request.caller.name)
    return await handlers.clone(source_event_id, query.target_event_id, invocation=request.invocation)


@routes.get("/{eventId}", dependencies=[READ], response_model=ComposePlaylist)
async def get_composition(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    query: Annotated[FreshQuery, Query()],
    compositions: Service[CompositionQueries],
    events: Service[EventQueries],
) -> Response:
    """The playlist of an Event."""
    row = await compositions.of_event(event_id)
    if row is None or await events.by_id(event_id) is None:
        raise NotFound(Composition.KIND, str(event_id))
    return Response(ComposePlaylist.of(row), etag=row.version)


@routes.delete("/{eventId}", dependencies=[WRITE], response_model=ComposePlaylist)
@rules(absent="never", respond=playlist_written)
async def delete_composition(
    request: Request, event_id: Annotated[UUID, Path(alias="eventId")], handlers: Service[CompositionHandlers]
) -> Outcome[Composition]:
    """Delete the playlist of an Event; a job that is making its film is broken. A finished film stays."""
    return await handlers.delete(event_id, invocation=request.invocation)
