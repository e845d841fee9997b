"""What the origin takes at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from projections.kernel.sizes import GIB, MIB

MOST_PLAYLIST: Final = 2 * MIB
MOST_LISTED: Final = 15_000
"""Entries of a playlist that is sent: two hours of segments of half a second. Encoders of the product list no more, and so many of
theirs are shorter than `MOST_PLAYLIST`."""
LONGEST_WINDOW: Final = 86_400
"""Seconds that an encoder may ask for as the DVR window."""
LEAST_SEGMENTS: Final = 3
"""Of a live playlist, whatever its window."""


@dataclass(frozen=True, slots=True)
class OriginLimits:
    """`size` bytes of all recordings, `free` bytes that the disk keeps. `hours` a recording is kept after its end, and a segment
    of one that goes on, `window` seconds of live playlists.

    `segment` bytes, and `unlisted` files that no playlist has named; `pace` requests a second of one publishing point, `uploads`
    and bytes of `playlists` at a time in this process. After a minute `rate` bytes a second of a segment must have come. `patience`
    seconds a segment waits for one before it that did not come yet."""

    size: int = 20 * GIB
    free: int = 1 * GIB
    hours: int = 24
    window: float = 120.0
    segment: int = 64 * MIB
    unlisted: int = 64
    pace: int = 100
    uploads: int = 256
    playlists: int = 64 * MIB
    rate: int = 4096
    patience: float = 2.0
