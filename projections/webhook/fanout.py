"""Inserts deliveries: one row for each webhook and notification.

Rows have a natural key, so inserting a notification twice results in one row. Senders are notified in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.database.arrays import PackedArray, bigints, instants, texts, uuids
from projections.kernel.database.database import Database
from projections.webhook.keys import CHANNEL, DeliverySource, shard_of

_AT_ONCE = 2000

# A finished delivery is not inserted again. The search begins with the day on which it was created; the day of the oldest delivery
# is a separate parameter, so that older partitions are not even planned.
_INSERT = f"""
WITH new AS MATERIALIZED (
    SELECT d.* FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::uuid[], %s::timestamptz[],
        %s::text[]) AS d (webhook, position, ordering_key, shard, payload, sealed_url, created_at, error)
    WHERE (
        SELECT true FROM finished_deliveries f WHERE f.webhook = d.webhook AND f.position = d.position
          AND f.ordering_key = d.ordering_key AND f.finished_at >= d.created_at AND f.finished_at >= %s LIMIT 1
    ) IS NULL
), made AS (
    INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, sealed_url, due_at, created_at)
    SELECT webhook, position, ordering_key, %s, shard, payload, sealed_url, clock_timestamp(), created_at
    FROM new WHERE error IS NULL
    ON CONFLICT DO NOTHING
    RETURNING webhook
), failed AS (
    INSERT INTO finished_deliveries (webhook, position, ordering_key, source, shard, payload, sealed_url, state, attempts,
        created_at, finished_at, error)
    SELECT DISTINCT ON (webhook, position, ordering_key) webhook, position, ordering_key, %s, shard, payload, sealed_url, 2, 0,
        created_at, greatest(clock_timestamp(), created_at), error
    FROM new WHERE error IS NOT NULL AND NOT EXISTS (
        SELECT FROM pending_deliveries p
        WHERE p.webhook = new.webhook AND p.position = new.position AND p.ordering_key = new.ordering_key
    )
), wakeups AS (SELECT DISTINCT CASE WHEN %s THEN webhook::text ELSE '' END AS payload FROM made)
SELECT pg_notify('{CHANNEL}', payload) FROM wakeups
"""
# Webhooks are read from the view, except those that have changed since, which are folded from their events up to the position.
_WEBHOOKS = """
WITH webhooks AS MATERIALIZED (
    SELECT 'webhook:' || w.id AS stream, w.deleted, w.parent, w.document, v.position > %(position)s AS changed
    FROM record_view w JOIN stream_versions v ON v.stream = stream_key('webhook:' || w.id) AND v.version = w.version
    WHERE w.kind = 'webhook'
)
SELECT stream, 0 AS version, NULL AS topic, NULL AS state, parent, document::json->>'disabled_at' IS NOT NULL
FROM webhooks WHERE NOT changed AND NOT deleted
UNION ALL
SELECT w.stream, e.version, e.topic, e.state, NULL, NULL
FROM webhooks w JOIN stream_events e ON e.stream = stream_key(w.stream) AND e.position <= %(position)s WHERE w.changed
ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A delivery to insert. `created_at` is the time when the write was recorded.

    With an `error` it is inserted as failed; it may be recovered. `sealed_url` is the reference of the whole address in the vault,
    if the endpoint has only a part of it.
    """

    webhook: UUID
    position: int
    ordering_key: str
    payload: str
    created_at: datetime
    error: str | None = None
    sealed_url: UUID | None = None


async def insert(
    connection: AsyncConnection[TupleRow], deliveries: Sequence[NewDelivery], *, source: DeliverySource, late: bool = False
) -> None:
    """Insert deliveries in the caller's transaction; existing rows are not changed.

    `late` means that the source has already inserted later positions, which senders may have read, so the notification names the
    webhooks to read again.
    """
    for start in range(0, len(deliveries), _AT_ONCE):
        chunk = deliveries[start : start + _AT_ONCE]
        oldest = min(delivery.created_at for delivery in chunk)
        await connection.execute(_INSERT, (*_columns(chunk), oldest, int(source), int(source), late), binary=True)


@dataclass(frozen=True, slots=True)
class WebhooksThen:
    """The webhooks as of a position.

    `unchanged` holds those without a later event: the stream, the id of the Event, and True if it is disabled. For the others,
    `events` holds stream, version, topic and state, in order within each stream.
    """

    unchanged: Sequence[tuple[str, str | None, bool]]
    events: Sequence[tuple[str, int, str, bytes]]


async def webhooks_as_of(database: Database, position: int) -> WebhooksThen:
    rows = await database.rows(_WEBHOOKS, {"position": position})
    return WebhooksThen(
        [(stream, event, disabled) for stream, _, topic, _, event, disabled in rows if topic is None],
        [(stream, version, topic, state) for stream, version, topic, state, *_ in rows if topic is not None],
    )


def _columns(deliveries: Sequence[NewDelivery]) -> tuple[PackedArray, ...]:
    return (
        uuids([delivery.webhook for delivery in deliveries]),
        bigints([delivery.position for delivery in deliveries]),
        texts([delivery.ordering_key for delivery in deliveries]),
        bigints([shard_of(delivery.webhook) for delivery in deliveries]),
        texts([delivery.payload for delivery in deliveries]),
        uuids([delivery.sealed_url for delivery in deliveries]),
        instants([delivery.created_at for delivery in deliveries]),
        texts([delivery.error for delivery in deliveries]),
    )
