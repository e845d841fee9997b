"""The bytes of one track of CMAF, cut into fragments."""

from __future__ import annotations

from collections.abc import Iterator

from workers.adapters.encoders.cmaf import Boxes, NotCmaf, fragment
from workers.adapters.encoders.queued import Queued
from workers.adapters.encoders.tracks import Track


class TrackFeed:
    """Takes pieces of any size, and gives what is complete."""

    def __init__(self, track: Track) -> None:
        self._track = track
        self._boxes = Boxes()
        self._moof = b""

    def feed(self, piece: bytes) -> Iterator[Queued]:
        """Those that are complete now. Raises `NotCmaf`."""
        for kind, box in self._boxes.feed(piece):
            if kind == b"moof":
                self._moof = box
            elif kind == b"mdat":
                if not self._moof:
                    raise NotCmaf("media without what describes it")
                yield Queued(self._track, fragment(self._moof, box))
                self._moof = b""
