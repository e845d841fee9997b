"""The frames of a clip: from the frame that is shown at its start until the last frame that begins before its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from domain.kernel.errors import Malformed
from domain.kernel.stream_time import stream_point
from workers.job.context import StepFailed
from workers.job.media_paths import RelativePath
from workers.job.workflow import JobParameters
from workers.media.file import Frame, ProbedFile, seconds
from workers.media.filters import SOUND_LINE, Stay, steady


def _from_start(text: str) -> str:
    try:
        is_valid = stream_point(text, field="time").is_span
    except Malformed:
        is_valid = False
    if not is_valid:
        raise PydanticCustomError("time", "must be a time hh:mm:ss[.fff] from the start of the stream")
    return text


Time = Annotated[str, AfterValidator(_from_start)]
"""A time from the start of the stream, such as `00:01:30.250`."""


class AssetParameters(JobParameters):
    """The parameters of all workflows of assets.

    `source` is the file that the asset is made from, and `name` the path of the asset, both below the folder of the content.
    """

    source: RelativePath = Field(description="Path of the source file, below the folder of the content.", examples=["match.mp4"])
    name: RelativePath = Field(description="Path of the new file, below the folder of the content.")


class ClipParameters(AssetParameters):
    """The parameters of a clip, which is shown from `start` until before `end`."""

    start: Time = Field(description="Time from the start of the file, hh:mm:ss[.fff].", examples=["00:01:30"])
    end: Time = Field(description="Time from the start of the file at which the clip ends, hh:mm:ss[.fff].", examples=["00:01:35"])


def in_seconds(time: str) -> float:
    hours, minutes, rest = time.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


_ROUNDED: Final = 0.001
_LONG: Final = 0.25
"""Seconds after which a frame counts as one that stands still."""


@dataclass(frozen=True, slots=True)
class ClipSpan:
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


def span(source: ProbedFile, parameters: ClipParameters) -> ClipSpan:
    """Return the frames of a clip. Raises `StepFailed` if it ends before it begins, or past the end of the file."""
    begin, end = in_seconds(parameters.start), in_seconds(parameters.end)
    if end <= begin:
        raise StepFailed("The end of the clip is not after its start.", final=True)
    first, last = source.frames(begin, end - _ROUNDED, what=(parameters.start, parameters.end))
    if end > last.after + _ROUNDED:
        raise StepFailed(f"{parameters.end} is past the end of {source.name}.", final=True)
    return ClipSpan(first, last, (begin, end))
