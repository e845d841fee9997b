"""Deliveries that are sent again because a person wants it: they become pending as if they were new, under the same id.

Issue 5, "Operators see it". Whoever sends is told in the same transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from projections.deliveries.keys import CHANNEL
from projections.deliveries.ledger import FAILED, PENDING
from projections.deliveries.queries import Delivery
from projections.kernel.database import Database

_AGAIN = f"""
UPDATE deliveries SET state = {PENDING}, attempts = 0, due_at = clock_timestamp(), finished_at = NULL, error = NULL
WHERE webhook = %(webhook)s AND
"""
_ONE = _AGAIN + f"position = %(position)s AND lane = %(lane)s AND state <> {PENDING}"
_FAILED_SINCE = _AGAIN + f"state = {FAILED} AND created_at >= %(since)s"


class Resending:
    """Within a lane the order is that of the log, however many become pending at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def one(self, delivery: Delivery) -> bool:
        """False: it is pending already."""
        place = {"position": delivery.position, "lane": delivery.lane}
        return await self._again(_ONE, delivery.webhook, named=place) > 0

    async def failed_since(self, webhook: UUID, since: datetime) -> int:
        """All that has failed of what was made since then; how many."""
        return await self._again(_FAILED_SINCE, webhook, named={"since": since})

    async def _again(self, statement: str, webhook: UUID, *, named: dict[str, Any]) -> int:
        async with self._database.connection() as connection, connection.transaction():
            changed = (await connection.execute(statement, {"webhook": webhook, **named})).rowcount
            if changed:
                await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(webhook)))
            return changed
