"""Values of a composition: docs/reference/api/compositions.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

MOST_ITEMS: Final = 1000
MOST_MARKERS: Final = 1000
"""The limit for all items of a playlist together, because markers are parameters of a job."""


class CompositionKind(IntEnum):
    """STANDARD: a job makes a film of the playlist. ENCODER: an encoder plays it out as a live stream."""

    STANDARD = 0
    ENCODER = 1


class ItemType(IntEnum):
    """The type of an item's value: an Event, an MP4 file by its URL or its path below the media root, or an MP4 file that refers to
    media in other files, which the product cannot play."""

    EVENT = 0
    DIRECT_FULL_MP4 = 1
    DIRECT_DREF_MP4 = 2


class MarkerType(IntEnum):
    """INSERTION: the inserted media shifts the rest of the item. REPLACEMENT: the inserted media covers as much of the item."""

    INSERTION = 0
    REPLACEMENT = 1


class Marker(BaseModel):
    """An SCTE-35 marker. `start_at` is a date-time, or a time from the start of the source; `duration` is `hh:mm:ss`. Both are
    stored as they were sent. With `frame_accurate` None the default of the installation applies."""

    model_config = ConfigDict(frozen=True)

    start_at: str
    duration: str
    frame_accurate: bool | None = None
    type: MarkerType = MarkerType.INSERTION


class Item(BaseModel):
    """A part of a playlist. `value` is the id of the Event for EVENT. `properties` are stored as they were sent, including those
    that the product does not use."""

    model_config = ConfigDict(frozen=True)

    type: ItemType
    value: str
    properties: dict[str, Any] = {}
    markers: tuple[Marker, ...] | None = None

    @property
    def start(self) -> str | None:
        """The start of the item in its source, as it was sent: a date-time, or a time from the start of the source."""
        return self._text("start")

    @property
    def end(self) -> str | None:
        return self._text("end")

    @property
    def frame_accurate(self) -> bool | None:
        """The item's own setting, or None if the default of the installation applies."""
        value = self.properties.get("frameAccurate")
        return value if isinstance(value, bool) else None

    def _text(self, name: str) -> str | None:
        value = self.properties.get(name)
        return value if isinstance(value, str) else None


class Loudness(BaseModel):
    """The loudness of a film's sound. `target` is in LUFS; None stands for the target of the profile."""

    model_config = ConfigDict(frozen=True)

    target: float | None = None
    profile: str = "ebu-r128"


class Playlist(BaseModel):
    """Items in the order in which they are played. Without `loudness` the film has the usual loudness."""

    model_config = ConfigDict(frozen=True)

    name: str = ""
    items: tuple[Item, ...] = ()
    looped: bool = False
    loudness: Loudness | None = None


class CompositionState(IntEnum):
    """WAITING: waits for its time, or for its first job. READY: an encoder may play it at any time."""

    WAITING = 0
    GENERATING = 1
    GENERATED = 2
    FAILED = 3
    READY = 4


@dataclass(frozen=True, kw_only=True)
class FirstStep:
    """The first step for a new playlist of which a film is made. `job` makes the film, and is accepted in the same append.
    `awaits_sources` says that Events in the playlist do not have their films yet. `fault` is the reason for which no film is made.
    Without any of them the playlist waits for its time, or an encoder plays it."""

    job: int | None = None
    awaits_sources: bool = False
    fault: str = ""


NO_STEP = FirstStep()
