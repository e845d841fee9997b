"""Health of endpoints: the pending deliveries of each, the outcomes of the last day, and the time since when it fails.

Counts end at `MOST`, and each part is read through an index, so an endpoint with a million deliveries costs no more than any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from domain.kernel.clock import Clock
from projections.kernel.database.database import Pool
from projections.webhook import store

MOST: Final = 1_000
_DAY: Final = timedelta(days=1)


class Circuit(StrEnum):
    """The state of an endpoint's circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


_HEALTH: Final = f"""
SELECT w.id, e.failing_since, e.succeeded_at,
    CASE WHEN e.circuit_until IS NULL THEN '{Circuit.CLOSED}' WHEN e.circuit_until > clock_timestamp() THEN '{Circuit.OPEN}'
        ELSE '{Circuit.HALF_OPEN}' END,
    CASE WHEN e.circuit_until <= clock_timestamp() THEN e.circuit_until ELSE e.circuit_since END, e.circuit_until,
    p.pending, p.oldest, p.next, f.delivered, f.failed
FROM unnest(%(webhooks)s::uuid[]) AS w(id)
LEFT JOIN delivery_endpoints e ON e.webhook = w.id
CROSS JOIN LATERAL (
    SELECT count(*) AS pending, min(created_at) AS oldest, min(due_at) AS next
    FROM (SELECT created_at, due_at FROM pending_deliveries WHERE webhook = w.id ORDER BY position LIMIT {MOST}) AS first
) AS p
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = {store.DELIVERED}) AS delivered, count(*) FILTER (WHERE state = {store.FAILED}) AS failed
    FROM (
        SELECT state FROM finished_deliveries WHERE webhook = w.id AND finished_at > %(since)s ORDER BY position DESC LIMIT {MOST}
    ) AS last
) AS f
"""


@dataclass(frozen=True, slots=True)
class EndpointHealth:
    """The health of an endpoint.

    `pending` counts the first `MOST` deliveries, to which the times `oldest` and `next_try` refer; `delivered` and `failed` count
    the last `MOST` that ended within a day. `failing_since` is None if the last attempt succeeded. `circuit_since` is the time when
    the circuit breaker entered its state, None if it has never left the initial one; `circuit_until` the time when an open one
    permits an attempt.
    """

    webhook: UUID
    failing_since: datetime | None
    succeeded_at: datetime | None
    circuit: Circuit
    circuit_since: datetime | None
    circuit_until: datetime | None
    pending: int
    oldest: datetime | None
    next_try: datetime | None
    delivered: int
    failed: int


class EndpointHealthQueries:
    """Reads the health of endpoints."""

    def __init__(self, database: Pool, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, webhooks: Sequence[UUID]) -> dict[UUID, EndpointHealth]:
        parameters = {"webhooks": list(webhooks), "since": self._clock() - _DAY}
        rows = await self._database.rows(_HEALTH, parameters)
        return {row[0]: EndpointHealth(*(*row[:3], Circuit(row[3]), *row[4:])) for row in rows}
