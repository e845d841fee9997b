"""VOD publications of Events, in the media API: docs/reference/api/publications.md."""

from __future__ import annotations

from uuid import UUID

from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import READ, WRITE
from api.kernel.pages import next_page
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
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

routes = Router("/media/vodpublication", tag="Media VOD publications", surface=MEDIA)
plural = Router("/media/vodpublications", tag="Media VOD publications", surface=MEDIA)

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


async def publications_created(request: Request, outcome: Outcome[Publication], presenter: PublicationPresenter) -> Response:
    roots = [outcome.aggregates[place] for place in outcome.result["places"]]
    return Response(200, await presenter.of_roots(MediaPublication, roots, as_of=outcome.as_of))


async def publication_deleted(request: Request, outcome: Outcome[Publication], presenter: PublicationPresenter) -> Response:
    shown = await presenter.of_roots(MediaPublication, [outcome.aggregate], as_of=outcome.as_of or outcome.before)
    return Response(200, shown[0], etag=outcome.aggregate.version)


@routes.post("/", WRITE, response_model=list[MediaPublication], absent=404, if_match=False, respond=publications_created)
async def publish_event(request: Request, body: PublishEventRequest, handlers: PublicationHandlers) -> Outcome[Publication]:
    """Publish the film of an Event at destinations, at all or none. Uploads run as jobs."""
    return await handlers.publish_event(body.event_id, body.new_publications(), invocation=request.invocation)


@routes.get("/", READ, response_model=list[MediaPublication])
async def list_media_vod_publications(
    request: Request, query: PublicationsQuery, publications: PublicationQueries, presenter: PublicationPresenter
) -> Response:
    """The VOD publications: a page of them, or all without a pageSize."""
    return await all_or_page(request, query, publications, presenter, model=MediaPublication, kind=PublicationKind.VOD)


@routes.get("/transactionId/{transactionId}", READ, response_model=list[MediaPublication], absent=None)
async def list_media_vod_publications_of_transaction(
    request: Request,
    transaction_id: str,
    query: TransactionQuery,
    publications: PublicationQueries,
    presenter: PublicationPresenter,
) -> Response:
    """The VOD publications of one request; an empty list for an unknown transaction."""
    listed = await publications.listed(query.filter(transaction_id, kind=PublicationKind.VOD))
    return await presenter.array(MediaPublication, listed, query_target=query.query_target)


@routes.get("/content/{contentId}", READ, response_model=MediaPublication)
async def get_media_vod_publication_of_content(
    request: Request, content_id: str, query: OneQuery, publications: PublicationQueries, presenter: PublicationPresenter
) -> Response:
    """The newest VOD publication of a content at a destination."""
    row = existing(await publications.newest(content_id, query.destination_id, kind=PublicationKind.VOD), content_id)
    shown = await presenter.shown(MediaPublication, [row], query_target=query.query_target)
    return Response(200, shown[0], etag=row.version)


@routes.get("/{id}", READ, response_model=MediaPublication)
async def get_media_vod_publication(
    request: Request, id: UUID, query: OneQuery, publications: PublicationQueries, presenter: PublicationPresenter
) -> Response:
    """The VOD publication with this id."""
    row = existing(await publications.find(id, destination_id=query.destination_id, kind=PublicationKind.VOD), id)
    shown = await presenter.shown(MediaPublication, [row], query_target=query.query_target)
    return Response(200, shown[0], etag=row.version)


@plural.delete("/{id}", WRITE, response_model=MediaPublication, respond=publication_deleted, errors=_TARGET_DOWN)
async def delete_media_vod_publication(
    request: Request, id: UUID, query: DeleteQuery, handlers: PublicationHandlers
) -> Outcome[Publication]:
    """Delete a publication; a running upload is broken. The response shows its last state."""
    return await handlers.delete(id, None, hard=query.hard_delete, invocation=request.invocation)


@routes.delete(
    "/{id}",
    WRITE,
    response_model=MediaPublication,
    name="delete_media_vod_publication_singular",
    respond=publication_deleted,
    errors=_TARGET_DOWN,
)
async def delete_media_vod_publication_singular(
    request: Request, id: UUID, query: DeleteQuery, handlers: PublicationHandlers
) -> Outcome[Publication]:
    """Delete a publication, like `DELETE /media/vodpublications/{id}`."""
    return await handlers.delete(id, None, hard=query.hard_delete, invocation=request.invocation)
