"""The plan of a recording: the segment, and its source, that is used for each moment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from workers.job.workflows.capture.segments import CapturedSegment

TOLERANCE: Final = 0.25
"""Seconds. Durations of playlists are rounded, and encoders that run side by side are not exact."""


@dataclass(frozen=True, slots=True)
class Used:
    """A segment, which is used until a moment if another one begins before its end."""

    segment: CapturedSegment
    until: float


@dataclass(frozen=True, slots=True)
class CaptureGap:
    """A span from `begin` to `end` for which no source has a segment."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """The segments of a recording and its gaps.

    `complete` means that it reaches the end, or as far as segments will come. `tail` is the segment after the end, if there is one:
    it may contain the last audio, since a muxer writes it later than the video of its time.
    """

    items: tuple[Used | CaptureGap, ...]
    complete: bool
    tail: CapturedSegment | None = None

    @property
    def used(self) -> list[Used]:
        return [item for item in self.items if isinstance(item, Used)]

    @property
    def gaps(self) -> list[CaptureGap]:
        return [item for item in self.items if isinstance(item, CaptureGap)]


def plan(
    sources: Mapping[int, Sequence[CapturedSegment]],
    *,
    start: float,
    end: float,
    unusable: Container[str] = (),
    waiting: Container[int] = (),
) -> CapturePlan:
    """Plan a recording: the same source is used as long as it has the next segment, then another one.

    The `waiting` sources may list more, so nothing is decided that their next segments could change.
    """
    listed = {
        number: _Timeline([segment for segment in segments if segment.name not in unusable]) for number, segments in sources.items()
    }
    edges = {number: (segments[-1].end if segments else start) for number, segments in sources.items()}
    open_ended = [number for number in sources if number in waiting]
    items: list[Used | CaptureGap] = []
    current: CapturedSegment | None = None
    cursor = start
    while cursor < end - 0.001:
        chosen = _following(listed, current, cursor)
        if chosen is None:
            waits = [number for number in open_ended if edges[number] <= cursor + TOLERANCE]
            if current is None and waits and min(waits) == min(sources):
                return CapturePlan(tuple(items), complete=False)
            if current is not None and current.source in waits:
                return CapturePlan(tuple(items), complete=False)
            chosen = _covering(listed, cursor)
            if chosen is None:
                if waits:
                    return CapturePlan(tuple(items), complete=False)
                begins = min([end, *(segment.at for line in listed.values() if (segment := line.after(cursor)) is not None)])
                items.append(CaptureGap(cursor, begins))
                cursor, current = begins, None
                continue
        if items and isinstance(items[-1], Used) and current is not None and not chosen.follows(current):
            items[-1] = replace(items[-1], until=max(min(items[-1].until, chosen.at), current.at))
        items.append(Used(chosen, chosen.end))
        cursor, current = max(chosen.end, cursor + 0.001), chosen
    tail = None if current is None else listed[current.source].after(current.at)
    if tail is not None and current is not None and (not tail.follows(current) or tail.breaks or tail.init != current.init):
        tail = None
    return CapturePlan(tuple(items), complete=True, tail=tail)


class _Timeline:
    """The segments of a source, found by their times."""

    def __init__(self, segments: list[CapturedSegment]) -> None:
        self._segments = sorted(segments, key=lambda segment: segment.at)
        self._times = [segment.at for segment in self._segments]

    def covering(self, moment: float) -> CapturedSegment | None:
        index = bisect_right(self._times, moment + min(TOLERANCE, self._least(moment))) - 1
        candidate = self._segments[index] if index >= 0 else None
        return candidate if candidate is not None and candidate.end > moment + min(TOLERANCE, candidate.lasts / 4) else None

    def after(self, moment: float) -> CapturedSegment | None:
        index = bisect_right(self._times, moment)
        return self._segments[index] if index < len(self._segments) else None

    def _least(self, moment: float) -> float:
        """Return a tolerance of at most a quarter of the next segment, so that it is never as long as a segment."""
        following = self.after(moment)
        return TOLERANCE if following is None else following.lasts / 4


def _following(listed: Mapping[int, _Timeline], current: CapturedSegment | None, cursor: float) -> CapturedSegment | None:
    """Return the next segment of the same source; None at first."""
    if current is None:
        return None
    line = listed.get(current.source)
    near = None if line is None else line.after(current.at)
    if near is not None and near.follows(current) and abs(near.at - cursor) <= max(TOLERANCE, near.lasts / 2):
        return near
    return None if line is None else line.covering(cursor)


def _covering(listed: Mapping[int, _Timeline], cursor: float) -> CapturedSegment | None:
    """Return the segment of the first source that begins one there, otherwise that of the first source that has one."""
    candidates = [segment for number in sorted(listed) if (segment := listed[number].covering(cursor)) is not None]
    return min(candidates, key=lambda segment: (abs(segment.at - cursor) > TOLERANCE, segment.source), default=None)
