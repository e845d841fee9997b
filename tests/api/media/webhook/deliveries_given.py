"""Deliveries and their tries, inserted into the tables as the fan-out and the sender do it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from api.wiring.core import Core
from domain.event.values import EventDetails
from projections.webhook.fanout import NewDelivery, insert
from projections.webhook.keys import DeliverySource, delivery_id
from tests.projections.webhook.finishing import finishing
from tests.support.clock import NOON
from workers.webhook.fanout import payload
from workers.webhook.policy import Effect, EventChange, PayloadAction

PAYLOAD = payload("e", EventDetails(), effect=Effect(PayloadAction.UPDATED, EventChange.METADATA))
FINAL = UUID("0f0e0d0c-0b0a-4908-8706-050403020100")
OTHER = UUID("0f0e0d0c-0b0a-4908-8706-050403020101")


class Deliveries:
    """Deliveries of one webhook."""

    def __init__(self, inner: Core, webhook: str) -> None:
        self.webhook = UUID(webhook)
        self._database = inner.database

    def id(self, position: int, event: UUID = FINAL) -> str:
        return str(delivery_id(self.webhook, position, ordering_key=str(event)))

    async def make(self, *positions: int, event: UUID = FINAL, error: str | None = None, at: datetime = NOON) -> None:
        """Pending deliveries, or with an `error` failed ones. Each is created `position` seconds after `at`."""
        await self._insert(
            NewDelivery(self.webhook, position, str(event), PAYLOAD, at + timedelta(seconds=position), error)
            for position in positions
        )

    async def make_callback(self, position: int, *, job: int, sealed_url: UUID | None = None) -> None:
        """A pending delivery about a job."""
        payload = json.dumps({"job_id": job, "status": "started"})
        await self._insert(
            [NewDelivery(self.webhook, position, f"job:{job}", payload, NOON, sealed_url=sealed_url)],
            source=DeliverySource.CALLBACKS,
        )

    async def _insert(self, new: Iterable[NewDelivery], *, source: DeliverySource = DeliverySource.NOTIFICATIONS) -> None:
        async with self._database.connection() as connection, connection.transaction():
            await insert(connection, list(new), source=source)

    async def finish(self, position: int, error: str | None = None) -> None:
        await self._database.execute(
            finishing("webhook = %s AND position = %s", state="%s", attempts="1", finished_at="created_at", error="%s"),
            (self.webhook, position, 1 if error is None else 2, error),
        )

    async def attempt(self, position: int, *, status: int | None = 200, error: str | None = None, event: UUID = FINAL) -> None:
        """Add an attempt, a minute after the last one."""
        await self._database.execute(
            "INSERT INTO delivery_attempts (webhook, position, ordering_key, started_at, seconds, status, error, address, response)"
            " SELECT %(webhook)s, %(position)s, %(ordering_key)s, %(noon)s + count(*) * interval '1 minute', 0.012, %(status)s,"
            " %(error)s, '192.0.2.1', 'thanks' FROM delivery_attempts WHERE webhook = %(webhook)s AND position = %(position)s",
            {
                "webhook": self.webhook,
                "position": position,
                "ordering_key": str(event),
                "noon": NOON,
                "status": status,
                "error": error,
            },
        )

    async def rows(self) -> list[tuple[Any, ...]]:
        """Position, state, tries, error, whether it is finished, and whether it is due."""
        return await self._database.rows(
            "SELECT position, state, attempts, error, finished_at IS NOT NULL, due_at <= clock_timestamp()"
            " FROM deliveries WHERE webhook = %s ORDER BY position",
            (self.webhook,),
        )
