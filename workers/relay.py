"""The relay: copies the event log to Kafka, by position. Only one is active at a time: it holds the only shard of its consumer.

Its checkpoint moves after a page is acknowledged, so after a crash a page may be sent again. Records that a partition already holds
are left out; consumers skip the other repeats by their position.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.log.reader import LoggedEvent


def relay_name(cluster_id: str) -> str:
    """The name of the relay as a consumer. A cluster that lost its data has a new id, so it is filled from the start of the log."""
    return f"relay {cluster_id}"


class Publisher(Protocol):
    """A message broker that the relay publishes to."""

    async def begin(self) -> None:
        """Get ready to publish. To be called again after an error."""
        ...

    async def publish(self, events: Sequence[LoggedEvent], *, after: int) -> None:
        """Send a page that starts after the position `after`, and wait until the broker has it. Raises `Unavailable`."""
        ...

    async def close(self) -> None: ...


class Relay:
    """The handler of the relay's consumer. It publishes a page before the checkpoint moves."""

    def __init__(self, publisher: Publisher, *, kinds: Collection[str]) -> None:
        self._publisher = publisher
        self.kinds = frozenset(kinds)
        self._through = 0

    async def begin(self, position: int) -> None:
        await self._publisher.begin()
        self._through = position

    async def prepare(self, records: Sequence[LoggedEvent]) -> int:
        await self._publisher.publish(records, after=self._through)
        self._through = records[-1].position
        return len(records)

    async def write(self, connection: AsyncConnection[TupleRow], effects: int) -> None:
        """There is nothing to write but the checkpoint."""

    def wrote(self, effects: int) -> None:
        """There is nothing to wake."""
