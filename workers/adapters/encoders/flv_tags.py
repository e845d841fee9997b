"""The FLV tags of the tracks of a stream, in the order of their times, as an RTMP server takes them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

from projections.kernel.sizes import MIB
from workers.adapters.encoders.fragment_queue import QueuedFragment
from workers.adapters.encoders.rtmp import AUDIO, VIDEO
from workers.adapters.encoders.tracks import Track
from workers.media.cmaf import CmafFragment

LATE: Final = 2.0
"""Seconds that a track waits for another one that delivers nothing."""
MOST_BUFFERED: Final = 64 * MIB
"""The limit in bytes for the memory of tags that wait for another track."""
_OVERHEAD: Final = 250
"""The memory for each tag besides its media, in bytes."""
_KEY, _BETWEEN = 0x17, 0x27
"""The first byte of an H.264 tag: for a key frame, and for any other frame."""
Tag = tuple[int, int, bytes]
"""The time in milliseconds, the kind, and the data."""


class TagInterleaver:
    """Sorts the tags of all tracks by their times, since each fragment contains a part of a second of one track. The first key
    frame has the time 0, and everything before it is dropped.

    A track that is `late` seconds of media behind another one is not waited for until it delivers again. Tags that come after later
    tags were given are dropped, for video up to the next key frame.
    """

    def __init__(self, tracks: Sequence[Track], *, late: float = inf) -> None:
        self._late = late
        self._complete_until = {track.name: -inf for track in tracks}
        """The time up to which each track is complete; infinite for a track that is not waited for."""
        self._sent_configurations = {track.name: track.header.configuration for track in tracks}
        """The decoder configuration that was last sent for each track."""
        self._zero: float | None = None
        self._given = -inf
        self._cut = False
        """True if video was dropped: the following frames cannot be decoded up to a key frame."""
        self._heap: list[tuple[float, int, int, bytes]] = []
        self._count = self.buffered = 0

    @property
    def first(self) -> float | None:
        """The time of the first waiting tag, in seconds from the first key frame. None if no tag waits."""
        return self._heap[0][0] - (self._zero or 0.0) if self._heap else None

    def add(self, queued: QueuedFragment) -> Iterator[Tag]:
        """Add a fragment. Yield the tags that no earlier tag can precede any more."""
        track, fragment = queued.track, queued.fragment
        if self._zero is None:
            if not (track.plan.video and fragment.key):
                return
            self._zero = self._given = queued.start
            self._complete_until = dict.fromkeys(self._complete_until, queued.start)
        self._hold(track, fragment)
        end = (fragment.time + fragment.duration) / track.header.timescale
        self._complete_until[track.name] = end
        for name, time in self._complete_until.items():
            if time < end - self._late:
                self._complete_until[name] = inf
        yield from self._until(min(self._complete_until.values()))
        while self.buffered > MOST_BUFFERED:
            yield self._next()

    def before(self, seconds: float) -> Iterator[Tag]:
        """Yield the tags that are shown before this time, counted like `first`, whatever they wait for."""
        yield from self._until(seconds + (self._zero or 0.0))

    def rest(self) -> Iterator[Tag]:
        yield from self._until(inf)

    def _hold(self, track: Track, fragment: CmafFragment) -> None:
        for time, data in _tags(track, fragment):
            late = time < self._given
            if track.plan.video:
                late = self._cut = late or (self._cut and data[0] != _KEY)
            if not late:
                if self._sent_configurations[track.name] != track.header.configuration:
                    self._sent_configurations[track.name] = track.header.configuration
                    self._push(time, track, header_tag(track))
                self._push(time, track, data)

    def _push(self, time: float, track: Track, data: bytes) -> None:
        self._count += 1
        self.buffered += _OVERHEAD + len(data)
        heapq.heappush(self._heap, (time, self._count, kind_of(track), data))

    def _until(self, time: float) -> Iterator[Tag]:
        while self._heap and self._heap[0][0] < time:
            yield self._next()

    def _next(self) -> Tag:
        self._given, _, kind, data = heapq.heappop(self._heap)
        self.buffered -= _OVERHEAD + len(data)
        return round((self._given - (self._zero or 0.0)) * 1000), kind, data


def _tags(track: Track, fragment: CmafFragment) -> Iterator[tuple[float, bytes]]:
    """Yield the time in seconds and the body of each tag (Adobe Flash Video File Format, E.4.2 and E.4.3)."""
    at, time, scale = fragment.media, fragment.time, track.header.timescale
    for sample in fragment.samples:
        media = fragment.data[at : at + sample.size]
        if track.plan.video:
            shift = round(sample.shift * 1000 / scale) & 0xFFFFFF
            yield time / scale, bytes([_KEY if sample.key else _BETWEEN, 1]) + shift.to_bytes(3) + media
        else:
            yield time / scale, b"\xaf\1" + media
        at, time = at + sample.size, time + sample.duration


def header_tag(track: Track) -> bytes:
    return (b"\x17\0\0\0\0" if track.plan.video else b"\xaf\0") + track.header.configuration


def kind_of(track: Track) -> int:
    return VIDEO if track.plan.video else AUDIO
