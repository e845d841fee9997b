"""Segments of a stream, as a playlist lists them and as they are downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from domain.kernel.clock import iso
from workers.media import resources
from workers.media.errors import Unreadable
from workers.media.resources import Resource as Resource

Kind = Literal["main", "audio"]
"""`main` has the video, and the audio too where they are not separate."""

LONGEST: Final = 600.0
"""Seconds of a segment."""
MOST_ENTRIES: Final = 100_000
"""Of one playlist."""


class SourceFault(Exception):
    """One sentence: what is wrong with a source. `final`: asking again would not help."""

    def __init__(self, sentence: str, *, final: bool = False) -> None:
        super().__init__(sentence)
        self.final = final


def shown_time(moment: float, *, clocked: bool) -> str | float:
    """The time of day, or seconds from the start of the stream."""
    return iso(datetime.fromtimestamp(moment, UTC)) if clocked else round(moment, 3)


def joined(base: str, url: str) -> str:
    """A URL of a playlist, which may be relative to it."""
    try:
        return resources.joined(base, url)
    except Unreadable:
        raise SourceFault("A URL of the playlist cannot be read.", final=True) from None


@dataclass(frozen=True, slots=True)
class Segment:
    """`at` is when it begins, in seconds: since 1970 where the stream tells the time of day, else from the start of the stream.

    `sequence` counts within `epoch`, which changes when an encoder begins to count again. `breaks`: its time stamps, or its
    coding, do not go on from the segment before."""

    source: int
    kind: Kind
    epoch: int
    sequence: int
    resource: Resource
    at: float
    lasts: float
    init: Resource | None = None
    breaks: bool = False

    @property
    def end(self) -> float:
        return self.at + self.lasts

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.source}-{self.kind}-{self.epoch}-{self.sequence}"

    def follows(self, other: Segment) -> bool:
        """Whether it is the next one of the same stream."""
        return (self.source, self.epoch, self.sequence) == (other.source, other.epoch, other.sequence + 1)
