"""The relay: fills Kafka from the log, in the log's order. One is active at a time, under the lease of its consumer's only shard.

Its checkpoint moves when a page is acknowledged, so after a crash a page may be sent again; what a partition already holds is left
out, and consumers pass over the rest by its position.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.log.tail import LoggedEvent


def relay_name(cluster_id: str) -> str:
    """The relay's name as a consumer: a cluster that has lost its data is another one, and is filled from the log's beginning."""
    return f"relay {cluster_id}"


class Publisher(Protocol):
    """The broker, as the relay needs it."""

    async def begin(self) -> None:
        """Be ready to publish; to be called again after a fault."""
        ...

    async def publish(self, events: Sequence[LoggedEvent], *, after: int) -> None:
        """Send a page that begins behind `after`; it has arrived when this returns. Raises `Unavailable`."""
        ...

    async def close(self) -> None: ...


class Relay:
    """A handler whose effect is outside: it has happened before the checkpoint moves."""

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
        """Nothing beside the checkpoint."""

    def wrote(self, effects: int) -> None:
        """Nobody here waits for it."""
