"""The state of the log's integrity: the progress of background verification, checkpoints, keys and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from projections.audit.checkpoint_keys import PUBLIC_KEYS
from projections.audit.checkpoints import Checkpoints, StoredAnchor, StoredCheckpoint
from projections.audit.seals import LogPartition, partitions
from projections.audit.signed_note import signers
from projections.audit.stored_log import StoredLog
from projections.kernel.database.database import Pool

_NOW: Final = """
SELECT max(position) FILTER (WHERE cursor = 'tail'), max(verified_at), min(bad_position),
    (SELECT sealed_at FROM checkpoints ORDER BY number DESC LIMIT 1)
FROM log_verification
"""


@dataclass(frozen=True, slots=True)
class VerifiedLog:
    """The end of the verified part in `position`, and the first damaged position in `bad_position`. Either is None if there is
    none."""

    position: int | None
    verified_at: datetime | None
    bad_position: int | None
    sealed_at: datetime | None


async def verified(pool: Pool) -> VerifiedLog:
    [row] = await pool.rows(_NOW)
    return VerifiedLog(*row)


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
    """The progress of a background verification, and the first damage that it found."""

    position: int
    verified_at: datetime
    bad_position: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Integrity:
    """The state of the log's integrity. `tail` follows the end of the log; `scrub` rereads all of it again and again. Either is
    None before it has begun."""

    head: int
    tail: Verified | None
    scrub: Verified | None
    anchored: int | None
    """The number of the newest checkpoint that is stored outside the database."""
    keys: Sequence[str]
    partitions: Sequence[LogPartition]


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint with the ids of the keys that signed it, and its anchors."""

    stored: StoredCheckpoint
    signed_by: Sequence[str]
    anchors: Sequence[StoredAnchor]


def integrity(stored: StoredLog) -> Integrity:
    """Read the state within the caller's transaction. This blocks."""
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
    """Return checkpoints below the number `before`, the newest first."""
    return [
        SignedCheckpoint(checkpoint, signers(checkpoint.note), checkpoints.anchors(checkpoint.number))
        for checkpoint in checkpoints.before(before, limit)
    ]
