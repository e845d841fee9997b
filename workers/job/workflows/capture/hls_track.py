"""The segments of one HLS media playlist that moves on. Segments that it no longer lists stay known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from workers.job.workflows.capture.hls import CapturedPlaylist
from workers.job.workflows.capture.segments import CapturedSegment, Kind
from workers.media.hls import PlaylistEntry

_HALF_HOUR: Final = 1800.0
_EXACT: Final = 2.0
"""Seconds by which a clock that is set to another time zone may differ from half hours."""
_BACK: Final = 1.0


@dataclass(frozen=True, slots=True)
class ClockJump:
    """A jump of the time of day in a playlist by so many seconds, at a moment as it was counted before."""

    at: float
    seconds: float


class HlsTrack:
    """The segments of a track. If `clocked`, the playlist tells the time of day; otherwise the first segment that was listed begins
    at 0."""

    def __init__(self, source: int, kind: Kind) -> None:
        self._source = source
        self._kind: Kind = kind
        self.segments: list[CapturedSegment] = []
        """The segments in the order of the stream, with gaps for segments that were not listed or are marked as absent."""
        self.clocked = False
        self.restarts = 0
        self.jumps: list[ClockJump] = []
        """The jumps of the clock since they were last taken."""
        self._at: dict[int, float] = {}
        """The begin of each segment of the present epoch, by sequence."""
        self._jumped = 0.0
        self._epoch = 0
        self._urls: dict[int, str] = {}
        """The URLs of the present epoch, by sequence, including those of absent segments."""
        self._cursor = (0, 0.0)
        """The sequence and the time of the next segment."""
        self._moved = False

    def restore(self, segments: Iterable[CapturedSegment], *, clocked: bool) -> None:
        """Restore the segments of an earlier run."""
        self.segments = sorted(segments, key=lambda segment: (segment.epoch, segment.sequence))
        self.clocked = clocked
        if self.segments:
            last = self.segments[-1]
            self._epoch = last.epoch
            self._urls = {segment.sequence: segment.resource.url for segment in self.segments if segment.epoch == last.epoch}
            self._at = {segment.sequence: segment.at for segment in self.segments if segment.epoch == last.epoch}
            self._cursor = (last.sequence + 1, last.end)

    def shift(self, seconds: float) -> None:
        """Count from another start."""
        segments, self.segments = self.segments, []
        self.restore([replace(segment, at=segment.at + seconds) for segment in segments], clocked=self.clocked)

    def move(self) -> None:
        """Note that the next playlist is from another address."""
        self._moved = True

    def update(self, playlist: CapturedPlaylist) -> bool:
        """Take in a playlist, and return True if it lists anything new. An old playlist from a cache changes nothing."""
        entries = playlist.entries
        if not entries:
            return False
        moved, self._moved, restarted = self._moved, False, False
        if self._urls and (self._restarts_count(playlist) if moved else entries[-1].sequence < self._cursor[0] - 1):
            if not moved and any(self._urls.get(entry.sequence) == playlist.resource(entry).url for entry in entries):
                return False
            self._epoch, self._urls, self._at, self._jumped, restarted = self._epoch + 1, {}, {}, 0.0, True
            self.restarts += 1
        times = self._continuous_times(entries, self._times(playlist, restarted=restarted))
        fresh = [(entry, at) for entry, at in zip(entries, times, strict=True) if entry.sequence not in self._urls]
        for number, (entry, at) in enumerate(fresh):
            resource = playlist.resource(entry)
            self._urls[entry.sequence], self._at[entry.sequence] = resource.url, at
            if not entry.absent:
                breaks = entry.breaks or ((restarted or moved) and number == 0)
                init = playlist.init(entry)
                made = CapturedSegment(
                    self._source, self._kind, self._epoch, entry.sequence, resource, at, entry.lasts, init, breaks
                )
                self.segments.append(made)
        if fresh:
            last, at = fresh[-1]
            if restarted or last.sequence >= self._cursor[0]:
                self._cursor = (last.sequence + 1, at + last.lasts)
            self.segments.sort(key=lambda segment: (segment.epoch, segment.sequence))
        return bool(fresh)

    def _restarts_count(self, playlist: CapturedPlaylist) -> bool:
        """Return True if a playlist from another address does not continue the numbers of the one before.

        Segments that both list are compared by the time of day, otherwise by the names of their files.
        """
        entries = playlist.entries
        if self.clocked:
            by_sequence = {segment.sequence: segment for segment in self.segments if segment.epoch == self._epoch}
            times = zip(entries, self._times(playlist, restarted=False), strict=True)
            both = [(by_sequence[entry.sequence], at) for entry, at in times if entry.sequence in by_sequence]
            if both:
                return all(abs(segment.at - at - self._jumped) > segment.lasts / 2 for segment, at in both)
        if entries[-1].sequence < self._cursor[0] - 1:
            return True
        listed = [entry for entry in entries if entry.sequence in self._urls]
        return bool(listed) and all(_file(self._urls[entry.sequence]) != _file(entry.uri) for entry in listed)

    def _times(self, playlist: CapturedPlaylist, *, restarted: bool) -> list[float]:
        """Return when each entry begins. A time of day holds until the next one, and also for the entries before the first one."""
        entries = playlist.entries
        offsets = [0.0, *accumulate(entry.lasts for entry in entries)]
        clock_times = [entry.time for entry in entries]
        self.clocked = self.clocked or (any(time is not None for time in clock_times) and not self.segments)
        first = next((time - offset for time, offset in zip(clock_times, offsets, strict=False) if time is not None), None)
        base = first if first is not None and self.clocked else self._base(playlist, offsets, restarted=restarted)
        times = []
        for time, offset in zip(clock_times, offsets, strict=False):
            base = time - offset if time is not None and self.clocked else base
            times.append(base + offset)
        return times

    def _continuous_times(self, entries: Sequence[PlaylistEntry], times: list[float]) -> list[float]:
        """Return the times of entries without jumps of the clock.

        The clock of the stream may be set back, or to another time zone, as at the end of daylight saving time. The stream
        continues, so time is counted on from before.
        """
        if not self.clocked:
            return times
        continuous: list[float] = []
        for number, (entry, time) in enumerate(zip(entries, times, strict=True)):
            counted = self._at.get(entry.sequence)
            if counted is not None:
                self._jumped = counted - time if self._is_jump(time - counted, entry) else 0.0
            elif number:
                before = entries[number - 1]
                jump = time - times[number - 1] - before.lasts
                if entry.sequence == before.sequence + 1 and self._is_jump(jump, entry):
                    self.jumps.append(ClockJump(time + self._jumped - jump, jump))
                    self._jumped -= jump
            continuous.append(time + self._jumped)
        return continuous

    def _is_jump(self, seconds: float, entry: PlaylistEntry) -> bool:
        """Return True if the clock jumps, and not the stream: time does not go back, and no outage lasts half hours to the second.

        A jump that reverses an earlier jump counts, too.
        """
        halves = round(seconds / _HALF_HOUR)
        zone = halves > 0 and abs(seconds - halves * _HALF_HOUR) <= _EXACT and not entry.breaks
        back = seconds <= -max(_BACK, entry.lasts / 2)
        return back or zone or (self._jumped > 0 and abs(seconds - self._jumped) <= _EXACT)

    def _base(self, playlist: CapturedPlaylist, offsets: list[float], *, restarted: bool) -> float:
        """Return the time of the first entry, counted from earlier segments. Missing segments count with the target duration."""
        sequence, at = self._cursor
        first = playlist.entries[0].sequence
        if restarted or not self._urls:
            return at
        if first <= sequence:
            return at - offsets[min(sequence - first, len(offsets) - 1)]
        return at + (first - sequence) * playlist.target


def _file(url: str) -> str:
    """Return the name of a file without the rest of its address."""
    return url.partition("?")[0].rpartition("/")[2]
