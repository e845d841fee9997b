"""Queries of deliveries for operators; see docs/reference/api/webhooks.md#deliveries.

Pages are read by key, newest first, and counts are limited, so a million deliveries are no slower than ten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from domain.job.aggregate import Job
from domain.provision.aggregate import ProvisionInfo, provision_key
from projections.kernel.database.arrays import bigints, uuids
from projections.kernel.database.database import Database, Pool
from projections.kernel.database.page import within_bytes
from projections.kernel.sql.where import where
from projections.log.reader import FIRST_EPOCH
from projections.webhook import store
from projections.webhook.keys import LOG_SEALED, DeliverySource, delivery_id, position_of

MOST_COUNTED: Final = 100_001
"""The limit of counts of a backlog; a larger backlog is reported with this number too."""

_SEEN_SECONDS: Final = 10


def epoch_of(table: str) -> str:
    """Return an SQL expression for the epoch of a delivery's position."""
    return f"(SELECT coalesce(max(epoch), {FIRST_EPOCH}) FROM log_epochs WHERE since_position < {table}.position)"


_COLUMNS = f"""
SELECT webhook, position, ordering_key, state, {epoch_of("deliveries")}, payload, created_at, due_at, finished_at, error
FROM deliveries WHERE
"""
_NEWEST = "position DESC, ordering_key DESC"
_ATTEMPTS = """
SELECT asked.webhook, asked.position, tried.* FROM unnest(%s::uuid[], %s::bigint[]) AS asked (webhook, position)
CROSS JOIN LATERAL (
    SELECT ordering_key, started_at, seconds, status, error, address, response FROM delivery_attempts a
    WHERE a.webhook = asked.webhook AND a.position = asked.position ORDER BY started_at OFFSET 0
) AS tried
"""
"""The query of attempts. OFFSET keeps the planner from reading the whole table."""
_IN_ORDER = f"ORDER BY source, shard, position, webhook, ordering_key LIMIT {MOST_COUNTED}"
"""An order for the planner: it leads to the index of pending deliveries, whatever the statistics of the table."""
_BACKLOG = f"""
SELECT count(*), count(*) FILTER (WHERE due_at <= now()),
    coalesce(extract(epoch FROM now() - min(due_at) FILTER (WHERE due_at <= now())), 0)::float8,
    (SELECT coalesce(sum(busy), 0)::bigint FROM consumer_members
     WHERE consumer = '{store.CONSUMER}' AND seen_at > now() - interval '{_SEEN_SECONDS} seconds')
FROM (SELECT due_at FROM pending_deliveries {_IN_ORDER}) AS counted
"""
_LATEST_SEALED_URL = (
    "SELECT sealed_url, ordering_key FROM deliveries WHERE webhook = %s ORDER BY position DESC, ordering_key DESC LIMIT 1"
)
_CALLBACK_BACKLOG = f"""
SELECT count(*) FROM (
    SELECT FROM pending_deliveries WHERE source = {DeliverySource.CALLBACKS} {_IN_ORDER}
) AS counted
"""


class DeliveryState(IntEnum):
    PENDING = store.PENDING
    DELIVERED = store.DELIVERED
    FAILED = store.FAILED


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to deliver. `error` is None if it was delivered, `status` None if there was no answer."""

    started_at: datetime
    seconds: float
    status: int | None
    error: str | None
    address: str
    response: str


class DeliveryPlace(NamedTuple):
    """The key of a delivery in the tables."""

    webhook: UUID
    position: int
    ordering_key: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery with all its attempts, the first one first. `due_at` has a meaning only while it is pending."""

    webhook: UUID
    position: int
    ordering_key: str
    state: DeliveryState
    epoch: int
    payload: str
    created_at: datetime
    due_at: datetime
    finished_at: datetime | None
    error: str | None
    attempts: Sequence[Attempt]

    @property
    def id(self) -> UUID:
        return delivery_id(self.webhook, self.position, ordering_key=self.ordering_key, epoch=self.epoch)

    @property
    def place(self) -> DeliveryPlace:
        return DeliveryPlace(self.webhook, self.position, self.ordering_key)

    @property
    def job(self) -> int | None:
        """The number of a callback's job; None for a delivery about an Event."""
        kind, colon, key = self.ordering_key.partition(":")
        return int(key) if colon and kind == Job.KIND else None

    @property
    def is_of_log(self) -> bool:
        """True for a notification of a checkpoint of the log."""
        return self.ordering_key == LOG_SEALED

    @property
    def is_of_infrastructure(self) -> bool:
        """True for a notice of the infrastructure of an Event, to a callback."""
        return self.ordering_key.startswith(f"{ProvisionInfo.KIND}:")


@dataclass(frozen=True, kw_only=True)
class DeliveryFilter:
    """A filter of the deliveries of a webhook. `before` is the id of a delivery, which may have been deleted since; only older ones
    are read."""

    state: DeliveryState | None = None
    event_id: UUID | None = None
    job: int | None = None
    before: UUID | None = None
    limit: int = 20


class DeliveryPage(NamedTuple):
    """A page of deliveries. If `more`, the filter matches older ones."""

    results: Sequence[Delivery]
    more: bool


@dataclass(frozen=True, slots=True)
class PendingCounts:
    """Counts of pending deliveries, up to `MOST_COUNTED`. `oldest` is the number of seconds since the first of the counted
    deliveries became due."""

    pending: int
    due: int
    oldest: float
    in_flight: int


class DeliveryQueries:
    """Reads deliveries for operators. Senders use `DeliveryStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, webhook: UUID, filter: DeliveryFilter) -> DeliveryPage:
        """Return deliveries of a webhook, newest first: up to `limit`, fewer if their payloads are large.

        The deliveries about an Event are notifications or, for a callback, notices of its infrastructure: no webhook has both.
        """
        if filter.event_id is None:
            return await self._page(webhook, filter, event=None)
        notifications = await self._page(webhook, filter, event=str(filter.event_id))
        infrastructure = ProvisionInfo.stream(provision_key(filter.event_id))
        return notifications if notifications.results else await self._page(webhook, filter, event=infrastructure)

    async def _page(self, webhook: UUID, filter: DeliveryFilter, *, event: str | None) -> DeliveryPage:
        """Return a page of deliveries. `event` is the ordering key of the deliveries about an Event."""
        position, ordering_key = await self._place(webhook, filter.before) if filter.before is not None else (None, "")
        state = filter.state
        conditions, parameters = where(
            [
                ("webhook", webhook, "webhook = %(webhook)s"),
                ("position", position, "(position, ordering_key) < (%(position)s, %(below)s)"),
                ("event", event, "ordering_key = %(event)s"),
                ("job", None if filter.job is None else Job.stream(filter.job), "ordering_key = %(job)s"),
                ("state", state, f"state = {state}"),  # not a parameter, so that PostgreSQL can leave out one of the tables
            ]
        )
        page = f"{_COLUMNS} {' AND '.join(conditions)} ORDER BY {_NEWEST} LIMIT %(limit)s"
        named = parameters | {"below": ordering_key, "limit": filter.limit + 1}
        rows = await self._database.lists.rows(within_bytes(page, order=_NEWEST, content="payload"), named)
        shown = [row[:-2] for row in rows[: filter.limit]]
        return DeliveryPage(await self.with_attempts(shown), bool(rows) and rows[0][-1] > len(shown))

    async def find(self, webhook: UUID, delivery: UUID) -> Delivery | None:
        rows = await self._at(webhook, position_of(delivery))
        return next((row for row in rows if row.id == delivery), None)

    async def backlog(self) -> PendingCounts:
        row = await self._database.lists.row(_BACKLOG)
        assert row is not None
        pending, due, oldest, in_flight = row
        return PendingCounts(pending, due, oldest, in_flight)

    async def _place(self, webhook: UUID, delivery: UUID) -> tuple[int, str]:
        row = await self.find(webhook, delivery)
        return position_of(delivery), row.ordering_key if row is not None else ""

    async def _at(self, webhook: UUID, position: int) -> list[Delivery]:
        rows = await self._database.rows(_COLUMNS + "webhook = %s AND position = %s", (webhook, position))
        return await self.with_attempts(rows)

    async def with_attempts(self, rows: Sequence[Sequence[Any]]) -> list[Delivery]:
        """Return the deliveries of rows that have all fields of a `Delivery` except the attempts, in its order."""
        if not rows:
            return []
        webhooks, positions = zip(*sorted({(row[0], row[1]) for row in rows}), strict=True)
        attempts: defaultdict[tuple[UUID, int, str], list[Attempt]] = defaultdict(list)
        for webhook, position, ordering_key, *columns in await self._database.rows(
            _ATTEMPTS, (uuids(webhooks), bigints(positions))
        ):
            attempts[webhook, position, ordering_key].append(Attempt(*columns))
        return [
            Delivery(webhook, position, ordering_key, DeliveryState(state), *(*rest, attempts[webhook, position, ordering_key]))
            for webhook, position, ordering_key, state, *rest in rows
        ]


async def latest_sealed_url(database: Pool, callback: UUID) -> tuple[UUID, str] | None:
    """Return the reference of the whole address of the latest delivery to a callback, and the stream of its job; None if the
    address is the one that is shown."""
    row = await database.row(_LATEST_SEALED_URL, (callback,))
    return None if row is None or row[0] is None else (row[0], row[1])


async def callback_backlog(database: Pool) -> int:
    """Return the number of pending callbacks, up to `MOST_COUNTED`."""
    row = await database.row(_CALLBACK_BACKLOG)
    assert row is not None
    return int(row[0])
