"""What is known of the log's integrity: how far it was verified in the background, its checkpoints, its keys and its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from projections.audit.checkpoint_keys import PUBLIC_KEYS
from projections.audit.checkpoints import Anchor, Checkpoints, StoredCheckpoint
from projections.audit.seals import LogPartition, partitions
from projections.audit.signed_note import signers
from projections.audit.stored_log import StoredLog

_HEAD: Final = "SELECT coalesce(max(last_position), 0) FROM commits"
_VERIFIED: Final = "SELECT cursor, position, verified_at, bad_position, reason FROM log_verification"
_ANCHORED: Final = """
SELECT checkpoint FROM checkpoint_anchors
UNION ALL
SELECT c.number FROM checkpoints c JOIN finished_deliveries d
    ON d.position = c.position AND d.ordering_key = 'log.sealed' AND d.state = 1 AND d.finished_at >= c.sealed_at
ORDER BY 1 DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Verified:
    """How far the log was verified in the background, and what did not fit then."""

    position: int
    verified_at: datetime
    bad_position: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Integrity:
    """`tail` follows the end of the log; `scrub` goes through all of it again and again. None: not begun."""

    head: int
    tail: Verified | None
    scrub: Verified | None
    anchored: int | None
    """Number of the newest checkpoint that something outside of the database keeps."""
    keys: Sequence[str]
    partitions: Sequence[LogPartition]


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint with the ids of the keys that signed it, and where it is kept."""

    stored: StoredCheckpoint
    signed_by: Sequence[str]
    anchors: Sequence[Anchor]


def integrity(stored: StoredLog) -> Integrity:
    """Reads within the caller's transaction. Blocks."""
    verified = {cursor: Verified(*row) for cursor, *row in stored.rows(_VERIFIED)}
    anchored = stored.row(_ANCHORED)
    return Integrity(
        head=stored.rows(_HEAD)[0][0],
        tail=verified.get("tail"),
        scrub=verified.get("scrub"),
        anchored=None if anchored is None else anchored[0],
        keys=[key for (key,) in stored.rows(PUBLIC_KEYS)],
        partitions=partitions(stored),
    )


def signed_checkpoints(checkpoints: Checkpoints, *, before: int, limit: int) -> list[SignedCheckpoint]:
    """The newest first, below the number `before`."""
    return [SignedCheckpoint(one, signers(one.note), checkpoints.anchors(one.number)) for one in checkpoints.before(before, limit)]
