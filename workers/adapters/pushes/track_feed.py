"""The bytes of one track of CMAF, cut into fragments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from workers.adapters.encoders.queued import Queued
from workers.adapters.encoders.tracks import Track
from workers.media.avc import configuration
from workers.media.boxes import BoxStream
from workers.media.cmaf import LARGEST, Fragment, fragment
from workers.media.errors import Unreadable

_MOST_A_SECOND: Final = 1_000
"""Samples of one track: AAC at 96 kHz has 188 at most. What takes no time is not slowed down by the time that it is shown at."""
_MORE: Final = 16


class TrackFeed:
    """Takes pieces of any size, and gives what is complete."""

    def __init__(self, track: Track) -> None:
        self._track = track
        self._boxes = BoxStream(most=LARGEST)
        self._moof = b""

    def feed(self, piece: bytes) -> Iterator[Queued]:
        """Yield the fragments that the piece completes. Raises `Unreadable`."""
        for kind, box in self._boxes.feed(piece):
            if kind == b"moof":
                self._moof = box
            elif kind == b"mdat":
                if not self._moof:
                    raise Unreadable("media came without what describes it")
                found = fragment(self._moof, box, defaults=self._track.header.defaults)
                if (len(found.samples) - _MORE) * self._track.header.timescale > _MOST_A_SECOND * found.duration:
                    raise Unreadable(f"it has more than {_MOST_A_SECOND} samples a second")
                if self._track.plan.video and found.key:
                    self._configure(found)
                yield Queued(self._track, found)
                self._moof = b""

    def _configure(self, found: Fragment) -> None:
        """A picture that changes on its way, as at an advertisement, has its new parameter sets before a key frame."""
        header = self._track.header
        first = memoryview(found.data)[found.media : found.media + found.samples[0].size]
        made = configuration(first, header.configuration)
        if made != header.configuration:
            self._track = replace(self._track, header=replace(header, configuration=made))
