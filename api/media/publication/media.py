"""VOD publications of Events, in the media API: docs/reference/api/publications.md."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
from api.media.publication.presenter import PublicationPresenter
from api.media.publication.requests import DeleteQuery, OneQuery, PublicationsQuery, PublishEventRequest, TransactionQuery
from api.media.publication.responses import MediaPublication
from api.media.publication.vod import MOST_IN_A_TRANSACTION, found
from domain.kernel.errors import Malformed
from domain.kernel.ports import Outcome
from domain.publication.aggregate import Publication
from domain.publication.handlers import PublicationHandlers
from domain.publication.row import PublicationRow
from domain.publication.values import PublicationKind
from projections.publication.queries import PublicationQueries

routes = Router("/media/vodpublication", tag="Media VOD publications", surface=MEDIA)
plural = Router("/media/vodpublications", tag="Media VOD publications", surface=MEDIA)

LONGEST_LIST = 10_000
_TARGET_DOWN = {503: "The target of the publication cannot be reached; nothing was changed"}


async def all_or_page(
    query: PublicationsQuery, publications: PublicationQueries, *, kind: PublicationKind
) -> Sequence[PublicationRow]:
    """Of a plain array: a page, or all when there is no pageSize."""
    if query.page_size is not None:
        return (await publications.page(query.listed(kind), query.window)).results
    rows = await publications.listed(query.listed(kind), limit=LONGEST_LIST)
    if len(rows) > LONGEST_LIST:
        raise Malformed.at("pageSize", f"is required, or a filter: there are more than {LONGEST_LIST} publications")
    return rows


async def publications_created(request: Request, outcome: Outcome[Publication], presenter: PublicationPresenter) -> Response:
    roots = [outcome.aggregates[place] for place in outcome.result["places"]]
    return Response(200, await presenter.of_roots(MediaPublication, roots, as_of=outcome.as_of))


async def publication_deleted(request: Request, outcome: Outcome[Publication], presenter: PublicationPresenter) -> Response:
    shown = await presenter.of_roots(MediaPublication, [outcome.aggregate], as_of=outcome.as_of or outcome.before)
    return Response(200, shown[0], etag=outcome.aggregate.version)


@routes.post("/", WRITE, response_model=list[MediaPublication], absent=404, if_match=False, respond=publications_created)
async def publish_event(request: Request, body: PublishEventRequest, handlers: PublicationHandlers) -> Outcome[Publication]:
    """Publish the film of an Event at destinations: at all of them, or at none. Uploads run as jobs."""
    return await handlers.publish_event(body.event_id, body.wanted(), invocation=request.invocation)


@routes.get("/", READ, response_model=list[MediaPublication])
async def list_media_vod_publications(
    request: Request, query: PublicationsQuery, publications: PublicationQueries, presenter: PublicationPresenter
) -> Response:
    """VOD publications: a page of them, or all when there is no pageSize."""
    rows = await all_or_page(query, publications, kind=PublicationKind.VOD)
    return Response(200, await presenter.shown(MediaPublication, rows, query_target=query.query_target))


@routes.get("/transactionId/{transactionId}", READ, response_model=list[MediaPublication], absent=None)
async def list_media_vod_publications_of_transaction(
    request: Request,
    transaction_id: str,
    query: TransactionQuery,
    publications: PublicationQueries,
    presenter: PublicationPresenter,
) -> Response:
    """The VOD publications of one request. An unknown one has none."""
    rows = await publications.listed(query.filter(transaction_id, kind=PublicationKind.VOD), limit=MOST_IN_A_TRANSACTION)
    return Response(200, await presenter.shown(MediaPublication, rows, query_target=query.query_target))


@routes.get("/content/{contentId}", READ, response_model=MediaPublication)
async def get_media_vod_publication_of_content(
    request: Request, content_id: str, query: OneQuery, publications: PublicationQueries, presenter: PublicationPresenter
) -> Response:
    """The newest VOD publication of a content at a destination."""
    row = found(await publications.newest(content_id, query.destination_id, kind=PublicationKind.VOD), content_id)
    shown = await presenter.shown(MediaPublication, [row], query_target=query.query_target)
    return Response(200, shown[0], etag=row.version)


@routes.get("/{id}", READ, response_model=MediaPublication)
async def get_media_vod_publication(
    request: Request, id: UUID, query: OneQuery, publications: PublicationQueries, presenter: PublicationPresenter
) -> Response:
    """One VOD publication."""
    row = found(await publications.find(id, destination_id=query.destination_id, kind=PublicationKind.VOD), id)
    shown = await presenter.shown(MediaPublication, [row], query_target=query.query_target)
    return Response(200, shown[0], etag=row.version)


@plural.delete("/{id}", WRITE, response_model=MediaPublication, respond=publication_deleted, errors=_TARGET_DOWN)
async def delete_media_vod_publication(
    request: Request, id: UUID, query: DeleteQuery, handlers: PublicationHandlers
) -> Outcome[Publication]:
    """Delete a publication; a running upload is broken off. The answer shows it as it last was."""
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
    """The same as `DELETE /media/vodpublications/{id}`."""
    return await handlers.delete(id, None, hard=query.hard_delete, invocation=request.invocation)
