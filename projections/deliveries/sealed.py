"""Deliveries of checkpoints of the log to the webhooks that ask for them."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pydantic_core import to_json

from domain.webhook.headers import notifications_in
from projections.deliveries.fanout import NewDelivery, insert
from projections.deliveries.keys import LOG_SEALED, Source
from projections.kernel.database import Database

_LAST: Final = "SELECT position, commits, sealed_at, note FROM checkpoints ORDER BY number DESC LIMIT 1"
_ASKING: Final = """
SELECT id, document::json->>'additional_properties_json' FROM record_view
WHERE kind = 'webhook' AND NOT deleted AND parent IS NULL AND document::json->>'disabled_at' IS NULL
    AND document LIKE '%%log.sealed%%'
"""


async def notify_of_checkpoint(database: Database) -> int:
    """Insert the deliveries of the last checkpoint that are not there yet; gives for how many webhooks. They are late in
    the order of the log: later changes of Events may have been notified before."""
    last = await database.row(_LAST)
    webhooks = [id for id, text in await database.rows(_ASKING) if LOG_SEALED in notifications_in(text)] if last else []
    if last is None or not webhooks:
        return 0
    position, commits, sealed_at, note = last
    content = {"type": LOG_SEALED, "position": position, "commits": commits, "sealedAt": sealed_at, "checkpoint": note}
    payload = to_json(content).decode()
    deliveries = [NewDelivery(UUID(webhook), position, LOG_SEALED, payload, sealed_at) for webhook in webhooks]
    async with database.connection() as connection, connection.transaction():
        await insert(connection, deliveries, source=Source.NOTIFICATIONS, late=True)
    return len(webhooks)
