"""The limits of the origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from projections.kernel.sizes import GIB, MIB

MOST_PLAYLIST: Final = 2 * MIB
MOST_LISTED: Final = 15_000
"""The largest number of entries of an uploaded playlist: two hours of segments of half a second. Encoders of the product list no
more, and a playlist of so many of their entries is smaller than `MOST_PLAYLIST`."""
LONGEST_WINDOW: Final = 86_400
"""The longest DVR window, in seconds, that an encoder may request."""
LEAST_SEGMENTS: Final = 3
"""The smallest number of segments of a live playlist, whatever its window."""


@dataclass(frozen=True, slots=True)
class OriginLimits:
    """The limits of the origin. `size` is the size of all recordings and `free` the space that stays free on the disk, in bytes. A
    recording is stored for `hours` after its end, and so is a segment of one that continues. `window` is the length of live
    playlists in seconds.

    `segment` is the largest size of a segment in bytes, and `unlisted` the largest number of files that no playlist has listed.
    `pace` is the number of requests a second of one publishing point. `uploads`, and bytes of `playlists`, are those at a time in
    this process. After a minute, a segment must have been received at `rate` bytes a second. A segment waits `patience` seconds for
    an earlier one that has not arrived.
    """

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
