"""Values of a composition: docs/reference/api/compositions.md."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

MOST_ITEMS: Final = 1000
MOST_MARKERS: Final = 1000
"""Of a playlist, in all its items together: they are parameters of a job."""


class CompositionKind(IntEnum):
    """STANDARD: a job makes a film of the playlist. ENCODER: an encoder plays it out as a live stream."""

    STANDARD = 0
    ENCODER = 1


class ItemType(IntEnum):
    """What the value of an item names: an Event, an MP4 file by its URL or its path below the media root, or an MP4 file that
    refers to media in other files, which nothing here plays."""

    EVENT = 0
    DIRECT_FULL_MP4 = 1
    DIRECT_DREF_MP4 = 2


class MarkerType(IntEnum):
    """INSERTION: what is inserted shifts what follows. REPLACEMENT: what is inserted covers as much of the item."""

    INSERTION = 0
    REPLACEMENT = 1


class Marker(BaseModel):
    """An SCTE-35 marker. `start_at` is a date-time, or a time from the start of the source; `duration` is `hh:mm:ss`. Both are as
    they were sent. `frame_accurate` is None where the default of the installation counts."""

    model_config = ConfigDict(frozen=True)

    start_at: str
    duration: str
    frame_accurate: bool | None = None
    type: MarkerType = MarkerType.INSERTION


class Item(BaseModel):
    """A part of a playlist. `value` is the id of the Event for EVENT. `properties` are as they were sent, also those that mean
    nothing here."""

    model_config = ConfigDict(frozen=True)

    type: ItemType
    value: str
    properties: dict[str, Any] = {}
    markers: tuple[Marker, ...] | None = None

    @property
    def start(self) -> str | None:
        """Where the item begins in its source, as it was sent: a date-time, or a time from the start of the source."""
        return self._text("start")

    @property
    def end(self) -> str | None:
        return self._text("end")

    @property
    def frame_accurate(self) -> bool | None:
        """None: the default of the installation counts."""
        found = self.properties.get("frameAccurate")
        return found if isinstance(found, bool) else None

    def _text(self, name: str) -> str | None:
        found = self.properties.get(name)
        return found if isinstance(found, str) else None


class Loudness(BaseModel):
    """How loud the sound of a film is to be. `target` is in LUFS; None is that of the profile."""

    model_config = ConfigDict(frozen=True)

    target: float | None = None
    profile: str = "ebu-r128"


class Playlist(BaseModel):
    """Items in the order in which they are played. Without `loudness` a film has the usual one."""

    model_config = ConfigDict(frozen=True)

    name: str = ""
    items: tuple[Item, ...] = ()
    looped: bool = False
    loudness: Loudness | None = None


class CompositionState(IntEnum):
    """WAITING: for its time, or for its first job. READY: an encoder may play it at any time."""

    WAITING = 0
    GENERATING = 1
    GENERATED = 2
    FAILED = 3
    READY = 4
