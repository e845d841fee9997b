"""Segments of a stream, as a playlist lists them and as they are downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from domain.kernel.clock import iso
from workers.media import resources
from workers.media.errors import Unreadable
from workers.media.resources import MediaResource as MediaResource

Kind = Literal["main", "audio"]
"""`main` has the video, and the audio too where they are not separate."""

LONGEST: Final = 600.0
"""The longest duration of a segment in seconds."""
MOST_ENTRIES: Final = 100_000
"""The largest number of entries in one playlist."""


class SourceFault(Exception):
    """Raised with one sentence when a source is at fault. `final` means that another request would not help."""

    def __init__(self, sentence: str, *, final: bool = False) -> None:
        super().__init__(sentence)
        self.final = final


def shown_time(moment: float, *, clocked: bool) -> str | float:
    """Return the time of day, or seconds from the start of the stream."""
    return iso(datetime.fromtimestamp(moment, UTC)) if clocked else round(moment, 3)


def absolute_url(base: str, url: str) -> str:
    """Return a URL of a playlist, which may be relative to the playlist, as an absolute one. Raises `SourceFault`."""
    try:
        return resources.joined(base, url)
    except Unreadable:
        raise SourceFault("A URL of the playlist cannot be read.", final=True) from None


@dataclass(frozen=True, slots=True)
class CapturedSegment:
    """A segment of a stream.

    `at` is when it begins, in seconds: since 1970 if the stream tells the time of day, otherwise since the start of the stream.
    `sequence` counts within `epoch`, which changes when an encoder begins to count again. `breaks` means that its time stamps, or
    its coding, do not continue those of the segment before.
    """

    source: int
    kind: Kind
    epoch: int
    sequence: int
    resource: MediaResource
    at: float
    lasts: float
    init: MediaResource | None = None
    breaks: bool = False

    @property
    def end(self) -> float:
        return self.at + self.lasts

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.source}-{self.kind}-{self.epoch}-{self.sequence}"

    def follows(self, other: CapturedSegment) -> bool:
        """Return True if it is the next segment of the same stream."""
        return (self.source, self.epoch, self.sequence) == (other.source, other.epoch, other.sequence + 1)
