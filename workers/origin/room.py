"""Room on the disk: the oldest recordings that have ended make way for what comes."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from math import inf, nextafter
from pathlib import Path
from time import monotonic
from typing import Final

from projections.kernel.sizes import shown
from workers.origin.limits import OriginLimits
from workers.origin.recordings import INCOMING, Point, Points, Recording
from workers.origin.refusals import UploadRefused, Why
from workers.origin.track_index import Segment

Found = tuple[Point, Recording]

_EVERY: Final = 2.0
_STEPS: Final = 24
"""In so many parts of the time that is kept segments of a recording that goes on are removed."""
_MORE: Final = 50
"""With this part of the limit more than is needed, so that it is not done for each segment."""
_log = logging.getLogger(__name__)


class Room:
    """What is there is counted every other second. `free` gives the free bytes of the disk of a folder."""

    def __init__(
        self, root: Path, *, points: Points, limits: OriginLimits, free: Callable[[Path], int], clock: Callable[[], float]
    ) -> None:
        self._root = root
        self._points = points
        self._limits = limits
        self._free = free
        self._clock = clock
        self._looked = float("-inf")
        self._fault = ""
        self._looking = asyncio.Lock()

    async def check(self) -> None:
        """Raises `UploadRefused`."""
        if monotonic() - self._looked > _EVERY:
            async with self._looking:
                if monotonic() - self._looked > _EVERY:
                    self._fault = await asyncio.to_thread(self._look)
                    self._looked = monotonic()
        if self._fault:
            raise UploadRefused(Why.FULL, self._fault)

    async def tidy(self) -> None:
        """Remove what has been kept for long enough, and what there is no room for."""
        async with self._looking:
            await asyncio.to_thread(self._tidy)
            self._fault = await asyncio.to_thread(self._look)
            self._looked = monotonic()

    def _look(self) -> str:
        recordings = self._all()
        while True:
            size = sum(one.size + _incoming(one) for _, one in recordings)
            free = self._free(self._root)
            if size <= self._limits.size and free >= self._limits.free:
                return ""
            old = min(((point, one) for point, one in recordings if one.ended), key=lambda found: found[1].written, default=None)
            if old is not None:
                recordings.remove(old)
                self._remove(*old, still=lambda one: one.ended, why="to make room")
            elif not self._shorten(recordings, by=max(size - self._limits.size, self._limits.free - free)):
                why = f"{shown(size)} are kept" if size > self._limits.size else f"{shown(free)} are free"
                return f"There is no room for more: {why}, and all of it may still be played live."

    def _shorten(self, recordings: Sequence[Found], *, by: int) -> bool:
        """Remove the oldest segments of recordings that go on, for so many bytes and some more. False: all are in live windows."""
        oldest = sorted((segment.written, segment.size) for _, one in recordings for segment in self._removable(one))
        before, freed = 0.0, 0
        for written, size in oldest:
            before, freed = written, freed + size
            if freed >= by + self._limits.size // _MORE:
                break
        return self._trim(recordings, before=nextafter(before, inf), why="to make room") > 0

    def _removable(self, recording: Recording) -> Iterator[Segment]:
        for track in recording.tracks.values():
            yield from track.segments[: recording.removable(track, before=inf, window=self._limits.window)]

    def _trim(self, recordings: Sequence[Found], *, before: float, why: str) -> int:
        removed = 0
        for point, one in recordings:
            if count := point.trim(one, before=before, window=self._limits.window):
                session, name = one.state.session, point.folder.name
                _log.info("the first %d segments of session %d at %s are removed %s", count, session, name, why)
                removed += count
        return removed

    def _tidy(self) -> None:
        """Segments of recordings that go on are removed in steps: each writes what is left of the index anew."""
        kept = self._limits.hours * 3600
        before, late = self._clock() - kept, self._clock() - kept - kept / _STEPS
        for point, one in self._all():
            if one.written < before:
                self._remove(point, one, still=lambda one: one.written < before, why=f"after {self._limits.hours} hours")
            elif any(track.segments[0].written < late for track in one.tracks.values() if track.segments):
                self._trim([(point, one)], before=before, why=f"after {self._limits.hours} hours")

    def _remove(self, point: Point, recording: Recording, *, still: Callable[[Recording], bool], why: str) -> None:
        if point.remove(recording, still=still):
            _log.info("the recording of session %d at %s was removed %s", recording.state.session, point.folder.name, why)

    def _all(self) -> list[Found]:
        return [(point, recording) for point in self._points.all() for recording in point.recordings()]


def _incoming(recording: Recording) -> int:
    try:
        return sum(one.stat(follow_symlinks=False).st_size for one in os.scandir(recording.folder / INCOMING))
    except FileNotFoundError:
        return 0
