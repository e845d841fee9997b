"""Deliveries of checkpoints of the log to the webhooks that subscribe to them. A receiver that accepted a checkpoint is an anchor
of it."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pydantic_core import to_json

from domain.webhook.headers import notifications_in
from projections.kernel.database.database import Database
from projections.webhook.fanout import NewDelivery, insert
from projections.webhook.keys import FAN_OUT, LOG_SEALED, DeliverySource

_LAST: Final = "SELECT position, commits, sealed_at, note FROM checkpoints ORDER BY number DESC LIMIT 1"
_ASKING: Final = """
SELECT id, document::json->>'additional_properties_json' FROM record_view
WHERE kind = 'webhook' AND NOT deleted AND parent IS NULL AND document::json->>'disabled_at' IS NULL
    AND document LIKE '%%log.sealed%%'
"""
_IS_BEHIND: Final = "SELECT FROM consumer_shards WHERE consumer = %s AND coalesce(position, 0) < %s LIMIT 1"
_LATE: Final = 20
"""The number of recent checkpoints whose receivers are recorded: a webhook may be behind."""
_TAKEN: Final = """
INSERT INTO checkpoint_anchors (checkpoint, kind, place)
SELECT c.number, 'webhook', f.webhook::text
FROM (SELECT number, position, sealed_at, note FROM checkpoints ORDER BY number DESC LIMIT %s) c
JOIN finished_deliveries f ON f.webhook = ANY(%s::uuid[]) AND f.position = c.position AND f.ordering_key = %s
    AND f.finished_at >= c.sealed_at AND f.state = 1 AND f.payload::json->>'checkpoint' = c.note
ON CONFLICT DO NOTHING
"""


async def notify_of_checkpoint(database: Database) -> bool:
    """Insert the missing deliveries of the last checkpoint. Return False if it is too early, before the notifications of the sealed
    events have been inserted.

    Senders that have read a delivery of a later position do not look for earlier ones. These deliveries are late in the order of
    the log: later changes of Events may have been notified before.
    """
    last = await database.row(_LAST)
    webhooks = await _asking(database) if last else []
    if last is None or not webhooks:
        return True
    position, commits, sealed_at, note = last
    if await database.row(_IS_BEHIND, (FAN_OUT, position)) is not None:
        return False
    content = {"type": LOG_SEALED, "position": position, "commits": commits, "sealedAt": sealed_at, "checkpoint": note}
    payload = to_json(content).decode()
    deliveries = [NewDelivery(UUID(webhook), position, LOG_SEALED, payload, sealed_at) for webhook in webhooks]
    async with database.connection() as connection, connection.transaction():
        await insert(connection, deliveries, source=DeliverySource.NOTIFICATIONS, late=True)
    return True


async def note_receivers(database: Database) -> None:
    """Record receivers that answered with 2xx as anchors of the checkpoint, because old deliveries are deleted."""
    if webhooks := await _asking(database):
        await database.execute(_TAKEN, (_LATE, webhooks, LOG_SEALED))


async def _asking(database: Database) -> list[str]:
    return [id for id, text in await database.rows(_ASKING) if LOG_SEALED in notifications_in(text)]
