"""Playlist item: an Event's place in a playlist; see docs/reference/api/playlists.md#fields-of-a-playlist-item."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from pydantic import BaseModel

from domain.record.record import Record


class PlaylistItemDetails(BaseModel):
    playlist_id: UUID
    event_id: UUID
    start_time: datetime


class PlaylistItem(Record[PlaylistItemDetails]):
    """A playlist item. It refers to its Event without a link, so the Event can be deleted and restored independently."""

    KIND: ClassVar[str] = "playlist_item"
    LINKS: ClassVar[Mapping[str, str]] = {"playlist_id": "playlist"}
    PARENT: ClassVar[str] = "playlist_id"
