"""Division of the bytes of one CMAF track into fragments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from workers.adapters.encoders.fragment_queue import QueuedFragment
from workers.adapters.encoders.tracks import Track
from workers.media.boxes import BoxStream
from workers.media.cmaf import LARGEST, CmafFragment, fragment
from workers.media.codecs import configuration
from workers.media.errors import Unreadable

_MOST_A_SECOND: Final = 1_000
"""The limit for the samples of a track per second: AAC at 96 kHz has 188. Samples without duration would be sent without any delay.
"""
_MORE: Final = 16


class TrackFeed:
    """Takes pieces of any size and returns complete fragments."""

    def __init__(self, track: Track) -> None:
        self._track = track
        self._boxes = BoxStream(most=LARGEST)
        self._moof = b""

    def feed(self, piece: bytes) -> Iterator[QueuedFragment]:
        """Yield the fragments that the piece completes. Raises `Unreadable`."""
        for kind, box in self._boxes.feed(piece):
            if kind == b"moof":
                self._moof = box
            elif kind == b"mdat":
                if not self._moof:
                    raise Unreadable("media came without their description")
                completed = fragment(self._moof, box, defaults=self._track.header.defaults)
                if (len(completed.samples) - _MORE) * self._track.header.timescale > _MOST_A_SECOND * completed.duration:
                    raise Unreadable(f"it has more than {_MOST_A_SECOND} samples a second")
                if self._track.plan.video and completed.key:
                    self._configure(completed)
                yield QueuedFragment(self._track, completed)
                self._moof = b""

    def _configure(self, key_frame: CmafFragment) -> None:
        """Adopt the parameter sets before a key frame: a picture that changes during the stream, as at an advertisement, has new
        ones there."""
        header = self._track.header
        first = memoryview(key_frame.data)[key_frame.media : key_frame.media + key_frame.samples[0].size]
        made = configuration(first, header.configuration)
        if made != header.configuration:
            self._track = replace(self._track, header=replace(header, configuration=made))
