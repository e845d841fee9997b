"""Room on the disk: who has more than a share makes way for what comes, and what nobody waits for before all else."""

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
from workers.origin.knowledge import IsAwaited, Knowledge
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


@dataclass(frozen=True, slots=True)
class _Full:
    """The publishing points that get no more room, or all."""

    points: frozenset[str] = frozenset()
    everybody: bool = False
    sentence: str = ""

    def is_full(self, point: str) -> bool:
        return self.everybody or point in self.points


class Room:
    """What is there is counted every other second. `free` gives the free bytes of the disk of a folder.

    A publishing point that has more than its share makes way first, so that what one encoder sends removes nothing of another one.
    What an Event still waits to capture goes last of all that is no live window."""

    def __init__(
        self,
        root: Path,
        *,
        points: Points,
        limits: OriginLimits,
        free: Callable[[Path], int],
        clock: Callable[[], float],
        known: Knowledge,
    ) -> None:
        self._root = root
        self._points = points
        self._limits = limits
        self._free = free
        self._clock = clock
        self._known = known
        self._margin = limits.size // _MORE
        self._looked = float("-inf")
        self._full = _Full()
        self._looking = asyncio.Lock()

    async def check(self, point: str) -> None:
        """Raises `UploadRefused` where there is no room for more of this publishing point."""
        if monotonic() - self._looked > _EVERY:
            async with self._looking:
                if monotonic() - self._looked > _EVERY:
                    await self._look()
        if self._full.is_full(point):
            raise UploadRefused(Why.FULL, self._full.sentence)

    async def tidy(self) -> None:
        """Remove what has been kept for long enough, and what there is no room for."""
        async with self._looking:
            await asyncio.to_thread(self._tidy)
            await self._look()

    async def _look(self) -> None:
        if await asyncio.to_thread(self._over) > 0:
            awaited = await self._known.awaited()
            lost: list[tuple[str, int]] = []
            self._full = await asyncio.to_thread(self._make_way, awaited, lost)
            for point, session in lost:
                await self._known.lost(point, session)
        else:
            self._full = _Full()
        self._looked = monotonic()

    def _over(self) -> int:
        """Bytes that are to go."""
        return _Kept(self._all(), self._limits, self._free(self._root)).over

    def _make_way(self, awaited: IsAwaited, lost: list[tuple[str, int]]) -> _Full:
        recordings = self._all()
        while True:
            kept = _Kept(recordings, self._limits, self._free(self._root))
            if kept.over <= 0:
                return _Full()
            if not self._gives_way(kept, awaited, lost):
                sentence = f"There is no room for more: {kept.sentence}, and all of it may still be played live."
                return _Full(frozenset(kept.greedy), kept.over > self._margin, sentence)
            recordings = self._all()

    def _gives_way(self, kept: _Kept, awaited: IsAwaited, lost: list[tuple[str, int]]) -> bool:
        """Remove something; False: there is nothing. First what nobody waits for, wherever it is; then of the points with more than
        their share: what has ended, the oldest segments of what goes on, what somebody waits to capture, and last of all the live
        windows, where others need the room. A point with less is not looked at while one with more has anything left."""
        ended = sorted((found for found in kept.recordings if found[1].ended), key=lambda found: found[1].written)
        if free := next((found for found in ended if awaited(*_name(found)) is False), None):
            return self._remove(*free, still=lambda one: one.ended, why="to make room")
        for point in kept.greedy:
            mine = [found for found in kept.recordings if found[0].folder.name == point]
            gone = [found for found in ended if found in mine]
            if unknown := next((found for found in gone if awaited(*_name(found)) is None), None):
                return self._remove(*unknown, still=lambda one: one.ended, why="to make room")
            if self._shorten(mine, by=kept.over_share(point), window=self._limits.window):
                return True
            if gone:
                lost += [_name(gone[0])]
                return self._remove(*gone[0], still=lambda one: one.ended, why="to make room, before it was captured")
            if any(True for _, one in mine for _ in self._removable(one, 0.0)):
                return kept.over > self._margin and self._shorten(mine, by=kept.over_share(point), window=0.0)
        return False

    def _shorten(self, recordings: Sequence[Found], *, by: int, window: float) -> bool:
        """Remove the oldest segments of recordings that go on, for so many bytes and some more. False: all are in live windows."""
        found = [(segment.written, segment.size) for _, one in recordings for segment in self._removable(one, window)]
        before, freed = 0.0, 0
        for written, size in sorted(found):
            before, freed = written, freed + size
            if freed >= by + self._margin:
                break
        return self._trim(recordings, before=nextafter(before, inf), window=window, why="to make room") > 0

    def _removable(self, recording: Recording, window: float) -> Iterator[Segment]:
        for track in recording.tracks.values():
            yield from track.segments[: recording.removable(track, before=inf, window=window)]

    def _trim(self, recordings: Sequence[Found], *, before: float, window: float, why: str) -> int:
        removed = 0
        for point, one in recordings:
            if count := point.trim(one, before=before, window=window):
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
                self._trim([(point, one)], before=before, window=self._limits.window, why=f"after {self._limits.hours} hours")

    def _remove(self, point: Point, recording: Recording, *, still: Callable[[Recording], bool], why: str) -> bool:
        gone = point.remove(recording, still=still)
        if gone:
            _log.info("the recording of session %d at %s was removed %s", recording.state.session, point.folder.name, why)
        return gone

    def _all(self) -> list[Found]:
        return [(point, recording) for point in self._points.all() for recording in point.recordings()]


class _Kept:
    """What there is, and which publishing points have more than their share of it."""

    def __init__(self, recordings: Sequence[Found], limits: OriginLimits, free: int) -> None:
        self.recordings = recordings
        sizes: Counter[str] = Counter()
        for point, one in recordings:
            sizes[point.folder.name] += one.size + _incoming(one)
        size = sizes.total()
        self.over = max(size - limits.size, limits.free - free)
        self.sentence = f"{shown(size)} are kept" if size > limits.size else f"{shown(free)} are free"
        self._sizes = sizes
        self._share = (size - self.over) // max(len(sizes), 1)
        self.greedy = [point for point, bytes_ in sizes.most_common() if bytes_ > self._share]

    def over_share(self, point: str) -> int:
        """Bytes of a publishing point that are to go."""
        return min(self.over, self._sizes[point] - self._share)


def _name(found: Found) -> tuple[str, int]:
    return found[0].folder.name, found[1].state.session


def _incoming(recording: Recording) -> int:
    try:
        return sum(one.stat(follow_symlinks=False).st_size for one in os.scandir(recording.folder / INCOMING))
    except FileNotFoundError:
        return 0
