"""The limits of the origin."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from projections.kernel.sizes import GIB, MIB


class RefusalReason(StrEnum):
    MALFORMED = "malformed"
    """The upload does not have the required form."""
    NOT_MEDIA = "not media"
    """The upload has none of the accepted formats."""
    TOO_LARGE = "too large"
    FENCED = "fenced"
    """A later session has begun, or the stream goes back in time."""
    TOO_FAST = "too fast"
    BUSY = "busy"
    """The origin has too many uploads in progress."""
    SLOW = "slow"
    """The body arrives too slowly."""
    FULL = "full"
    """The disk is full, or the limit of the origin is reached."""


class UploadRefused(Exception):
    """Raised when an upload is refused. Its text is one sentence for the encoder that repeats nothing of what was sent."""

    def __init__(self, why: RefusalReason, sentence: str) -> None:
        super().__init__(sentence)
        self.why = why
        self.sentence = sentence


def session_replaced() -> UploadRefused:
    """Return the refusal for a session that was replaced. The numbers of sessions come from the database, and the highest of each
    publishing point is stored with its recordings."""
    return UploadRefused(
        RefusalReason.FENCED,
        "A session with a higher number has written to this publishing point: a later one, or one of another database. "
        "In that case remove the directory of the publishing point below MEDIALEDGER_ORIGIN_ROOT.",
    )


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
