"""Live publications of Events, in the media API: docs/reference/api/publications.md#live-publications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.media.publication.batches import EntryResult, each, started_after
from api.media.publication.live_requests import (
    DeleteStreamsRequest,
    OneStreamRequest,
    PublishLiveRequest,
    RecreateRequest,
    SeveralStreamsRequest,
    StreamQuery,
)
from api.media.publication.media import all_or_page
from api.media.publication.presenter import PublicationPresenter
from api.media.publication.requests import OneQuery, PublicationsQuery, TransactionQuery
from api.media.publication.responses import LivePublication, OperationResult, PushStatistics, StreamResult
from api.media.publication.vod import existing, operation_done
from domain.kernel.errors import Unavailable
from domain.kernel.ports import Outcome
from domain.publication.aggregate import Publication
from domain.publication.live_handlers import LivePublicationHandlers, RequestedLive
from domain.publication.values import PublicationKind, PublicationState
from projections.publication.queries import PublicationQueries, PushesSeen

routes = APIRouter(prefix="/api/media/livepublication", tags=["Media live publications"], route_class=MediaRoute)

_LIVE = PublicationKind.LIVE
_TARGET_DOWN = {503: "The target of the publication cannot be reached; nothing was changed"}


async def streams_created(
    request: Request,
    outcome: Outcome[Publication],
    presenter: Service[PublicationPresenter],
    handlers: Service[LivePublicationHandlers],
) -> Response:
    """Start the publications that the request starts immediately, and return all of them. A repeated request starts those that
    have not changed since their creation."""
    if outcome.result["start"]:
        outcome = await started_after(outcome, handlers, invocation=request.invocation)
    roots = [outcome.aggregates[place] for place in outcome.result["places"]]
    return Response(await presenter.of_roots(LivePublication, roots, as_of=outcome.as_of))


async def stream_written(request: Request, outcome: Outcome[Publication], presenter: Service[PublicationPresenter]) -> Response:
    shown = await presenter.of_roots(LivePublication, [outcome.aggregate], as_of=outcome.as_of)
    return Response(shown[0], etag=outcome.aggregate.version)


@routes.post("/", dependencies=[WRITE], response_model=list[LivePublication])
@rules(absent=404, if_match=False, respond=streams_created)
async def publish_event_live(
    request: Request, body: PublishLiveRequest, handlers: Service[LivePublicationHandlers]
) -> Outcome[Publication]:
    """Create live publications of an Event, all or none. With `startInstantly` each is started."""
    return await handlers.create(body.event_id, body.new_streams(), start=body.start_instantly, invocation=request.invocation)


@routes.put("/recreate/", dependencies=[WRITE], response_model=LivePublication)
@rules(absent=404, respond=stream_written, errors=_TARGET_DOWN)
async def recreate_live_publication(
    request: Request, body: RecreateRequest, handlers: Service[LivePublicationHandlers]
) -> Outcome[Publication]:
    """Restart a publication from its initial state under its id. The details of its target are discarded."""
    return await handlers.recreate(body.event_id, body.entry(), remove_original=body.remove_original, invocation=request.invocation)


@routes.put("/start/", dependencies=[WRITE], response_model=LivePublication)
@rules(absent=404, respond=stream_written, errors=_TARGET_DOWN)
async def start_live_publication(
    request: Request, body: OneStreamRequest, handlers: Service[LivePublicationHandlers]
) -> Outcome[Publication]:
    """Start a publication: its target takes the stream, which is pushed to it as soon as the Event is live."""
    return await handlers.start(body.event_id, body.entry(), invocation=request.invocation)


@routes.put("/stop/", dependencies=[WRITE], response_model=LivePublication)
@rules(absent=404, respond=stream_written)
async def stop_live_publication(
    request: Request, body: OneStreamRequest, handlers: Service[LivePublicationHandlers]
) -> Outcome[Publication]:
    """Stop a publication. A publication that was not started, or has ended, stays unchanged."""
    return await handlers.stop(body.event_id, body.entry(), invocation=request.invocation)


@routes.put("/start/all/", dependencies=[WRITE], response_model=list[StreamResult])
@rules(if_match=False)
async def start_live_publications(
    request: Request, body: SeveralStreamsRequest, handlers: Service[LivePublicationHandlers]
) -> Response:
    """Start several publications at once. Each has its own result."""

    async def start(entry: RequestedLive) -> str | None:
        root = (await handlers.start(body.event_id, entry, invocation=request.invocation)).aggregate
        return None if root.state is PublicationState.InProgress or root.start_awaited else root.reason

    return _results(await each(body.entries(), start))


@routes.put("/stop/all/", dependencies=[WRITE], response_model=list[StreamResult])
@rules(if_match=False)
async def stop_live_publications(
    request: Request, body: SeveralStreamsRequest, handlers: Service[LivePublicationHandlers]
) -> Response:
    """Stop several publications at once. Each has its own result."""

    async def stop(entry: RequestedLive) -> None:
        await handlers.stop(body.event_id, entry, invocation=request.invocation)

    return _results(await each(body.entries(), stop))


@routes.put("/publish/", dependencies=[WRITE], response_model=OperationResult)
@rules(absent=404, respond=operation_done)
async def publish_live_publication(
    request: Request, body: OneStreamRequest, handlers: Service[LivePublicationHandlers]
) -> Outcome[Publication]:
    """Make a publication public at its target, if the target supports it."""
    return await handlers.show(body.event_id, body.entry(), published=True, invocation=request.invocation)


@routes.put("/unpublish/", dependencies=[WRITE], response_model=OperationResult)
@rules(absent=404, respond=operation_done)
async def unpublish_live_publication(
    request: Request, body: OneStreamRequest, handlers: Service[LivePublicationHandlers]
) -> Outcome[Publication]:
    """Make a publication private at its target, if the target supports it."""
    return await handlers.show(body.event_id, body.entry(), published=False, invocation=request.invocation)


@routes.get("/", dependencies=[READ], response_model=list[LivePublication])
async def list_live_publications(
    request: Request,
    query: Annotated[PublicationsQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The live publications: a page of them, or all without a pageSize."""
    return await all_or_page(request, query, publications, presenter, model=LivePublication, kind=_LIVE)


@routes.get("/transactionId/{transactionId}", dependencies=[READ], response_model=list[LivePublication])
@rules(absent="never")
async def list_live_publications_of_transaction(
    request: Request,
    transaction_id: Annotated[str, Path(alias="transactionId")],
    query: Annotated[TransactionQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The live publications of one request; an empty list for an unknown transaction."""
    listed = await publications.listed(query.filter(transaction_id, kind=_LIVE))
    return await presenter.array(LivePublication, listed, query_target=query.query_target)


@routes.get("/contentId/{contentId}", dependencies=[READ], response_model=LivePublication)
async def get_live_publication_of_content(
    request: Request,
    content_id: Annotated[str, Path(alias="contentId")],
    query: Annotated[OneQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The newest live publication of an Event at a destination."""
    row = existing(await publications.newest(content_id, query.destination_id, kind=_LIVE), content_id)
    shown = await presenter.shown(LivePublication, [row], query_target=query.query_target)
    return Response(shown[0], etag=row.version)


@routes.get("/statistics/{publicationId}", dependencies=[READ], response_model=PushStatistics)
@rules(errors={503: "No statistics are reported for its push, or the push has not begun"})
async def get_live_publication_statistics(
    request: Request,
    publication_id: Annotated[UUID, Path(alias="publicationId")],
    query: Annotated[StreamQuery, Query()],
    publications: Service[PublicationQueries],
    statistics: Service[PushesSeen],
    handlers: Service[LivePublicationHandlers],
) -> Response:
    """The transmission statistics of a publication, reported by the current or last session that pushes it."""
    row = existing(await publications.find(publication_id, destination_id=query.destination_id, kind=_LIVE), publication_id)
    report = await handlers.server_statistics(row) if row.served_by else await statistics.of(row)
    if report is None:
        raise Unavailable("the push of the publication")
    return Response(PushStatistics.of(row, report))


@routes.get("/{id}", dependencies=[READ], response_model=LivePublication)
async def get_live_publication(
    request: Request,
    id: UUID,
    query: Annotated[OneQuery, Query()],
    publications: Service[PublicationQueries],
    presenter: Service[PublicationPresenter],
) -> Response:
    """The live publication with this id."""
    row = existing(await publications.find(id, destination_id=query.destination_id, kind=_LIVE), id)
    shown = await presenter.shown(LivePublication, [row], query_target=query.query_target)
    return Response(shown[0], etag=row.version)


@routes.delete("/", dependencies=[WRITE], response_model=list[StreamResult])
@rules(if_match=False)
async def delete_live_publications(
    request: Request, body: DeleteStreamsRequest, handlers: Service[LivePublicationHandlers]
) -> Response:
    """Delete several publications and stop their pushes. Each has its own result."""

    async def delete(entry: RequestedLive) -> None:
        await handlers.delete(body.event_id, entry, invocation=request.invocation)

    return _results(await each(body.entries(), delete))


def _results(results: Sequence[EntryResult]) -> Response:
    return Response([StreamResult.of(result) for result in results])
