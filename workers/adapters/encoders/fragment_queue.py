"""A queue of fragments for a point that takes a continuous stream. It holds `QUEUED` seconds.

Older fragments are dropped up to the next key frame, so that the rest can be decoded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from workers.adapters.encoders.point import QUEUED
from workers.adapters.encoders.tracks import Track
from workers.media.cmaf import CmafFragment


@dataclass(frozen=True, slots=True)
class QueuedFragment:
    """A fragment in the queue."""

    track: Track
    fragment: CmafFragment

    @property
    def start(self) -> float:
        return self.fragment.time / self.track.header.timescale

    @property
    def weight(self) -> int:
        """The memory that the fragment needs, in bytes."""
        return self.fragment.weight

    @property
    def opens(self) -> bool:
        """True if a decoder can begin with this fragment."""
        return not self.track.plan.video or self.fragment.key


class FragmentQueue:
    """The queue. `dropped` is called for each fragment that is dropped."""

    def __init__(self, dropped: Callable[[], None]) -> None:
        self._dropped = dropped
        self._waiting: deque[QueuedFragment] = deque()
        self._more = asyncio.Event()
        self._over = False

    def put(self, track: Track, fragment: CmafFragment) -> None:
        self._waiting.append(QueuedFragment(track, fragment))
        newest = self._waiting[-1].start
        if self._waiting[0].start < newest - QUEUED:
            self._drop_oldest()
        self._more.set()

    def end(self) -> None:
        self._over = True
        self._more.set()

    async def next(self) -> QueuedFragment | None:
        """Wait for the oldest fragment and return it; it stays in the queue until `done`. None at the end."""
        while not self._waiting:
            if self._over:
                return None
            self._more.clear()
            await self._more.wait()
        return self._waiting[0]

    def done(self, taken: QueuedFragment) -> None:
        if self._waiting and self._waiting[0] is taken:
            self._waiting.popleft()

    def to_key_frame(self) -> None:
        """Drop fragments up to a key frame, because a new connection begins with one."""
        while self._waiting and not (self._waiting[0].track.plan.video and self._waiting[0].fragment.key):
            if not self._later_key():
                return
            self._waiting.popleft()
            self._dropped()

    def _later_key(self) -> bool:
        return any(each.track.plan.video and each.fragment.key for each in self._waiting)

    def _drop_oldest(self) -> None:
        self._waiting.popleft()
        self._dropped()
        while self._waiting and not self._waiting[0].opens:
            self._waiting.popleft()
            self._dropped()
