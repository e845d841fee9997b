"""What operators see of deliveries: how each one stands, and every try. Issue 5, "Operators see it".

Pages go from the newest back by key, and nothing is counted to its end, so that a million deliveries are no slower than ten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from domain.job.aggregate import Job
from projections.deliveries import ledger
from projections.deliveries.keys import delivery_id, position_of
from projections.kernel.arrays import bigints
from projections.kernel.database import Database
from projections.kernel.where import where

MOST_COUNTED: Final = 100_001
"""A backlog is counted up to here: one more than what is worth telling apart."""

_SEEN_SECONDS: Final = 10
_COLUMNS = "SELECT webhook, position, lane, state, payload, created_at, due_at, finished_at, error FROM deliveries WHERE "
_ATTEMPTS = """
SELECT position, lane, started_at, seconds, status, error, address, response FROM delivery_attempts
WHERE webhook = %s AND position = ANY(%s::bigint[]) ORDER BY started_at
"""
_OLDEST = f"FROM deliveries WHERE state = {ledger.PENDING} ORDER BY position, webhook, lane LIMIT {MOST_COUNTED}"
_BACKLOG = f"""
SELECT count(*), count(*) FILTER (WHERE due_at <= now()),
    coalesce(extract(epoch FROM now() - min(due_at) FILTER (WHERE due_at <= now())), 0)::float8,
    (SELECT coalesce(sum(busy), 0)::bigint FROM consumer_members
     WHERE consumer = '{ledger.CONSUMER}' AND seen_at > now() - interval '{_SEEN_SECONDS} seconds')
FROM (SELECT due_at {_OLDEST}) AS oldest
"""
_CALLBACK_BACKLOG = f"SELECT count(*) FROM (SELECT lane {_OLDEST}) AS oldest WHERE starts_with(lane, '{Job.KIND}:')"


class DeliveryState(IntEnum):
    PENDING = ledger.PENDING
    DELIVERED = ledger.DELIVERED
    FAILED = ledger.FAILED


@dataclass(frozen=True, slots=True)
class Attempt:
    """`error` None: it was delivered. `status` None: there was no answer."""

    started_at: datetime
    seconds: float
    status: int | None
    error: str | None
    address: str
    response: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """`attempts` are all tries ever, the first one first. `due_at` means something only while it is pending."""

    webhook: UUID
    position: int
    lane: str
    state: DeliveryState
    payload: str
    created_at: datetime
    due_at: datetime
    finished_at: datetime | None
    error: str | None
    attempts: Sequence[Attempt]

    @property
    def id(self) -> UUID:
        return delivery_id(self.webhook, self.position, lane=self.lane)

    @property
    def job(self) -> int | None:
        """Of a callback; all others are about the Event that the lane names."""
        kind, colon, key = self.lane.partition(":")
        return int(key) if colon and kind == Job.KIND else None


@dataclass(frozen=True, kw_only=True)
class DeliveryFilter:
    """`before` is the id of a delivery, there or not any more: what lies behind it in the log is left out, and it too."""

    state: DeliveryState | None = None
    event_id: UUID | None = None
    job: int | None = None
    before: UUID | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class Backlog:
    """Of the first `MOST_COUNTED` that are pending, in the log's order. `oldest`: how many seconds ago the first one became due."""

    pending: int
    due: int
    oldest: float
    in_flight: int


class DeliveryQueries:
    """All that is asked about deliveries by those who do not send them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, webhook: UUID, wanted: DeliveryFilter) -> list[Delivery]:
        """The newest first. One more than `limit`, where there is more."""
        position, lane = await self._place(webhook, wanted.before) if wanted.before is not None else (None, "")
        state = wanted.state
        conditions, parameters = where(
            [
                ("webhook", webhook, "webhook = %(webhook)s"),
                ("position", position, "(position, lane) < (%(position)s, %(below)s)"),
                ("event", _text(wanted.event_id), "lane = %(event)s"),
                ("job", None if wanted.job is None else Job.stream(wanted.job), "lane = %(job)s"),
                ("state", state, f"state = {state}"),  # spelled out, or the indexes of one state could not be used
            ]
        )
        order = " ORDER BY position DESC, lane DESC LIMIT %(limit)s"
        named = parameters | {"below": lane, "limit": wanted.limit + 1}
        return await self._with_attempts(webhook, await self._database.rows(_COLUMNS + " AND ".join(conditions) + order, named))

    async def find(self, webhook: UUID, delivery: UUID) -> Delivery | None:
        found = await self._at(webhook, position_of(delivery))
        return next((one for one in found if one.id == delivery), None)

    async def backlog(self) -> Backlog:
        row = await self._database.row(_BACKLOG)
        assert row is not None
        pending, due, oldest, in_flight = row
        return Backlog(pending, due, oldest, in_flight)

    async def _place(self, webhook: UUID, delivery: UUID) -> tuple[int, str]:
        found = await self.find(webhook, delivery)
        return position_of(delivery), found.lane if found is not None else ""

    async def _at(self, webhook: UUID, position: int) -> list[Delivery]:
        rows = await self._database.rows(_COLUMNS + "webhook = %s AND position = %s", (webhook, position))
        return await self._with_attempts(webhook, rows)

    async def _with_attempts(self, webhook: UUID, rows: Sequence[Sequence[Any]]) -> list[Delivery]:
        if not rows:
            return []
        tried: defaultdict[tuple[int, str], list[Attempt]] = defaultdict(list)
        for position, lane, *one in await self._database.rows(_ATTEMPTS, (webhook, bigints([row[1] for row in rows]))):
            tried[position, lane].append(Attempt(*one))
        return [
            Delivery(of, position, lane, DeliveryState(state), *(*rest, tried[position, lane]))
            for of, position, lane, state, *rest in rows
        ]


async def callback_backlog(database: Database) -> int:
    """How many callbacks are pending, of the first `MOST_COUNTED` deliveries that are."""
    row = await database.row(_CALLBACK_BACKLOG)
    assert row is not None
    return int(row[0])


def _text(key: UUID | None) -> str | None:
    return None if key is None else str(key)
