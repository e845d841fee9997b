"""The feed: the port through which the log is read.

It returns records in the order of the log, whole writes only, and the position up to which it has read. This is a log position with
every transport, so a reader can continue on another transport without a loss or a repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from projections.log.reader import LoggedEvent

LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Batch:
    """Records in the order of their positions. Everything up to `through` has been read."""

    records: Sequence[LoggedEvent]
    through: int


class Feed(Protocol):
    """The access of one reader to the log."""

    @property
    def reads_log_since(self) -> float | None:
        """The time by `time.monotonic` since when the log is read because the broker delivers nothing; None while the broker is
        read."""
        ...

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        """Return the records after a position. Wait a moment if there are none; the batch may then be empty, and `through`
        unchanged. A batch never ends within a write, so it may be a little longer than `limit`. Raise `Unavailable` if the
        transport does not answer."""
        ...

    async def close(self) -> None:
        """Release the resources of the feed. A closed feed may be read again."""
        ...


class ConsumerFeed(Feed, Protocol):
    """The access of one consumer to the log."""

    @property
    def passed(self) -> int:
        """The position up to which nothing is for the consumer, while it waits in `fetch`."""
        ...

    def restart(self, head: int) -> None:
        """Forget what was read before, since the log may have lost it; the log ends at `head` now."""
        ...

    def interrupt(self) -> None:
        """End the wait of a `fetch` that waits for long, or the next such wait."""
        ...
