"""Playlist: Events in an order; see docs/reference/api/playlists.md."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from domain.records.record import Record


class PlaylistDetails(BaseModel):
    name: str


class Playlist(Record):
    """Items refer to their playlist, which has no list of them: items that are added at the same time do not conflict."""

    KIND: ClassVar[str] = "playlist"
    DETAILS: ClassVar[type[BaseModel]] = PlaylistDetails
