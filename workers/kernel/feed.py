"""The seam between the log and those who follow it. architecture.md, §3.

A feed gives records in the log's order, whole writes only, and says how far it has read. Where it has read up to is a log position
whatever the transport, so a consumer goes on from its checkpoint on another transport without a loss or a repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from projections.log.tail import LoggedEvent

LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Batch:
    """Records in the order of their positions, none of them at or before the position that was asked of its shard. With them
    everything up to `through` has been read, for all shards that were asked for."""

    records: Sequence[LoggedEvent]
    through: int


class Feed(Protocol):
    """One reader's way to the log."""

    async def fetch(self, after: Mapping[int, int]) -> Batch:
        """What lies behind these positions, given by shard. Waits a moment when there is nothing; the batch may then be empty and
        `through` no further than before. Never ends within a write. Raises `Unavailable` when the transport does not answer."""
        ...

    async def close(self) -> None:
        """Let go of whatever the feed holds. A closed feed may be asked again."""
        ...
