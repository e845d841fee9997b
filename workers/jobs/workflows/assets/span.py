"""The frames of a clip: from the frame that is shown at its start until the last frame that begins before its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from workers.jobs.context import StepFailed
from workers.jobs.workflows.assets.parameters import ClipParameters, in_seconds
from workers.media.file import Frame, MediaFile, seconds
from workers.media.filters import SOUND_LINE, Stay, steady

_ROUNDED: Final = 0.001
_LONG: Final = 0.25
"""Seconds after which a frame counts as one that stands still."""


@dataclass(frozen=True, slots=True)
class Span:
    """The first and the last frame of a clip, and the requested times.

    A frame that stands still is shown from the requested start, or until the requested end: otherwise it would make a clip of two
    seconds last a minute.
    """

    first: Frame
    last: Frame
    requested: tuple[float, float]

    @property
    def begin(self) -> float:
        return max(self.first.at, self.requested[0]) if _stands(self.first) else self.first.at

    @property
    def end(self) -> float:
        """The time at which the last frame ends."""
        return min(self.last.after, self.requested[1]) if _stands(self.last) else self.last.after

    def steady(self, source: str, made: str, *, name: str = "steady", lines: int) -> str:
        """Return the graph that repeats a still picture of so many lines, also at the end of the clip."""
        stay = Stay(self.lasts, lines) if _stands(self.last) else None
        return steady(source, made, name=name, stay=stay, most=self.lasts)

    @property
    def lasts(self) -> float:
        return self.end - self.begin

    def filters(self, origin: float, *, audio: bool = False) -> str:
        """Return filters that cut the decoded frames or samples of a file with this origin to the clip. Their times then count from
        its start."""
        moved = f"PTS-{seconds(self.begin + origin)}/TB"
        if audio:
            end = seconds(self.lasts)
            return f"asetpts={moved},{SOUND_LINE},atrim=end={end},apad=whole_dur={end}"
        cut = f"trim=start={seconds(self.first.begin + origin)}:end={seconds(self.last.middle + origin)}"
        return f"{cut},setpts=max({moved}\\,0)"


def _stands(frame: Frame) -> bool:
    return frame.after - frame.at > _LONG


def span(source: MediaFile, parameters: ClipParameters) -> Span:
    """Return the frames of a clip. Raises `StepFailed` if it ends before it begins, or past the end of the file."""
    begin, end = in_seconds(parameters.start), in_seconds(parameters.end)
    if end <= begin:
        raise StepFailed("The end of the clip is not after its start.", final=True)
    first, last = source.frames(begin, end - _ROUNDED, what=(parameters.start, parameters.end))
    if end > last.after + _ROUNDED:
        raise StepFailed(f"{parameters.end} is past the end of {source.name}.", final=True)
    return Span(first, last, (begin, end))
