"""Playlists and their items; see docs/reference/api/playlists.md."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Instant, Name, Wire
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from domain.record.handlers import PlaylistHandlers, RecordHandlers
from domain.record.kinds.playlist import Playlist as PlaylistRecord
from domain.record.kinds.playlist import PlaylistDetails
from domain.record.kinds.playlist_item import PlaylistItem as PlaylistItemRecord
from domain.record.kinds.playlist_item import PlaylistItemDetails
from domain.record.ports import RecordRow
from domain.record.record import Record
from projections.record.queries import RecordQueries

routes = APIRouter(prefix="/api/playlist", tags=["Playlists"], route_class=MediaRoute)


class PutPlaylistRequest(Wire):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Best of the month"}]})

    name: Name | None = Field(
        None, description="The name of the playlist; required for an unknown id, not blank. null leaves it unchanged."
    )


class AddPlaylistRequest(Wire):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Best of the week"}]})

    name: Name = Field(description="The name of the playlist; required, not blank, not unique.")


class AddPlaylistItemRequest(Wire):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"eventId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "startTime": "2031-01-01T20:00:00.000Z"}]
        }
    )

    event_id: UUID = Field(description="The Event, which must exist; required.")
    start_time: Instant = Field(description="The time that orders the items of the playlist; required.")


class Playlist(Wire):
    """A playlist in a response."""

    id: UUID = Field(description="The id of the playlist.")
    name: str = Field(description="The name of the playlist; not unique.")

    @classmethod
    def of(cls, row: RecordRow[PlaylistDetails]) -> Playlist:
        return cls.model_construct(id=UUID(row.id), name=row.details.name)


class PlaylistItem(Wire):
    """An Event in a playlist."""

    id: UUID = Field(description="The id of the item.")
    playlist_id: UUID = Field(description="The playlist; never changes.")
    event_id: UUID = Field(description="The Event.")
    start_time: Instant = Field(description="The time that orders the items of the playlist.")

    @classmethod
    def of(cls, row: RecordRow[PlaylistItemDetails]) -> PlaylistItem:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id), playlist_id=details.playlist_id, event_id=details.event_id, start_time=details.start_time
        )


PLAYLISTS = Resource(PlaylistRecord, "/api/playlist", Playlist.of)
ITEMS = Resource(PlaylistItemRecord, "/api/playlist/{id}/playlistItems", PlaylistItem.of)
StandardRoutes(routes, PLAYLISTS, Playlist, absent=204).add(AddPlaylistRequest).by_id()


@routes.put("/{id}", dependencies=[WRITE], response_model=Playlist)
@rules(absent="never", respond=PLAYLISTS.respond)
async def put_playlist(request: Request, id: UUID, body: PutPlaylistRequest, handlers: Service[RecordHandlers]) -> Outcome[Record]:
    """Rename a playlist, or add one with this id if it is unknown."""
    return await handlers.register(PlaylistRecord, PLAYLISTS.values(body), key=id, invocation=request.invocation)


@routes.get("/", dependencies=[READ], response_model=list[Playlist])
@rules(absent=204)
async def list_playlists(request: Request, records: Service[RecordQueries]) -> Response:
    """All playlists, by name; 204 when there is none."""
    listed = await PLAYLISTS.array(records.parts(PlaylistRecord))
    if listed.content == []:
        raise NotFound(PlaylistRecord.KIND, "any")
    return listed


async def item_added(request: Request, outcome: Outcome[Any]) -> Response:
    item = outcome.aggregate
    location = f"/api/playlist/{item.details.playlist_id}/playlistItems/{item.key}"
    return Response(PlaylistItem.of(RecordRow.of(item)), 201, etag=item.version, location=location)


@routes.post("/{id}/playlistItems/", dependencies=[WRITE], response_model=PlaylistItem, status_code=201)
@rules(respond=item_added)
async def add_playlist_item(
    request: Request, id: UUID, body: AddPlaylistItemRequest, handlers: Service[PlaylistHandlers]
) -> Outcome[Record]:
    """Add an Event to a playlist. It may be in the playlist several times."""
    return await handlers.add_item(id, body.event_id, start_time=body.start_time, invocation=request.invocation)


@routes.get("/{id}/playlistItems/", dependencies=[READ], response_model=list[PlaylistItem], name="list_playlist_items")
@rules(absent="never")
async def items_of_playlist(request: Request, id: UUID, records: Service[RecordQueries]) -> Response:
    """The items of a playlist, by start time; an empty list for an unknown playlist."""
    rows = await records.of_parent(PlaylistItemRecord, id)
    return ITEMS.listed(sorted(rows, key=lambda row: (row.details.start_time, row.id)))


@routes.get("/{id}/playlistItems/{itemId}", dependencies=[READ], response_model=PlaylistItem, name="get_playlist_item")
async def playlist_item_by_id(
    request: Request, id: UUID, item_id: Annotated[UUID, Path(alias="itemId")], records: Service[RecordQueries]
) -> Response:
    """The item of a playlist with this id."""
    row = await records.find(PlaylistItemRecord, item_id)
    return ITEMS.single(row if row is not None and row.details.playlist_id == id else None, item_id)


@routes.delete("/{id}/playlistItems/{itemId}", dependencies=[WRITE], response_model=PlaylistItem)
@rules(respond=ITEMS.respond)
async def delete_playlist_item(
    request: Request, id: UUID, item_id: Annotated[UUID, Path(alias="itemId")], handlers: Service[PlaylistHandlers]
) -> Outcome[Record]:
    """Remove an item from a playlist. The response shows its last state."""
    return await handlers.delete_item(id, item_id, invocation=request.invocation)
