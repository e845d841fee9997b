"""The frames of a clip: from the one that is shown at its start until the last one that begins before its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from workers.jobs.context import StepFailed
from workers.jobs.workflows.assets.parameters import ClipParameters, in_seconds
from workers.media.file import Frame, MediaFile, seconds

_ROUNDED: Final = 0.001


@dataclass(frozen=True, slots=True)
class Span:
    """The first and the last frame of a clip."""

    first: Frame
    last: Frame

    @property
    def end(self) -> float:
        """When the last frame ends."""
        return self.last.after

    @property
    def lasts(self) -> float:
        return self.end - self.first.at

    def filters(self, origin: float, *, audio: bool = False) -> str:
        """Cut decoded frames or samples to these frames, whose times count from `origin`."""
        begin, end = (self.first.at, self.end) if audio else (self.first.begin, self.last.middle)
        return f"{'atrim' if audio else 'trim'}=start={seconds(begin - origin)}:end={seconds(end - origin)}"


def span(source: MediaFile, wanted: ClipParameters) -> Span:
    """Fails for a clip that ends before it begins, or past the end of the file."""
    begin, end = in_seconds(wanted.start), in_seconds(wanted.end)
    if end <= begin:
        raise StepFailed("The end of the clip is not after its start.", final=True)
    first, last = source.frames(begin, end - _ROUNDED, what=(wanted.start, wanted.end))
    if end > last.after + _ROUNDED:
        raise StepFailed(f"{wanted.end} is past the end of {source.name}.", final=True)
    return Span(first, last)
