"""The state of one source while it is captured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from workers.jobs.workflows.capture.segments import Kind, Segment
from workers.jobs.workflows.capture.streams import PATIENCE, Stream

_SHORTEST: Final = 1.0


@dataclass
class Source:
    """The state of a source. `done` means that nothing more is expected of it. `fault` is its latest fault."""

    number: int
    url: str
    stream: Stream | None = None
    loaded: bool = False
    tried: bool = False
    done: bool = False
    left_out: bool = False
    fault: str | None = None
    failures: int = 0
    moved: float = field(default_factory=monotonic)
    shift: float = 0.0
    """Seconds between its times and the clock, if it does not tell the time of day."""

    @property
    def tracks(self) -> Mapping[Kind, Sequence[Segment]]:
        return {} if self.stream is None or self.left_out or not self.loaded else self.stream.tracks

    @property
    def edge(self) -> float | None:
        """The time until which it has listed segments on each of its tracks; None without segments."""
        tracks = self.tracks
        return min(track[-1].end for track in tracks.values()) if tracks and all(tracks.values()) else None

    @property
    def stalled(self) -> bool:
        target = self.stream.target if self.stream is not None else 0.0
        return monotonic() - self.moved >= max(PATIENCE * target, _SHORTEST)

    @property
    def waiting(self) -> bool:
        """Return True if its next segment may come soon."""
        return not self.done and (not self.tried or (self.loaded and not self.failures and not self.stalled))

    def leave_out(self, why: str) -> None:
        self.fault, self.left_out, self.done = why, True, True
