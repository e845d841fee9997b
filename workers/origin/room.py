"""Space on the disk: publishing points with more than their share make way for new data, and recordings that nothing waits for are
removed first."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, nextafter
from pathlib import Path
from time import monotonic
from typing import Final

from projections.kernel.sizes import shown
from workers.origin.knowledge import IsAwaited, PointDirectory
from workers.origin.limits import OriginLimits, RefusalReason, UploadRefused
from workers.origin.recordings import INCOMING, Points, RecordedPoint, SessionRecording
from workers.origin.track_index import IndexedSegment

PointRecording = tuple[RecordedPoint, SessionRecording]

_EVERY: Final = 2.0
_STEPS: Final = 24
"""The number of steps, within the retention time, in which segments of a recording that continues are removed."""
_MORE: Final = 50
"""The divisor of the limit that gives the extra bytes to free, so that space is not made for each segment."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Full:
    """The publishing points that get no more space, or all of them."""

    points: frozenset[str] = frozenset()
    everybody: bool = False
    sentence: str = ""

    def is_full(self, point: str) -> bool:
        return self.everybody or point in self.points


class RecordingStorage:
    """The storage of all recordings, whose size is computed every other second. `free` returns the free bytes of the disk of a
    folder.

    A publishing point that has more than its share makes way first, so that one encoder causes no removal of another's data. A
    recording that an Event still waits to capture is removed last, except for live windows.
    """

    def __init__(
        self,
        root: Path,
        *,
        points: Points,
        limits: OriginLimits,
        free: Callable[[Path], int],
        clock: Callable[[], float],
        directory: PointDirectory,
    ) -> None:
        self._root = root
        self._points = points
        self._limits = limits
        self._free = free
        self._clock = clock
        self._directory = directory
        self._margin = limits.size // _MORE
        self._looked = float("-inf")
        self._full = _Full()
        self._looking = asyncio.Lock()

    async def check(self, point: str) -> None:
        """Raise `UploadRefused` if there is no space for more of this publishing point."""
        if monotonic() - self._looked > _EVERY:
            async with self._looking:
                if monotonic() - self._looked > _EVERY:
                    await self._look()
        if self._full.is_full(point):
            raise UploadRefused(RefusalReason.FULL, self._full.sentence)

    async def tidy(self) -> None:
        """Remove recordings that have been stored for long enough, and those for which there is no space."""
        async with self._looking:
            await asyncio.to_thread(self._tidy)
            await self._look()

    async def _look(self) -> None:
        if await asyncio.to_thread(self._over) > 0:
            awaited = await self._directory.awaited()
            lost: list[tuple[str, int]] = []
            self._full = await asyncio.to_thread(self._make_way, awaited, lost)
            for point, session in lost:
                await self._directory.lost(point, session)
        else:
            self._full = _Full()
        self._looked = monotonic()

    def _over(self) -> int:
        """Return the number of bytes to remove."""
        return _Usage(self._all(), self._limits, self._free(self._root)).over

    def _make_way(self, awaited: IsAwaited, lost: list[tuple[str, int]]) -> _Full:
        recordings = self._all()
        while True:
            usage = _Usage(recordings, self._limits, self._free(self._root))
            if usage.over <= 0:
                return _Full()
            if not self._remove_next(usage, awaited, lost):
                sentence = f"There is no space for more: {usage.sentence}, and all of it may still be played live."
                return _Full(frozenset(usage.greedy), usage.over > self._margin, sentence)
            recordings = self._all()

    def _remove_next(self, usage: _Usage, awaited: IsAwaited, lost: list[tuple[str, int]]) -> bool:
        """Remove something; return False if there is nothing to remove. First goes what nothing waits for, of any point. Then, of
        the points with more than their share: recordings that have ended, the oldest segments of those that continue, recordings
        that are still to be captured, and last of all the live windows, if others need the space. A point with a smaller share is
        not touched while one with more has anything to remove."""
        ended = sorted(
            (candidate for candidate in usage.recordings if candidate[1].ended), key=lambda candidate: candidate[1].written
        )
        if free := next((candidate for candidate in ended if awaited(*_name(candidate)) is False), None):
            return self._remove(*free, still=lambda other: other.ended, why="to free space")
        for point in usage.greedy:
            mine = [candidate for candidate in usage.recordings if candidate[0].folder.name == point]
            gone = [candidate for candidate in ended if candidate in mine]
            if unknown := next((candidate for candidate in gone if awaited(*_name(candidate)) is None), None):
                return self._remove(*unknown, still=lambda other: other.ended, why="to free space")
            if self._shorten(mine, by=usage.over_share(point), window=self._limits.window):
                return True
            if gone:
                lost += [_name(gone[0])]
                return self._remove(*gone[0], still=lambda other: other.ended, why="to free space, before it was captured")
            if any(True for _, recording in mine for _ in self._removable(recording, 0.0)):
                return usage.over > self._margin and self._shorten(mine, by=usage.over_share(point), window=0.0)
        return False

    def _shorten(self, recordings: Sequence[PointRecording], *, by: int, window: float) -> bool:
        """Remove the oldest segments of recordings that continue: so many bytes and some more. Return False if all are in live
        windows."""
        segments = [
            (segment.written, segment.size) for _, recording in recordings for segment in self._removable(recording, window)
        ]
        before, freed = 0.0, 0
        for written, size in sorted(segments):
            before, freed = written, freed + size
            if freed >= by + self._margin:
                break
        return self._trim(recordings, before=nextafter(before, inf), window=window, why="to free space") > 0

    def _removable(self, recording: SessionRecording, window: float) -> Iterator[IndexedSegment]:
        for track in recording.tracks.values():
            yield from track.segments[: recording.removable(track, before=inf, window=window)]

    def _trim(self, recordings: Sequence[PointRecording], *, before: float, window: float, why: str) -> int:
        removed = 0
        for point, recording in recordings:
            if count := point.trim(recording, before=before, window=window):
                session, name = recording.state.session, point.folder.name
                _log.info("the first %d segments of session %d at %s are removed %s", count, session, name, why)
                removed += count
        return removed

    def _tidy(self) -> None:
        """Remove what has been stored for long enough. Segments of recordings that continue are removed in steps, because each step
        rewrites the rest of the index."""
        retention = self._limits.hours * 3600
        before, late = self._clock() - retention, self._clock() - retention - retention / _STEPS
        for point, recording in self._all():
            if recording.written < before:
                self._remove(
                    point, recording, still=lambda recording: recording.written < before, why=f"after {self._limits.hours} hours"
                )
            elif any(track.segments[0].written < late for track in recording.tracks.values() if track.segments):
                self._trim([(point, recording)], before=before, window=self._limits.window, why=f"after {self._limits.hours} hours")

    def _remove(
        self, point: RecordedPoint, recording: SessionRecording, *, still: Callable[[SessionRecording], bool], why: str
    ) -> bool:
        gone = point.remove(recording, still=still)
        if gone:
            _log.info("the recording of session %d at %s was removed %s", recording.state.session, point.folder.name, why)
        return gone

    def _all(self) -> list[PointRecording]:
        return [(point, recording) for point in self._points.all() for recording in point.recordings()]


class _Usage:
    """The used space, and the publishing points that have more than their share of it."""

    def __init__(self, recordings: Sequence[PointRecording], limits: OriginLimits, free: int) -> None:
        self.recordings = recordings
        sizes: Counter[str] = Counter()
        for point, recording in recordings:
            sizes[point.folder.name] += recording.size + _incoming(recording)
        size = sizes.total()
        self.over = max(size - limits.size, limits.free - free)
        self.sentence = f"{shown(size)} are stored" if size > limits.size else f"{shown(free)} are free"
        self._sizes = sizes
        self._share = (size - self.over) // max(len(sizes), 1)
        self.greedy = [point for point, bytes_ in sizes.most_common() if bytes_ > self._share]

    def over_share(self, point: str) -> int:
        """Return the number of bytes of a publishing point to remove."""
        return min(self.over, self._sizes[point] - self._share)


def _name(candidate: PointRecording) -> tuple[str, int]:
    return candidate[0].folder.name, candidate[1].state.session


def _incoming(recording: SessionRecording) -> int:
    try:
        return sum(file.stat(follow_symlinks=False).st_size for file in os.scandir(recording.folder / INCOMING))
    except FileNotFoundError:
        return 0
