"""The feed: the port through which consumers read the event log.

It returns records in the order of the log, whole writes only, and the position up to which it has read. This is a log position with
every transport, so a consumer can continue from its checkpoint on another transport without a loss or a repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from projections.log.reader import LoggedEvent

LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Batch:
    """Records in the order of their positions, all after the requested position of their shard. Everything up to `through` has been
    read for all requested shards."""

    records: Sequence[LoggedEvent]
    through: int


class Feed(Protocol):
    """The access of one reader to the log."""

    @property
    def reads_log_since(self) -> float | None:
        """The time by `time.monotonic` since when the log is read because the broker delivers nothing; None while the broker is
        read."""
        ...

    async def fetch(self, after: Mapping[int, int], *, limit: int = LIMIT) -> Batch:
        """Return the records after these positions, one for each shard. Wait a moment if there are none; the batch may then be
        empty, and `through` unchanged. A batch never ends within a write, so it may be a little longer than `limit`. Raise
        `Unavailable` if the transport does not answer."""
        ...

    async def close(self) -> None:
        """Release the resources of the feed. A closed feed may be read again."""
        ...
