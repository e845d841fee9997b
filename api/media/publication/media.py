"""VOD publications of Events, in the media API: docs/reference/api/publications.md."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE, owner_of
from api.kernel.pages import next_page
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.media.publication.presenter import PublicationPresenter
from api.media.publication.requests import DeleteQuery, OneQuery, PublicationsQuery, PublishEventRequest, TransactionQuery
from api.media.publication.responses import LivePublication, MediaPublication
from api.media.publication.vod import existing
from domain.kernel.ports import Outcome
from domain.publication.aggregate import Publication
from domain.publication.handlers import PublicationHandlers
from domain.publication.values import PublicationKind
from projections.kernel.database.page import Page
from projections.publication.queries import PublicationQueries

routes = APIRouter(prefix="/api/media/vodpublication", tags=["Media VOD publications"], route_class=MediaRoute)
plural = APIRouter(prefix="/api/media/vodpublications", tags=["Media VOD publications"], route_class=MediaRoute)

_TARGET_DOWN = {503: "The target of the publication cannot be reached; nothing was changed"}


async def all_or_page(
    request: Request,
    query: PublicationsQuery,
    publications: PublicationQueries,
    presenter: PublicationPresenter,
    *,
    model: type[MediaPublication] | type[LivePublication],
    kind: PublicationKind,
) -> Response:
    """Return a plain array: a page, or all publications without a pageSize. A long array is sent in parts while it is read."""
    window = None if query.page_size is None else query.window
    listed = await publications.listed(query.listed(kind), window)
    headers = () if window is None else next_page(request, Page(window.limit, listed.total, ()))
    return await presenter.array(model, listed, query_target=query.query_target, headers=headers)


async def publications_created(
    request: Request, outcome: Outcome[Publication], presenter: Service[PublicationPresenter]
) -> Response:
    roots = [outcome.aggregates[place] for place in outcome.result["places"]]
    return Response(await presenter.of_roots(MediaPublication, roots, as_of=outcome.as_of))


async def publication_deleted(
    request: Request, outcome: Outcome[Publication], presenter: Service[PublicationPresenter]
) -> Response:
    shown = await presenter.of_roots(MediaPublication, [outcome.aggregate], as_of=outcome.as_of or outcome.before)
    return Response(shown[0], etag=outcome.aggregate.version)


@routes.post("/", dependencies=[WRITE], response_model=list[MediaPublication])
@rules(absent=404, if_match=False, respond=publications_created)
async def publish_event(
    request: Request, body: PublishEventRequest, handlers: Service[PublicationHandlers]
) -> Outcome[Publication]:
    """Publish the film of an Event at destinations, at all or none. Uploads run as jobs."""
    publications = body.new_publications(client=owner_of(request, body.client))
    return await handlers.publish_event(body.event_id, publications, invocation=request.invocation)


@routes.get("/", dependencies=[READ], response_model=list[MediaPublication])
async def list_media_vod_publications(
    request: Request,
    query: Annotated[PublicationsQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The VOD publications: a page of them, or all without a pageSize."""
    return await all_or_page(request, query, publications, presenter, model=MediaPublication, kind=PublicationKind.VOD)


@routes.get("/transactionId/{transactionId}", dependencies=[READ], response_model=list[MediaPublication])
@rules(absent="never")
async def list_media_vod_publications_of_transaction(
    request: Request,
    transaction_id: Annotated[str, Path(alias="transactionId")],
    query: Annotated[TransactionQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The VOD publications of one request; an empty list for an unknown transaction."""
    listed = await publications.listed(query.filter(transaction_id, kind=PublicationKind.VOD))
    return await presenter.array(MediaPublication, listed, query_target=query.query_target)


@routes.get("/content/{contentId}", dependencies=[READ], response_model=MediaPublication)
async def get_media_vod_publication_of_content(
    request: Request,
    content_id: Annotated[str, Path(alias="contentId")],
    query: Annotated[OneQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The newest VOD publication of a content at a destination."""
    row = existing(await publications.newest(content_id, query.destination_id, kind=PublicationKind.VOD), content_id)
    shown = await presenter.shown(MediaPublication, [row], query_target=query.query_target)
    return Response(shown[0], etag=row.version)


@routes.get("/{id}", dependencies=[READ], response_model=MediaPublication)
async def get_media_vod_publication(
    request: Request,
    id: UUID,
    query: Annotated[OneQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The VOD publication with this id."""
    row = existing(await publications.find(id, destination_id=query.destination_id, kind=PublicationKind.VOD), id)
    shown = await presenter.shown(MediaPublication, [row], query_target=query.query_target)
    return Response(shown[0], etag=row.version)


@plural.delete("/{id}", dependencies=[WRITE], response_model=MediaPublication)
@rules(respond=publication_deleted, errors=_TARGET_DOWN)
async def delete_media_vod_publication(
    request: Request, id: UUID, query: Annotated[DeleteQuery, Query()], handlers: Service[PublicationHandlers]
) -> Outcome[Publication]:
    """Delete a publication; a running upload is broken. The response shows its last state."""
    return await handlers.delete(id, None, hard=query.hard_delete, invocation=request.invocation)


@routes.delete("/{id}", dependencies=[WRITE], response_model=MediaPublication, name="delete_media_vod_publication_singular")
@rules(respond=publication_deleted, errors=_TARGET_DOWN)
async def delete_media_vod_publication_singular(
    request: Request, id: UUID, query: Annotated[DeleteQuery, Query()], handlers: Service[PublicationHandlers]
) -> Outcome[Publication]:
    """Delete a publication, like `DELETE /media/vodpublications/{id}`."""
    return await handlers.delete(id, None, hard=query.hard_delete, invocation=request.invocation)
