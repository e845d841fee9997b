"""The timeline of the log: it tells to which log and epoch a position belongs.

After a restore, or the promotion of a standby that lacked the latest commits, positions are assigned again to other events. An
operator then begins a new epoch: records of an earlier epoch are valid up to the position where the new one begins, and no further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.database.database import Database
from projections.log.reader import FIRST_EPOCH, HEAD, log_id

EPOCH: Final = f"SELECT coalesce(max(epoch), {FIRST_EPOCH}) FROM log_epochs"
_BEGUN: Final = "SELECT epoch, since_position FROM log_epochs ORDER BY epoch"
_LOCK: Final = "LOCK TABLE log_epochs IN SHARE ROW EXCLUSIVE MODE"
_BEGIN: Final = f"INSERT INTO log_epochs (epoch, since_position, reason) VALUES (({EPOCH}) + 1, %s, %s) RETURNING epoch"
_SET_BACK: Final = """
UPDATE consumer_shards SET position = CASE WHEN position IS NOT NULL THEN least(position, %s) END, epoch = epoch + 1, owner = NULL,
    held_until = '-infinity'
"""


@dataclass(frozen=True, slots=True)
class Origin:
    """The log and the epoch that a record comes from."""

    log_id: UUID
    epoch: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The epochs of a log. `begun` holds the epochs after the first one, each with the last position that it shares with those
    before it."""

    log_id: UUID
    begun: Sequence[tuple[int, int]] = ()

    @property
    def origin(self) -> Origin:
        """The origin of records that are made now."""
        return Origin(self.log_id, self.begun[-1][0] if self.begun else FIRST_EPOCH)

    def epoch_of(self, position: int) -> int:
        """Return the epoch in which the event at this position was written."""
        return max((epoch for epoch, since in self.begun if since < position), default=FIRST_EPOCH)

    def holds(self, position: int, origin: Origin) -> bool:
        """Return True if a record at this position belongs to this log, and to no abandoned part of it."""
        if origin.log_id != self.log_id or origin.epoch > self.origin.epoch:
            return False
        return all(position <= since for epoch, since in self.begun if epoch > origin.epoch)


async def timeline(database: Database) -> Timeline:
    """Return the timeline as the database has it now."""
    return Timeline(await log_id(database), tuple(await database.rows(_BEGUN)))


class BeyondTheLog(Exception):
    """Raised when an epoch would begin after the last event."""

    def __init__(self, head: int) -> None:
        super().__init__(f"the log ends at {head}")
        self.head = head


async def begin_epoch(connection: AsyncConnection[TupleRow], *, since: int | None, reason: str) -> tuple[int, int]:
    """Begin an epoch, in the caller's transaction. Return it and its first position.

    The epoch shares the positions up to `since` with those before it; the whole log by default. No consumer keeps a checkpoint
    beyond that, nor its lease.
    """
    await connection.execute(_LOCK)
    row = await (await connection.execute(HEAD)).fetchone()
    head = int(row[0]) if row else 0
    position = head if since is None else since
    if position > head:
        raise BeyondTheLog(head)
    begun = await (await connection.execute(_BEGIN, (position, reason))).fetchone()
    assert begun is not None, "INSERT … RETURNING gives a row"
    await connection.execute(_SET_BACK, (position,))
    return int(begun[0]), position
