"""Why the origin does not take what an encoder sends."""

from __future__ import annotations

from enum import StrEnum


class Why(StrEnum):
    MALFORMED = "malformed"
    """It is not what it should be."""
    NOT_MEDIA = "not media"
    """It is none of the formats that are taken."""
    TOO_LARGE = "too large"
    FENCED = "fenced"
    """A later session has begun, or the stream goes back in time."""
    TOO_FAST = "too fast"
    BUSY = "busy"
    """Too many uploads are under way."""
    SLOW = "slow"
    """Its body does not come fast enough."""
    FULL = "full"
    """No room on the disk, or within the limit of the origin."""


class UploadRefused(Exception):
    """One sentence for the encoder. It repeats nothing of what was sent."""

    def __init__(self, why: Why, sentence: str) -> None:
        super().__init__(sentence)
        self.why = why
        self.sentence = sentence


def replaced() -> UploadRefused:
    """The numbers of sessions come from the database, and the highest of each publishing point is kept with its recordings."""
    return UploadRefused(
        Why.FENCED,
        "A session with a higher number has written to this publishing point: a later one, or one of another database. "
        "In that case remove the directory of the publishing point below MEDIALEDGER_ORIGIN_ROOT.",
    )
