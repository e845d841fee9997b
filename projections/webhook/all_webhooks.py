"""Deliveries of all webhooks in one list, newest first; see docs/reference/api/webhooks.md#deliveries-of-all-webhooks.

Each part is read by an index in the order of the list: pending deliveries by the index of each shard, finished ones by that of each
day.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from domain.job.aggregate import Job
from domain.provision.aggregate import ProvisionInfo
from domain.webhook.callback import Callback
from projections.kernel.database.arrays import bigints
from projections.kernel.database.database import Database
from projections.kernel.database.page import within_bytes
from projections.kernel.sql.where import Part, where
from projections.log.bisection import position_at
from projections.webhook.keys import ENDPOINTS, LOG_SEALED, SHARDS, DeliverySource, delivery_id, position_of
from projections.webhook.queries import Delivery, DeliveryPlace, DeliveryQueries, DeliveryState, epoch_of

_ORDER: Final = "position DESC, webhook DESC, ordering_key DESC"
_ROW: Final = "webhook, position, ordering_key, state, {epoch}, payload, created_at, due_at, finished_at, error"
_KEYED: Final = "d.webhook, d.position, d.ordering_key, d.payload, d.created_at, d.error"
# A deleted endpoint has no deliveries, and those of a callback are shown only to the client of its jobs.
_SHOWN: Final = f"""
EXISTS (SELECT FROM record_view r WHERE r.kind IN {ENDPOINTS} AND r.id = d.webhook::text AND NOT r.deleted
    AND (r.kind <> '{Callback.KIND}' OR %(client)s::text IS NULL OR r.parent = %(client)s))"""
_ANY_SHARD: Final = "d.source = ANY(%(sources)s::smallint[]) AND d.shard = ANY(%(shards)s::smallint[])"
"""A condition for the planner: these columns precede the position in the index of pending deliveries."""
_AT: Final = f"""
SELECT d.webhook, d.position, d.ordering_key, {epoch_of("d")} FROM deliveries d
WHERE d.position = ANY(%(positions)s::bigint[]) AND {_ANY_SHARD} AND {_SHOWN}
"""
_SHARDS_OF_SOURCES: Final = {"sources": [int(source) for source in DeliverySource], "shards": list(range(SHARDS))}


class DeliveryKind(StrEnum):
    """The subject of a delivery."""

    EVENT = "event"
    JOB = "job"
    INFRASTRUCTURE = "infrastructure"
    LOG = "log"


_OLDER: Final = """
(d.position, d.webhook, d.ordering_key) < (%(position_before)s::bigint, %(webhook_before)s::uuid, %(key_before)s COLLATE "C")"""
_OF_KIND: Final = {
    DeliveryKind.EVENT: f"d.source = {DeliverySource.NOTIFICATIONS} AND d.ordering_key <> '{LOG_SEALED}'",
    DeliveryKind.JOB: f"starts_with(d.ordering_key, '{Job.stream('')}')",
    DeliveryKind.INFRASTRUCTURE: f"starts_with(d.ordering_key, '{ProvisionInfo.stream('')}')",
    DeliveryKind.LOG: f"d.ordering_key = '{LOG_SEALED}'",
}


@dataclass(frozen=True, kw_only=True)
class AllDeliveriesFilter:
    """A filter of deliveries. `client` limits the deliveries of callbacks to those of one client; None shows all. Times are those
    of creation.

    `before` is the id of a delivery, which may have been deleted since; only older ones are read.
    """

    client: str | None
    state: DeliveryState | None = None
    webhook: UUID | None = None
    kind: DeliveryKind | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    before: UUID | None = None
    limit: int = 20


class AllDeliveriesPage(NamedTuple):
    """A page of deliveries. If `more`, the filter matches older ones."""

    results: Sequence[Delivery]
    more: bool


class AllDeliveryQueries:
    """Reads deliveries of any webhook."""

    def __init__(self, database: Database, deliveries: DeliveryQueries) -> None:
        self._database = database
        self._deliveries = deliveries

    async def page(self, filter: AllDeliveriesFilter) -> AllDeliveriesPage:
        """Return up to `limit` deliveries, fewer if their payloads are large."""
        place = None if filter.before is None else await self._place(filter.before, client=filter.client)
        parts = await self._parts(filter, place)
        conditions, parameters = where(parts)
        parameters |= {"client": filter.client, "limit": filter.limit + 1, "from": filter.created_from, **_SHARDS_OF_SOURCES}
        if place is not None:
            parameters |= {"position_before": place.position, "key_before": place.ordering_key}
        query = _question(filter, " AND ".join([*conditions, _SHOWN]))
        page = f"SELECT * FROM ({query}) AS d ORDER BY {_ORDER} LIMIT %(limit)s"
        limited_page = within_bytes(page, order=_ORDER, content="payload")
        question = f"SELECT {_ROW.format(epoch=epoch_of('page'))}, counted FROM ({limited_page}) AS page ORDER BY {_ORDER}"
        rows = await self._database.lists.rows(question, parameters)
        shown = [row[:-1] for row in rows[: filter.limit]]
        return AllDeliveriesPage(await self._deliveries.with_attempts(shown), bool(rows) and rows[0][-1] > len(shown))

    async def places(self, deliveries: Collection[UUID], *, client: str | None) -> dict[UUID, DeliveryPlace]:
        """Return, by id, the places of those of these deliveries that exist and that the client may see."""
        positions = bigints(sorted({position_of(delivery) for delivery in deliveries}))
        parameters = {"positions": positions, "client": client, **_SHARDS_OF_SOURCES}
        existing = {}
        for webhook, position, ordering_key, epoch in await self._database.lists.rows(_AT, parameters):
            existing[delivery_id(webhook, position, ordering_key=ordering_key, epoch=epoch)] = DeliveryPlace(
                webhook, position, ordering_key
            )
        return {delivery: existing[delivery] for delivery in deliveries if delivery in existing}

    async def _parts(self, filter: AllDeliveriesFilter, place: DeliveryPlace | None) -> list[Part]:
        # A delivery is created after the write that it is about.
        last = None if filter.created_to is None else await position_at(self._database.lists, filter.created_to)
        return [
            ("webhook", filter.webhook, "d.webhook = %(webhook)s"),
            ("kind", filter.kind, _OF_KIND.get(filter.kind, "") if filter.kind else ""),
            ("from", filter.created_from, "d.created_at >= %(from)s"),
            ("last", last, "d.position <= %(last)s"),
            ("to", filter.created_to, "d.created_at <= %(to)s"),
            ("webhook_before", place and place.webhook, _OLDER),
        ]

    async def _place(self, delivery: UUID, *, client: str | None) -> DeliveryPlace:
        """Return the place of a delivery. If it is gone, the list continues with the previous writes."""
        places = await self.places([delivery], client=client)
        return places.get(delivery, DeliveryPlace(UUID(int=0), position_of(delivery), ""))


def _question(filter: AllDeliveriesFilter, conditions: str) -> str:
    """Return the query for the first deliveries of each index, with the columns of a row."""
    order = ", ".join(f"d.{part}" for part in _ORDER.split(", "))
    state, parts = filter.state, []
    if state in (None, DeliveryState.PENDING):
        parts.append(f"""
SELECT first.* FROM unnest(%(sources)s::smallint[]) AS s (source) CROSS JOIN unnest(%(shards)s::smallint[]) AS h (shard)
CROSS JOIN LATERAL (
    SELECT {_KEYED}, {DeliveryState.PENDING}::smallint AS state, d.due_at, NULL::timestamptz AS finished_at
    FROM pending_deliveries d
    WHERE d.source = s.source AND d.shard = h.shard AND {conditions} ORDER BY {order} LIMIT %(limit)s
) AS first""")
    if state is not DeliveryState.PENDING:
        days = "true" if filter.created_from is None else "d.finished_at >= %(from)s"  # excludes older days
        of_state = (
            "true" if state is None else f"d.state = {state}"
        )  # not a parameter, because one index covers only failed deliveries
        parts.append(f"""
(SELECT {_KEYED}, d.state, d.finished_at AS due_at, d.finished_at FROM finished_deliveries d
WHERE {of_state} AND {days} AND {conditions} ORDER BY {order} LIMIT %(limit)s)""")
    return " UNION ALL ".join(parts)
