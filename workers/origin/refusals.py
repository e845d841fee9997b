"""The reasons for which the origin refuses an upload."""

from __future__ import annotations

from enum import StrEnum


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
