"""The table of deliveries, as the sender reads and writes it. Issue 5, "Delivery"; architecture.md, §3.

Every outcome is written under the epoch of its shard, in one statement: what a former owner brings is not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.arrays import bigints, instants, texts, uuids
from projections.kernel.database import Database, unavailable

CONSUMER: Final = "deliveries"

PENDING, DELIVERED, FAILED = 0, 1, 2
_CHUNK: Final = 5000


class PendingDelivery(NamedTuple):
    """`wait`: seconds until it is due; while there are some, the payload is left in the table."""

    webhook: UUID
    position: int
    lane: str
    payload: str | None
    attempts: int
    wait: float

    @property
    def key(self) -> Key:
        return self[:3]


Key = tuple[UUID, int, str]


@dataclass(frozen=True, slots=True)
class PageAsked:
    """Rows of a webhook, behind a place."""

    webhook: UUID
    position: int
    lane: str
    limit: int


@dataclass(frozen=True, slots=True)
class LaneAsked:
    """Rows of a webhook's lane, behind a position and up to another."""

    webhook: UUID
    lane: str
    after: int
    through: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a try. `wait` is until the next one while it stays pending."""

    key: Key
    shard: int
    epoch: int
    state: int
    attempts: int
    wait: float
    started_at: datetime
    seconds: float
    status: int | None
    error: str | None
    address: str
    response: str


@dataclass(frozen=True, slots=True)
class Standing:
    """How a webhook is: `version` None when there is none."""

    version: int | None
    failing_since: datetime | None


@dataclass(frozen=True, slots=True)
class Turn:
    """An endpoint began to fail, or (None) to succeed again."""

    webhook: UUID
    shard: int
    epoch: int
    failing_since: datetime | None


_COLUMNS = """
d.webhook, d.position, d.lane, CASE WHEN d.due_at <= statement_timestamp() THEN d.payload END, d.attempts,
CASE WHEN d.due_at <= statement_timestamp() THEN 0 ELSE extract(epoch FROM d.due_at - statement_timestamp()) END::float8
"""
_LAST = "SELECT position, webhook, lane FROM deliveries WHERE state = 0 ORDER BY position DESC, webhook DESC, lane DESC LIMIT 1"
_WEBHOOKS = """
WITH RECURSIVE w (webhook) AS (
    (SELECT webhook FROM deliveries WHERE state = 0 ORDER BY webhook LIMIT 1)
    UNION ALL
    SELECT (SELECT d.webhook FROM deliveries d WHERE d.state = 0 AND d.webhook > w.webhook ORDER BY d.webhook LIMIT 1)
    FROM w WHERE w.webhook IS NOT NULL
)
SELECT webhook FROM w WHERE webhook IS NOT NULL
"""
_FRESH = f"""
SELECT {_COLUMNS} FROM deliveries d
WHERE d.state = 0 AND (d.position, d.webhook, d.lane) > (%s, %s, %s) AND d.shard = ANY(%s::bigint[])
ORDER BY d.position, d.webhook, d.lane LIMIT %s
"""
_PAGES = f"""
SELECT d.* FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::bigint[]) AS asked (webhook, position, lane, most), LATERAL (
    SELECT {_COLUMNS} FROM deliveries d
    WHERE d.state = 0 AND d.webhook = asked.webhook AND (d.position, d.lane) > (asked.position, asked.lane)
    ORDER BY d.position, d.lane LIMIT asked.most
) d
"""
_LANES = f"""
SELECT d.* FROM unnest(%s::uuid[], %s::text[], %s::bigint[], %s::bigint[]) AS asked (webhook, lane, after, through), LATERAL (
    SELECT {_COLUMNS} FROM deliveries d
    WHERE d.state = 0 AND d.webhook = asked.webhook AND d.lane = asked.lane
      AND d.position > asked.after AND d.position <= asked.through
    ORDER BY d.position LIMIT %s
) d
"""
_STANDING = """
SELECT asked.webhook, CASE WHEN NOT r.withdrawn THEN r.version END, e.failing_since
FROM unnest(%s::uuid[]) AS asked (webhook)
LEFT JOIN record_view r ON r.kind = 'webhook' AND r.id = asked.webhook::text
LEFT JOIN delivery_endpoints e ON e.webhook = asked.webhook
"""
# The lock keeps a shard from changing hands between this check and the commit.
_HELD = """
held AS MATERIALIZED (
    SELECT s.shard, s.epoch FROM consumer_shards s JOIN unnest(%(shards)s::bigint[], %(epochs)s::bigint[]) AS h (shard, epoch)
    ON s.shard = h.shard AND s.epoch = h.epoch
    WHERE s.consumer = %(consumer)s AND s.owner = %(member)s FOR SHARE OF s
)"""
_RECORD = f"""
WITH {_HELD}, o AS MATERIALIZED (
    SELECT o.* FROM unnest(
        %(of)s::bigint[], %(of_epoch)s::bigint[], %(webhook)s::uuid[], %(position)s::bigint[], %(lane)s::text[],
        %(state)s::bigint[], %(attempts)s::bigint[], %(wait)s::bigint[], %(started)s::timestamptz[], %(micros)s::bigint[],
        %(status)s::bigint[], %(error)s::text[], %(address)s::text[], %(response)s::text[]
    ) AS o (shard, epoch, webhook, position, lane, state, attempts, wait, started_at, micros, status, error, address, response)
    JOIN held ON held.shard = o.shard AND held.epoch = o.epoch
), written AS (
    UPDATE deliveries d SET state = o.state, attempts = o.attempts, error = o.error,
        due_at = CASE WHEN o.state = 0 THEN clock_timestamp() + o.wait * interval '1 microsecond' ELSE d.due_at END,
        finished_at = CASE WHEN o.state <> 0 THEN clock_timestamp() END
    FROM o WHERE d.webhook = o.webhook AND d.position = o.position AND d.lane = o.lane AND d.state = 0
), tried AS (
    INSERT INTO delivery_attempts (webhook, position, lane, started_at, seconds, status, error, address, response)
    SELECT webhook, position, lane, started_at, micros / 1e6, status, error, address, response FROM o
), turned AS (
    INSERT INTO delivery_endpoints (webhook, failing_since, succeeded_at)
    SELECT t.webhook, t.since, CASE WHEN t.since IS NULL THEN clock_timestamp() END
    FROM unnest(%(t_shard)s::bigint[], %(t_epoch)s::bigint[], %(t_webhook)s::uuid[], %(t_since)s::timestamptz[])
        AS t (shard, epoch, webhook, since)
    JOIN held ON held.shard = t.shard AND held.epoch = t.epoch
    ON CONFLICT (webhook) DO UPDATE SET failing_since = excluded.failing_since,
        succeeded_at = coalesce(excluded.succeeded_at, delivery_endpoints.succeeded_at)
)
SELECT shard, epoch FROM held
"""
# Enabled again, an endpoint is judged anew.
_FAIL = f"""
WITH {_HELD}, turned AS (
    UPDATE delivery_endpoints SET failing_since = NULL FROM held WHERE webhook = %(webhook)s AND failing_since IS NOT NULL
)
UPDATE deliveries d SET state = 2, error = %(error)s, finished_at = clock_timestamp()
FROM (
    SELECT webhook, position, lane FROM deliveries, held WHERE state = 0 AND webhook = %(webhook)s
    ORDER BY position, lane LIMIT %(chunk)s
) f
WHERE d.webhook = f.webhook AND d.position = f.position AND d.lane = f.lane AND d.state = 0
"""
_PRUNE = """
WITH gone AS (
    DELETE FROM deliveries WHERE ctid = ANY(ARRAY(SELECT ctid FROM deliveries WHERE finished_at < %s AND state <> 0 LIMIT %s))
    AND finished_at < %s AND state <> 0
    RETURNING webhook, position, lane
), tries AS (
    DELETE FROM delivery_attempts a USING gone
    WHERE a.webhook = gone.webhook AND a.position = gone.position AND a.lane = gone.lane
)
SELECT count(*) FROM gone
"""


class DeliveryLedger:
    """What is pending, and what became of it. Questions are for one process at a time: it holds the shards that it asks for."""

    def __init__(self, database: Database, *, member: UUID) -> None:
        self._database = database
        self._member = member

    async def last(self) -> tuple[int, UUID, str]:
        """The place of the last pending row: whatever is made from now on lies behind it."""
        found = await self._database.row(_LAST)
        return (found[0], found[1], found[2]) if found else (0, UUID(int=0), "")

    async def webhooks(self) -> list[UUID]:
        """All that have something pending."""
        return [webhook for (webhook,) in await self._database.rows(_WEBHOOKS)]

    async def fresh(self, after: tuple[int, UUID, str], *, shards: Iterable[int], limit: int) -> list[PendingDelivery]:
        """Rows of any webhook, in order."""
        rows = await self._database.rows(_FRESH, (*after, bigints(list(shards)), limit))
        return list(map(PendingDelivery._make, rows))

    async def pages(self, asked: Sequence[PageAsked]) -> list[PendingDelivery]:
        rows = await self._database.rows(
            _PAGES,
            (
                uuids([one.webhook for one in asked]),
                bigints([one.position for one in asked]),
                texts([one.lane for one in asked]),
                bigints([one.limit for one in asked]),
            ),
        )
        return list(map(PendingDelivery._make, rows))

    async def lanes(self, asked: Sequence[LaneAsked], *, each: int) -> list[PendingDelivery]:
        rows = await self._database.rows(
            _LANES,
            (
                uuids([one.webhook for one in asked]),
                texts([one.lane for one in asked]),
                bigints([one.after for one in asked]),
                bigints([one.through for one in asked]),
                each,
            ),
        )
        return list(map(PendingDelivery._make, rows))

    async def standing(self, webhooks: Sequence[UUID]) -> Mapping[UUID, Standing]:
        rows = await self._database.rows(_STANDING, (uuids(webhooks),))
        return {webhook: Standing(version, since) for webhook, version, since in rows}

    async def record(
        self, connection: AsyncConnection[TupleRow], outcomes: Sequence[Outcome], *, turns: Sequence[Turn]
    ) -> set[tuple[int, int]]:
        """Write what became of tries, no delivery twice; the shards, with their epochs, that it was written for."""
        with unavailable():
            shares = {(one.shard, one.epoch) for one in outcomes} | {(one.shard, one.epoch) for one in turns}
            cursor = await connection.execute(_RECORD, self._fence(shares) | _columns(outcomes) | _turned(turns), binary=True)
            return {(shard, epoch) for shard, epoch in await cursor.fetchall()}

    async def fail(self, webhook: UUID, error: str, *, share: tuple[int, int]) -> None:
        """All that is pending for a webhook."""
        named = self._fence([share]) | {"webhook": webhook, "error": error, "chunk": _CHUNK}
        while await self._database.execute(_FAIL, named) == _CHUNK:
            pass

    async def prune(self, before: datetime) -> int:
        """Delete what was finished before that, with its tries; how many deliveries."""
        gone = 0
        while found := await self._database.row(_PRUNE, (before, _CHUNK, before)):
            gone += found[0]
            if found[0] < _CHUNK:
                break
        return gone

    def _fence(self, shares: Iterable[tuple[int, int]]) -> dict[str, object]:
        shards, epochs = zip(*shares, strict=True)
        return {"shards": bigints(shards), "epochs": bigints(epochs), "consumer": CONSUMER, "member": self._member}


def _columns(outcomes: Sequence[Outcome]) -> dict[str, object]:
    return {
        "of": bigints([one.shard for one in outcomes]),
        "of_epoch": bigints([one.epoch for one in outcomes]),
        "webhook": uuids([one.key[0] for one in outcomes]),
        "position": bigints([one.key[1] for one in outcomes]),
        "lane": texts([one.key[2] for one in outcomes]),
        "state": bigints([one.state for one in outcomes]),
        "attempts": bigints([one.attempts for one in outcomes]),
        "wait": bigints([int(one.wait * 1e6) for one in outcomes]),
        "started": instants([one.started_at for one in outcomes]),
        "micros": bigints([int(one.seconds * 1e6) for one in outcomes]),
        "status": bigints([one.status for one in outcomes]),
        "error": texts([one.error for one in outcomes]),
        "address": texts([one.address for one in outcomes]),
        "response": texts([one.response for one in outcomes]),
    }


def _turned(turns: Sequence[Turn]) -> dict[str, object]:
    return {
        "t_shard": bigints([one.shard for one in turns]),
        "t_epoch": bigints([one.epoch for one in turns]),
        "t_webhook": uuids([one.webhook for one in turns]),
        "t_since": instants([one.failing_since for one in turns]),
    }
