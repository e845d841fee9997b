"""Playlist: Events in an order; see docs/reference/api/playlists.md."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from domain.record.record import Record


class PlaylistDetails(BaseModel):
    name: str


class Playlist(Record[PlaylistDetails]):
    """A playlist. Items refer to their playlist, which has no list of them, so that items which are added at the same time do
    not conflict."""

    KIND: ClassVar[str] = "playlist"
