"""Redelivery: finished deliveries become pending again, under the same id. See docs/reference/api/webhooks.md#resend-and-recover.

Senders are notified in the same transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from projections.kernel.database.database import Database
from projections.webhook.keys import CHANNEL
from projections.webhook.queries import DeliveryPlace
from projections.webhook.store import FAILED

# Rows are identified by their places, because a finished delivery is never updated; an update would move a row to another place.
_RESEND = """
WITH chosen AS MATERIALIZED (
    SELECT tableoid AS part, ctid AS place FROM finished_deliveries WHERE webhook = %(webhook)s AND {condition}
    ORDER BY position, ordering_key LIMIT {most} FOR UPDATE
), taken AS (
    DELETE FROM finished_deliveries f USING chosen c WHERE f.ctid = c.place AND f.tableoid = c.part
    RETURNING f.*
)
INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, sealed_url, due_at, created_at)
SELECT webhook, position, ordering_key, source, shard, payload, sealed_url, clock_timestamp(), created_at FROM taken
"""
_MOST = 2_000
"""The rows of one statement, which must end within the time that a query may take."""
_RESEND_SINGLE = _RESEND.format(condition="position = %(position)s AND ordering_key = %(ordering_key)s", most=1)
_FAILED_SINCE = _RESEND.format(condition=f"state = {FAILED} AND created_at >= %(since)s AND finished_at >= %(since)s", most=_MOST)


class Redelivery:
    """Makes deliveries pending again. Deliveries with one ordering key are sent in log order, however many become
    pending at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def resend(self, place: DeliveryPlace) -> bool:
        """Resend a delivery. Return False if it is pending already."""
        parameters = {"position": place.position, "ordering_key": place.ordering_key}
        return await self._update(_RESEND_SINGLE, place.webhook, parameters=parameters) > 0

    async def resend_failed_since(self, webhook: UUID, since: datetime) -> int:
        """Resend all failed deliveries that were created at or after that time, or none. Return their number."""
        return await self._update(_FAILED_SINCE, webhook, parameters={"since": since})

    async def _update(self, statement: str, webhook: UUID, *, parameters: dict[str, Any]) -> int:
        async with self._database.connection() as connection, connection.transaction():
            changed = 0
            while some := (await connection.execute(statement, {"webhook": webhook, **parameters})).rowcount:
                changed += some
            if changed:
                await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(webhook)))
            return changed
