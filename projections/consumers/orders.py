"""Orders: the ledger of commands that follow from events of the log, until they are executed.

An order is executed at least once: a process that dies between the command and `done` leaves the order to another process. So the
aggregate must accept the repetition of a command silently.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.database.arrays import bigints, texts, uuids
from projections.kernel.database.database import Database

AT_ONCE: Final = 50
LEASE: Final = 30.0
"""The number of seconds after which an unfinished attempt is left to another process."""
_LONGEST: Final = 500

_INSERT = """
INSERT INTO orders (consumer, position, target, body, event_id, correlation_id)
SELECT %s, o.* FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::uuid[], %s::text[]) AS o
ON CONFLICT DO NOTHING
"""
_TAKE = """
UPDATE orders o SET attempts = o.attempts + 1, due_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM (
    SELECT consumer, target, position FROM orders first
    WHERE consumer = %(consumer)s AND due_at <= clock_timestamp() AND NOT EXISTS (
        SELECT FROM orders earlier
        WHERE earlier.consumer = first.consumer AND earlier.target = first.target AND earlier.position < first.position
    )
    ORDER BY position LIMIT %(most)s FOR UPDATE SKIP LOCKED
) due
WHERE o.consumer = due.consumer AND o.target = due.target AND o.position = due.position
RETURNING o.position, o.target, o.body, o.event_id, o.correlation_id, o.attempts,
    (SELECT e.metadata->>'trace_parent' FROM events e WHERE e.position = o.position)
"""
_DUE = "SELECT DISTINCT consumer FROM orders WHERE due_at <= clock_timestamp() AND consumer = ANY(%s::text[])"
_OF = "WHERE consumer = %s AND target = %s AND position = %s AND attempts = %s"
_RETRY = f"UPDATE orders SET due_at = clock_timestamp() + make_interval(secs => %s), error = %s {_OF}"


@dataclass(frozen=True, slots=True)
class NewOrder:
    """An order to insert. `body` holds the arguments of the command; `event_id` and `correlation_id` are those of the event that it
    follows from."""

    position: int
    target: str
    body: str
    event_id: UUID
    correlation_id: str


@dataclass(frozen=True, slots=True)
class Order(NewOrder):
    """An order with the number of its attempt, and the trace of the event that it follows from."""

    attempt: int
    trace_parent: str | None = None


async def insert(connection: AsyncConnection[TupleRow], orders: Sequence[NewOrder], *, consumer: str) -> None:
    """Insert orders in the transaction of the consumer. Orders that exist already are left unchanged."""
    columns = (
        bigints([order.position for order in orders]),
        texts([order.target for order in orders]),
        texts([order.body for order in orders]),
        uuids([order.event_id for order in orders]),
        texts([order.correlation_id for order in orders]),
    )
    await connection.execute(_INSERT, (consumer, *columns))


async def due(database: Database, consumers: Collection[str]) -> Sequence[str]:
    """Return those of the consumers that have orders which are due."""
    return [consumer for (consumer,) in await database.rows(_DUE, (list(consumers),))]


class Orders:
    """The orders of one consumer."""

    def __init__(self, database: Database, consumer: str, *, lease: float = LEASE) -> None:
        self._database = database
        self.consumer = consumer
        self._lease = lease

    async def take(self, most: int = AT_ONCE) -> list[Order]:
        """Begin attempts of up to `most` orders that are due, in log order, and return them. Only the first order of each target is
        taken."""
        parameters = {"consumer": self.consumer, "lease": self._lease, "most": most}
        return sorted(
            (Order(*row) for row in await self._database.rows(_TAKE, parameters)),
            key=lambda order: order.position,
        )

    async def done(self, order: Order) -> None:
        await self._database.execute(f"DELETE FROM orders {_OF}", self._attempt(order))

    async def retry(self, order: Order, *, seconds: float, error: str) -> None:
        await self._database.execute(_RETRY, (seconds, error[:_LONGEST], *self._attempt(order)))

    def _attempt(self, order: Order) -> tuple[str, str, int, int]:
        return self.consumer, order.target, order.position, order.attempt
