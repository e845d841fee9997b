"""The VOD publications API: docs/reference/api/publications.md."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Path, Query

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import next_page, page_body
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.media.publication.presenter import PublicationPresenter
from api.media.publication.requests import (
    ContentQuery,
    DeletePairQuery,
    OneQuery,
    PairQuery,
    PairRequest,
    PublicationsQuery,
    PublishContentsRequest,
    TransactionQuery,
    UpdatePublicationRequest,
)
from api.media.publication.responses import DeletedCount, OperationResult, VodPublication, VodPublicationPage
from domain.kernel.errors import FieldError, Malformed, NotFound
from domain.kernel.ports import Outcome
from domain.publication.aggregate import Publication
from domain.publication.handlers import PublicationHandlers
from domain.publication.row import PublicationRow
from domain.publication.values import PublicationKind
from projections.publication.queries import PublicationQueries

routes = APIRouter(prefix="/api/vodpublications", tags=["VOD publications"], route_class=MediaRoute)

_TARGET_DOWN = {503: "The target of the publication cannot be reached; nothing was changed"}


def existing(row: PublicationRow | None, key: object) -> PublicationRow:
    if row is None:
        raise NotFound(Publication.KIND, str(key))
    return row


async def publication_written(
    request: Request, outcome: Outcome[Publication], presenter: Service[PublicationPresenter]
) -> Response:
    shown = await presenter.of_roots(VodPublication, [outcome.aggregate], as_of=outcome.as_of or outcome.before)
    return Response(shown[0], etag=outcome.aggregate.version)


async def publications_created(
    request: Request, outcome: Outcome[Publication], presenter: Service[PublicationPresenter]
) -> Response:
    roots = [outcome.aggregates[place] for place in outcome.result["places"]]
    return Response(await presenter.of_roots(VodPublication, roots, as_of=outcome.as_of))


@routes.post("/", dependencies=[WRITE], response_model=list[VodPublication])
@rules(absent=404, if_match=False, respond=publications_created)
async def create_vod_publications(
    request: Request, body: PublishContentsRequest, handlers: Service[PublicationHandlers]
) -> Outcome[Publication]:
    """Publish contents at destinations, all or none. Uploads run as jobs; the response does not wait for them."""
    return await handlers.create(body.new_publications(), invocation=request.invocation)


async def operation_done(request: Request, outcome: Outcome[Publication]) -> Response:
    fault = outcome.result["fault"]
    return Response(OperationResult.model_construct(description=fault or "Done.", is_successful=fault is None))


@routes.put("/publish/", dependencies=[WRITE], response_model=OperationResult)
@rules(absent=404, respond=operation_done)
async def publish_vod_publication(
    request: Request,
    query: Annotated[PairQuery, Query()],
    handlers: Service[PublicationHandlers],
    body: Annotated[PairRequest | None, Body()] = None,
) -> Outcome[Publication]:
    """Make a publication public at its target, if the target supports it."""
    key, destination = _pair(query, body)
    return await handlers.show(key, destination, published=True, invocation=request.invocation)


@routes.put("/unpublish/", dependencies=[WRITE], response_model=OperationResult)
@rules(absent=404, respond=operation_done)
async def unpublish_vod_publication(
    request: Request,
    query: Annotated[PairQuery, Query()],
    handlers: Service[PublicationHandlers],
    body: Annotated[PairRequest | None, Body()] = None,
) -> Outcome[Publication]:
    """Make a publication private at its target, if the target supports it."""
    key, destination = _pair(query, body)
    return await handlers.show(key, destination, published=False, invocation=request.invocation)


@routes.put("/{id}", dependencies=[WRITE], response_model=VodPublication)
@rules(respond=publication_written)
async def update_vod_publication(
    request: Request, id: UUID, body: UpdatePublicationRequest, handlers: Service[PublicationHandlers]
) -> Outcome[Publication]:
    """Change the text of a publication. A completed publication is changed at its target too, if the target supports it."""
    return await handlers.amend(id, body.destination_id, text=body.publication_json, invocation=request.invocation)


@routes.get("/", dependencies=[READ], response_model=VodPublicationPage)
async def list_vod_publications(
    request: Request,
    query: Annotated[PublicationsQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """A page of VOD publications."""
    page = await publications.page(query.listed(PublicationKind.VOD), query.window)
    shown = await presenter.shown(VodPublication, page.results, query_target=query.query_target)
    return Response(page_body(page, shown), headers=next_page(request, page))


@routes.get("/transactionId/{transactionId}", dependencies=[READ], response_model=list[VodPublication])
@rules(absent="never")
async def list_vod_publications_of_transaction(
    request: Request,
    transaction_id: Annotated[str, Path(alias="transactionId")],
    query: Annotated[TransactionQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The VOD publications of one request; an empty list for an unknown transaction."""
    listed = await publications.listed(query.filter(transaction_id, kind=PublicationKind.VOD))
    return await presenter.array(VodPublication, listed, query_target=query.query_target)


@routes.get("/contentId/", dependencies=[READ], response_model=VodPublication)
@rules(absent=404)
async def get_vod_publication_of_content(
    request: Request,
    query: Annotated[ContentQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The newest VOD publication of a content at a destination."""
    row = existing(await publications.newest(query.content_id, query.destination_id, kind=PublicationKind.VOD), query.content_id)
    shown = await presenter.shown(VodPublication, [row], query_target=query.query_target)
    return Response(shown[0], etag=row.version)


@routes.get("/{id}", dependencies=[READ], response_model=VodPublication)
async def get_vod_publication(
    request: Request,
    id: UUID,
    query: Annotated[OneQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The VOD publication with this id."""
    row = existing(await publications.find(id, destination_id=query.destination_id, kind=PublicationKind.VOD), id)
    shown = await presenter.shown(VodPublication, [row], query_target=query.query_target)
    return Response(shown[0], etag=row.version)


@routes.delete("/{id}", dependencies=[WRITE], response_model=VodPublication)
@rules(respond=publication_written, errors=_TARGET_DOWN)
async def delete_vod_publication(
    request: Request, id: UUID, query: Annotated[DeletePairQuery, Query()], handlers: Service[PublicationHandlers]
) -> Outcome[Publication]:
    """Delete a publication; a running upload is broken. The response shows its last state."""
    return await handlers.delete(id, query.destination_id, hard=query.hard_delete, invocation=request.invocation)


async def publications_deleted(request: Request, outcome: Outcome[Any]) -> Response:
    return Response(DeletedCount.model_construct(deleted_count=outcome.result["deleted"]))


@routes.delete("/all/{contentId}", dependencies=[WRITE], response_model=DeletedCount)
@rules(absent="never", if_match=False, respond=publications_deleted)
async def delete_vod_publications_of_content(
    request: Request, content_id: Annotated[str, Path(alias="contentId")], handlers: Service[PublicationHandlers]
) -> Outcome[Publication]:
    """Delete all VOD publications of a content. The published files stay at their targets."""
    return await handlers.delete_of_content(content_id, invocation=request.invocation)


def _pair(query: PairQuery, body: PairQuery | None) -> tuple[UUID, UUID]:
    key = query.id or (body.id if body is not None else None)
    destination = query.destination_id or (body.destination_id if body is not None else None)
    if key is None or destination is None:
        missing = [name for name, value in (("id", key), ("destinationId", destination)) if value is None]
        raise Malformed(*(FieldError(name, "is required, in the query or in the body") for name in missing))
    return key, destination
