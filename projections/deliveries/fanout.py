"""Writing what is to be sent: one row per webhook and notification. architecture.md, §3, "An effect, a webhook".

Rows have a natural key, so the same notification fed twice leaves one row. Whoever sends is told in the same transaction.
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
    INSERT INTO deliveries (webhook, position, lane, shard, payload, state, due_at, created_at, finished_at, error)
    SELECT d.webhook, d.position, d.lane, d.shard, d.payload, CASE WHEN d.error IS NULL THEN 0 ELSE 2 END,
        clock_timestamp(), d.created_at, CASE WHEN d.error IS NOT NULL THEN clock_timestamp() END, d.error
    FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::timestamptz[], %s::text[])
        AS d (webhook, position, lane, shard, payload, created_at, error)
    ON CONFLICT DO NOTHING
    RETURNING webhook, state
), told AS (SELECT DISTINCT CASE WHEN %s THEN webhook::text ELSE '' END AS whom FROM made WHERE state = 0)
SELECT pg_notify('{CHANNEL}', whom) FROM told
"""
_WEBHOOKS = """
SELECT originator_id, originator_version, topic, state FROM events
WHERE originator_id >= 'webhook:' AND originator_id < 'webhook;' AND position <= %s ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """`created_at` is when the write was recorded. One with an error has failed from the start, and may be recovered."""

    webhook: UUID
    position: int
    lane: str
    payload: str
    created_at: datetime
    error: str | None = None


async def insert(connection: AsyncConnection[TupleRow], deliveries: Sequence[NewDelivery], *, late: bool = False) -> None:
    """In the caller's transaction; rows that are there already are left alone. `late`: they lie behind others that were written
    before, so senders, who read on in the log's order, are told of which webhooks."""
    for start in range(0, len(deliveries), _AT_ONCE):
        await connection.execute(_INSERT, (*_columns(deliveries[start : start + _AT_ONCE]), late), binary=True)


async def webhook_events(database: Database, through: int) -> Sequence[tuple[str, int, str, bytes]]:
    """Stream, version, topic and state of everything that happened to webhooks up to a position, in order within each stream."""
    return [(stream, version, topic, state) for stream, version, topic, state in await database.rows(_WEBHOOKS, (through,))]


def _columns(deliveries: Sequence[NewDelivery]) -> tuple[PackedArray, ...]:
    return (
        uuids([one.webhook for one in deliveries]),
        bigints([one.position for one in deliveries]),
        texts([one.lane for one in deliveries]),
        bigints([shard_of(one.webhook) for one in deliveries]),
        texts([one.payload for one in deliveries]),
        instants([one.created_at for one in deliveries]),
        texts([one.error for one in deliveries]),
    )
