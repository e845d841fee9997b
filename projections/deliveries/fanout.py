"""Inserting deliveries: one row for each webhook and notification.

Rows have a natural key, so a notification that is inserted twice is one row. Senders are notified in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.deliveries.keys import CHANNEL, shard_of
from projections.kernel.arrays import PackedArray, bigints, instants, texts, uuids
from projections.kernel.database import Database

_AT_ONCE = 2000

_INSERT = f"""
WITH made AS (
    INSERT INTO deliveries (webhook, position, ordering_key, shard, payload, state, due_at, created_at, finished_at, error)
    SELECT d.webhook, d.position, d.ordering_key, d.shard, d.payload, CASE WHEN d.error IS NULL THEN 0 ELSE 2 END,
        clock_timestamp(), d.created_at, CASE WHEN d.error IS NOT NULL THEN clock_timestamp() END, d.error
    FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::timestamptz[], %s::text[])
        AS d (webhook, position, ordering_key, shard, payload, created_at, error)
    ON CONFLICT DO NOTHING
    RETURNING webhook, state
), wakeups AS (SELECT DISTINCT CASE WHEN %s THEN webhook::text ELSE '' END AS payload FROM made WHERE state = 0)
SELECT pg_notify('{CHANNEL}', payload) FROM wakeups
"""
_WEBHOOKS = """
SELECT originator_id, originator_version, topic, state FROM events
WHERE originator_id >= 'webhook:' AND originator_id < 'webhook;' AND position <= %s ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A delivery to insert. `created_at` is when the write was recorded. With an `error` it is inserted as failed; it may be
    recovered."""

    webhook: UUID
    position: int
    ordering_key: str
    payload: str
    created_at: datetime
    error: str | None = None


async def insert(connection: AsyncConnection[TupleRow], deliveries: Sequence[NewDelivery], *, late: bool = False) -> None:
    """Insert in the caller's transaction; existing rows stay as they are. `late`: senders, who read in log order, have passed these
    positions already, so the notification names the webhooks to read again."""
    for start in range(0, len(deliveries), _AT_ONCE):
        await connection.execute(_INSERT, (*_columns(deliveries[start : start + _AT_ONCE]), late), binary=True)


async def webhook_events(database: Database, through: int) -> Sequence[tuple[str, int, str, bytes]]:
    """Stream, version, topic and state of all events of webhooks up to a position, in order within each stream."""
    return [(stream, version, topic, state) for stream, version, topic, state in await database.rows(_WEBHOOKS, (through,))]


def _columns(deliveries: Sequence[NewDelivery]) -> tuple[PackedArray, ...]:
    return (
        uuids([one.webhook for one in deliveries]),
        bigints([one.position for one in deliveries]),
        texts([one.ordering_key for one in deliveries]),
        bigints([shard_of(one.webhook) for one in deliveries]),
        texts([one.payload for one in deliveries]),
        instants([one.created_at for one in deliveries]),
        texts([one.error for one in deliveries]),
    )
