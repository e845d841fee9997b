"""The routes of assets. See docs/reference/api/assets.md."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query

from api.engine.job_counts import WaitingJobs
from api.http.body import FORM, JSON
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery, next_after
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.media.asset.presenter import AssetPresenter
from api.media.asset.requests import (
    AddCaptionRequest,
    AssetListQuery,
    DeleteAssetsQuery,
    RenameAssetQuery,
    RequestGifRequest,
    RequestImageRequest,
    RequestVideoRequest,
    place_of,
)
from api.media.asset.responses import Asset, AssetSync
from api.media.custom_property import DeletedCount
from domain.asset.aggregate import Asset as AssetAggregate
from domain.asset.caption_handlers import CaptionHandlers
from domain.asset.handlers import AssetHandlers, NewAsset
from domain.asset.ports import AssetFilter
from domain.kernel.errors import FieldError, Malformed, NotFound
from domain.kernel.ports import Outcome
from projections.asset.queries import AssetQueries
from projections.log.executor import CommandExecutor

routes = APIRouter(prefix="/api/asset", tags=["Assets"], route_class=MediaRoute)

_TOO_MANY: Final = {429: "The client has reached its limit of waiting jobs; see Retry-After"}


async def asset_written(request: Request, outcome: Outcome[AssetAggregate], presenter: Service[AssetPresenter]) -> Response:
    """Return the response of a route that writes one asset."""
    return await presenter.written(request, outcome)


@routes.post("/gif/", dependencies=[WRITE], response_model=Asset)
@rules(absent=404, respond=asset_written, errors=_TOO_MANY)
async def request_gif(
    request: Request, body: RequestGifRequest, handlers: Service[AssetHandlers], waiting: Service[WaitingJobs]
) -> Outcome[AssetAggregate]:
    """Request a GIF of a clip. The response arrives while it is being generated."""
    return await _request(request, body.new_asset(), handlers, waiting=waiting)


@routes.post("/video/", dependencies=[WRITE], response_model=Asset)
@rules(absent=404, respond=asset_written, errors=_TOO_MANY)
async def request_video(
    request: Request, body: RequestVideoRequest, handlers: Service[AssetHandlers], waiting: Service[WaitingJobs]
) -> Outcome[AssetAggregate]:
    """Request a video clip. The response arrives while it is being generated."""
    return await _request(request, body.new_asset(), handlers, waiting=waiting)


@routes.post("/image/", dependencies=[WRITE], response_model=Asset)
@rules(absent=404, respond=asset_written, errors=_TOO_MANY)
async def request_image(
    request: Request, body: RequestImageRequest, handlers: Service[AssetHandlers], waiting: Service[WaitingJobs]
) -> Outcome[AssetAggregate]:
    """Request a picture of one frame. The response arrives while it is being generated."""
    return await _request(request, body.new_asset(), handlers, waiting=waiting)


@routes.post("/caption/", dependencies=[WRITE], response_model=Asset)
@rules(if_match=False, absent=404, respond=asset_written, errors=_TOO_MANY, body_types=(JSON, FORM))
async def add_caption(
    request: Request, body: AddCaptionRequest, handlers: Service[CaptionHandlers], waiting: Service[WaitingJobs]
) -> Outcome[AssetAggregate]:
    """Add captions or subtitles to the film of an Event, or replace those of the same language, kind and name."""
    await waiting.admit(request.caller.name)
    return await handlers.add(body.new_caption(), invocation=request.invocation)


async def assets_synchronised(request: Request, outcome: Outcome[AssetAggregate]) -> Response:
    return Response(AssetSync.of(outcome))


@routes.put("/sync/{eventId}", dependencies=[WRITE], response_model=AssetSync)
@rules(if_match=False, respond=assets_synchronised)
async def sync_assets(
    request: Request, event_id: Annotated[UUID, Path(alias="eventId")], handlers: Service[AssetHandlers]
) -> Outcome[AssetAggregate]:
    """Synchronise the assets of an Event with the files of its content."""
    return await handlers.sync(event_id, invocation=request.invocation)


@routes.put("/{id}", dependencies=[WRITE], response_model=Asset)
@rules(respond=asset_written)
async def rename_asset(
    request: Request, id: UUID, query: Annotated[RenameAssetQuery, Query()], executor: Service[CommandExecutor]
) -> Outcome[AssetAggregate]:
    """Rename an asset. Its file keeps its name."""
    return await executor.execute(AssetAggregate.rename.on(id, query.name), invocation=request.invocation)


@routes.get("/", dependencies=[READ], response_model=list[Asset])
async def list_assets(
    request: Request, query: Annotated[AssetListQuery, Query()], assets: Service[AssetQueries], presenter: Service[AssetPresenter]
) -> Response:
    """The assets that match every filter, the oldest first. If there are more, the header Link leads to the next ones."""
    selection, limit, place = query.filter(extensions=query.extensions), query.limit, query.place
    matches = [] if selection is None else await assets.matching(selection, limit=limit, after=place)
    rows = matches[:limit]
    headers = (next_after(request, place_of(rows[-1])),) if len(matches) > limit else ()
    return Response(await presenter.shown(rows), headers=headers)


@routes.get("/{id}", dependencies=[READ], response_model=Asset)
async def get_asset(
    request: Request,
    id: UUID,
    query: Annotated[FreshQuery, Query()],
    assets: Service[AssetQueries],
    presenter: Service[AssetPresenter],
) -> Response:
    """The asset with this id."""
    row = await assets.find(id)
    if row is None:
        raise NotFound(AssetAggregate.KIND, str(id))
    return Response((await presenter.shown([row]))[0], etag=row.version)


async def assets_deleted(request: Request, outcome: Outcome[AssetAggregate]) -> Response:
    return Response(DeletedCount.model_construct(deleted_count=outcome.result["deleted"]))


@routes.delete("/", dependencies=[WRITE], response_model=DeletedCount)
@rules(if_match=False, respond=assets_deleted)
async def delete_assets(
    request: Request, query: Annotated[DeleteAssetsQuery, Query()], handlers: Service[AssetHandlers]
) -> Outcome[Any]:
    """Delete the assets that match every filter, with their files; at least one filter is required.

    Assets of the system stay, and so do captions unless their type is requested.
    """
    selection = query.filter()
    if selection == AssetFilter():
        raise Malformed(*(FieldError(name, "is required, or another filter") for name in ("eventId", "contentId", "jobId", "name")))
    if selection is None:
        return Outcome(result={"deleted": 0})
    return await handlers.delete_matching(selection, invocation=request.invocation)


@routes.delete("/{id}", dependencies=[WRITE], response_model=Asset)
@rules(respond=asset_written)
async def delete_asset(request: Request, id: UUID, handlers: Service[AssetHandlers]) -> Outcome[AssetAggregate]:
    """Delete an asset with its file; a job that is producing it is broken. The response shows its last state."""
    return await handlers.delete(id, invocation=request.invocation)


async def _request(
    request: Request, new_asset: NewAsset, handlers: AssetHandlers, *, waiting: WaitingJobs
) -> Outcome[AssetAggregate]:
    await waiting.admit(request.caller.name)
    return await handlers.request(new_asset, invocation=request.invocation)
