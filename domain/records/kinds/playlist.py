"""Playlist: Events in a row. Document 2, "Playlist and Playlist Item"."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from domain.records.record import Record


class PlaylistDetails(BaseModel):
    name: str


class Playlist(Record):
    """Its items know it, not it them: what is added at the same time as something else is never lost."""

    KIND: ClassVar[str] = "playlist"
    DETAILS: ClassVar[type[BaseModel]] = PlaylistDetails
