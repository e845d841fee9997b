"""Playlists and their items: document 2, "Playlists". POST, and all of an item but the list, are ours: decisions.md."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.kernel.answer import Answer, iso
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes
from api.kernel.wire import Instant, Name, Wire
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.kernel.errors import Malformed, NotFound
from domain.records.kinds.playlist import Playlist
from domain.records.kinds.playlist_item import PlaylistItem
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries, RecordRow

routes = Routes("/playlist", tag="Playlists")


class PlaylistBody(Wire):
    """A name is required for a new playlist."""

    name: Name | None = None


class NewPlaylistBody(Wire):
    name: Name


class NewPlaylistItemBody(Wire):
    event_id: UUID
    start_time: Instant


class PlaylistWire(Wire):
    id: UUID
    name: str


class PlaylistItemWire(Wire):
    id: UUID
    playlist_id: UUID
    event_id: UUID
    start_time: Instant


def shaped(playlist: RecordRow) -> dict[str, Any]:
    return {"id": playlist.id, "name": playlist.details.name}


def item_object(item: RecordRow) -> dict[str, Any]:
    details = item.details
    return {
        "id": item.id,
        "playlistId": str(details.playlist_id),
        "eventId": str(details.event_id),
        "startTime": iso(details.start_time),
    }


def items_of(playlist: object) -> Resource:
    return Resource(PlaylistItem, f"/api/playlist/{playlist}/playlistItems", item_object)


PLAYLISTS = Resource(Playlist, "/api/playlist", shaped)
StandardRoutes(routes, PLAYLISTS, PlaylistWire, absent=204).add(NewPlaylistBody).by_id()
ITEMS = items_of("{id}")


@routes.put("/{id}", WRITE, answers=PlaylistWire)
async def put_playlist(call: Call, id: UUID, body: PlaylistBody, bus: CommandBus) -> Answer:
    """Rename a playlist; with an unknown id, add one with that id."""
    return await bus.send(call, PLAYLISTS.put(id, body), PLAYLISTS.written)


@routes.get("/", READ, answers=list[PlaylistWire], absent=204)
async def list_playlists(call: Call, records: RecordQueries) -> Answer:
    """All playlists, by name; 204 when there is none."""
    rows = await records.all(Playlist.KIND)
    if not rows:
        raise NotFound(Playlist.KIND, "at all")
    return PLAYLISTS.listed(rows)


@routes.post("/{id}/playlistItems/", WRITE, answers=PlaylistItemWire, status=201)
async def add_playlist_item(
    call: Call, id: UUID, body: NewPlaylistItemBody, bus: CommandBus, records: RecordQueries, events: EventQueries
) -> Answer:
    """Put an Event into a playlist. It may be there several times."""
    if await events.by_id(body.event_id) is None:
        raise Malformed.at("eventId", "there is no such event")
    await records.known(Playlist.KIND, id)
    items = items_of(id)
    return await bus.send(call, items.add(body, playlist_id=id), items.created)


@routes.get("/{id}/playlistItems/", READ, answers=list[PlaylistItemWire])
async def items_of_playlist(call: Call, id: UUID, records: RecordQueries) -> Answer:
    """The items of a playlist, by start time; none for a playlist that is not there."""
    rows = await records.of_parent(PlaylistItem.KIND, id)
    return ITEMS.listed(sorted(rows, key=lambda row: (row.details.start_time, row.id)))


@routes.get("/{id}/playlistItems/{itemId}", READ, answers=PlaylistItemWire)
async def playlist_item_by_id(call: Call, id: UUID, item_id: UUID, records: RecordQueries) -> Answer:
    """One item of a playlist."""
    return ITEMS.found(await _item(records, id, item_id=item_id), item_id)


@routes.delete("/{id}/playlistItems/{itemId}", WRITE, answers=PlaylistItemWire)
async def withdraw_playlist_item(call: Call, id: UUID, item_id: UUID, bus: CommandBus, records: RecordQueries) -> Answer:
    """Take an item out of a playlist; the answer is the item as it last was."""
    if await _item(records, id, item_id=item_id) is None:
        raise NotFound(PlaylistItem.KIND, str(item_id))
    return await bus.send(call, ITEMS.withdraw(item_id), ITEMS.written)


async def _item(records: RecordQueries, playlist: UUID, *, item_id: UUID) -> RecordRow | None:
    """An item never moves to another playlist, so what is found here stays so."""
    row = await records.find(PlaylistItem.KIND, item_id)
    return row if row is not None and row.details.playlist_id == playlist else None
