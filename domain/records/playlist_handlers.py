"""Use cases of playlists: add Events to them and remove them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome
from domain.media_event.ports import EventLookup
from domain.records.kinds.playlist import Playlist
from domain.records.kinds.playlist_item import PlaylistItem
from domain.records.ports import RecordLookup
from domain.records.record import DeleteRecord, Record, RegisterRecord


class PlaylistHandlers:
    """Adds and deletes the items of playlists. Playlists themselves need no more than `RecordHandlers`."""

    def __init__(self, executor: Executor, records: RecordLookup, *, events: EventLookup) -> None:
        self._executor = executor
        self._records = records
        self._events = events

    async def add_item(self, playlist: UUID, event: UUID, *, start_time: datetime, invocation: Invocation) -> Outcome[Record]:
        """Add an Event to a playlist. It may be in the playlist several times."""
        if await self._events.by_id(event) is None:
            raise Malformed.at("eventId", "there is no such event")
        if await self._records.find(Playlist.KIND, playlist) is None:
            raise NotFound(Playlist.KIND, str(playlist))
        values = {"playlist_id": playlist, "event_id": event, "start_time": start_time}
        return await self._executor.execute(RegisterRecord(new_id(), PlaylistItem, values, new=True), invocation=invocation)

    async def delete_item(self, playlist: UUID, item: UUID, *, invocation: Invocation) -> Outcome[Record]:
        """Delete an item. Items never move to another playlist, so the look-up stays true until the append."""
        row = await self._records.find(PlaylistItem.KIND, item)
        if row is None or row.details.playlist_id != playlist:
            raise NotFound(PlaylistItem.KIND, str(item))
        return await self._executor.execute(DeleteRecord(item, PlaylistItem), invocation=invocation)
