"""Pending deliveries, as senders read and write them; see docs/explanation/delivery.md#how-a-delivery-is-tried.

Outcomes are written under the epoch of the shard, in one statement, so the outcomes of a former owner of the shard are not written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.job.aggregate import Job
from domain.job.values import Severity
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.arrays import PackedArray, bigints, instants, texts, uuids
from projections.kernel.database.database import Database, unavailable
from projections.kernel.sql.distinct import distinct
from projections.kernel.sql.line_order import numbered_lines
from projections.webhook.keys import ENDPOINTS

CONSUMER: Final = "deliveries"
CALLBACK_PROGRAM: Final = "callback"

DISABLED: Final = "the webhook is disabled"
DELETED: Final = "the webhook was deleted"
"""The errors of deliveries that fail because nothing is sent to their webhook."""

PENDING, DELIVERED, FAILED = 0, 1, 2
_CHUNK: Final = 5000
_PAGES: Final = 2000
"""The number of rows of all pages of one query."""
_LEAST_PAGE: Final = 50
_OF_A_LANE: Final = 8


class PendingDelivery(NamedTuple):
    """A pending delivery. `wait` is the number of seconds until the next attempt; until then the payload is not read.

    `sealed_url` is the reference of the whole address in the vault; None if the endpoint has the address. `trace_parent` is that of
    the event, if it has one.
    """

    webhook: UUID
    position: int
    ordering_key: str
    payload: str | None
    attempts: int
    wait: float
    sealed_url: UUID | None = None
    trace_parent: str | None = None

    @property
    def key(self) -> Key:
        return self[:3]


Key = tuple[UUID, int, str]


Cursor = tuple[int, int]
"""A source and a shard."""
Place = tuple[int, UUID, str]
"""The place of a delivery among those of a source and a shard: position, webhook, ordering key."""
BEGINNING: Final[Place] = (0, UUID(int=0), "")


class PageRequest(NamedTuple):
    """A request for pending deliveries of a webhook after a place."""

    webhook: UUID
    position: int
    ordering_key: str
    limit: int


class Page(NamedTuple):
    """Pending deliveries, in order. `more` is True if there may be others after them."""

    rows: Sequence[PendingDelivery]
    more: bool


NO_ROWS: Final = Page((), more=False)


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The changes of the table by an attempt. `wait` is the number of seconds until the next attempt, while the delivery stays
    pending."""

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


class EndpointHealthChange(NamedTuple):
    """A change of an endpoint's health, which is recorded with an outcome.

    All attempts have failed since `failing_since`; None if the last one succeeded. `open_for` is the number of seconds until the
    circuit breaker permits an attempt; None if it is closed.
    """

    webhook: UUID
    shard: int
    epoch: int
    failing_since: datetime | None
    open_for: float | None = None


class WebhookStatus(NamedTuple):
    """The present state of a webhook. `version` is None if it does not exist or is deleted."""

    version: int | None
    enabled: bool
    failing_since: datetime | None


ABSENT: Final = WebhookStatus(None, enabled=False, failing_since=None)

_COLUMNS = """
d.webhook, d.position, d.ordering_key, CASE WHEN d.due_at <= statement_timestamp() THEN d.payload END, d.attempts,
CASE WHEN d.due_at <= statement_timestamp() THEN 0 ELSE extract(epoch FROM d.due_at - statement_timestamp()) END::float8,
d.sealed_url,
CASE WHEN d.due_at <= statement_timestamp() THEN
    (SELECT e.metadata->>'trace_parent' FROM events e WHERE e.position = d.position)
END
"""
_LAST_PLACES = """
SELECT asked.source, asked.shard, d.position, d.webhook, d.ordering_key
FROM unnest(%s::bigint[], %s::bigint[]) AS asked (source, shard), LATERAL (
    SELECT position, webhook, ordering_key FROM pending_deliveries d
    WHERE d.source = asked.source AND d.shard = asked.shard
    ORDER BY d.position DESC, d.webhook DESC, d.ordering_key DESC LIMIT 1
) d
"""
_WEBHOOKS = distinct("webhook", table="pending_deliveries")
_NEW = """
SELECT asked.source, asked.shard, d.position, d.webhook, d.ordering_key
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::uuid[], %s::text[])
    AS asked (source, shard, position, webhook, ordering_key), LATERAL (
    SELECT d.position, d.webhook, d.ordering_key FROM pending_deliveries d
    WHERE d.source = asked.source AND d.shard = asked.shard
      AND (d.position, d.webhook, d.ordering_key) > (asked.position, asked.webhook, asked.ordering_key COLLATE "C")
    ORDER BY d.position, d.webhook, d.ordering_key LIMIT %s
) d
"""
_OF_WEBHOOKS = f"""
SELECT asked.number, d.*
FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::bigint[]) WITH ORDINALITY
    AS asked (webhook, position, ordering_key, most, number), LATERAL (
    SELECT {_COLUMNS} FROM pending_deliveries d
    WHERE d.webhook = asked.webhook AND (d.position, d.ordering_key) > (asked.position, asked.ordering_key)
    ORDER BY d.position, d.ordering_key LIMIT asked.most
) d
"""
_OF_LANES = f"""
SELECT d.*
FROM unnest(%s::uuid[], %s::text[]) AS asked (webhook, ordering_key), LATERAL (
    SELECT {_COLUMNS} FROM pending_deliveries d
    WHERE d.webhook = asked.webhook AND d.ordering_key = asked.ordering_key ORDER BY d.position LIMIT {_OF_A_LANE}
) d
"""
_PROBES = f"""
SELECT probe.*
FROM unnest(%s::uuid[]) AS asked (webhook), LATERAL (
    WITH RECURSIVE heads AS (
        (SELECT d.ordering_key, d.position, d.due_at FROM pending_deliveries d
         WHERE d.webhook = asked.webhook ORDER BY d.ordering_key, d.position LIMIT 1)
        UNION ALL
        SELECT d.* FROM heads, LATERAL (
            SELECT d.ordering_key, d.position, d.due_at FROM pending_deliveries d
            WHERE d.webhook = asked.webhook AND d.ordering_key > heads.ordering_key
            ORDER BY d.ordering_key, d.position LIMIT 1
        ) d
    ), next AS (
        SELECT ordering_key, position FROM heads ORDER BY greatest(due_at, statement_timestamp()), position LIMIT 1
    )
    SELECT {_COLUMNS} FROM next JOIN pending_deliveries d
    ON d.webhook = asked.webhook AND d.position = next.position AND d.ordering_key = next.ordering_key
) probe
"""
_STATUSES = f"""
SELECT asked.webhook, CASE WHEN NOT r.deleted THEN r.version END,
    coalesce(NOT r.deleted AND r.document::json->>'disabled_at' IS NULL, false), e.failing_since
FROM unnest(%s::uuid[]) AS asked (webhook)
LEFT JOIN record_view r ON r.kind IN {ENDPOINTS} AND r.id = asked.webhook::text
LEFT JOIN delivery_endpoints e ON e.webhook = asked.webhook
"""
# The lock prevents a change of the owner of a shard between this check and the commit.
_HELD = """
held AS MATERIALIZED (
    SELECT s.shard, s.epoch FROM consumer_shards s JOIN unnest(%(shards)s::bigint[], %(epochs)s::bigint[]) AS h (shard, epoch)
    ON s.shard = h.shard AND s.epoch = h.epoch
    WHERE s.consumer = %(consumer)s AND s.owner = %(member)s FOR SHARE OF s
)"""
_OF_JOB = f"starts_with(o.ordering_key, '{Job.stream('')}')"
_JOB = f"substr(o.ordering_key, {len(Job.stream('')) + 1})::bigint"
_FINISHED = "webhook, position, ordering_key, source, shard, payload, sealed_url, state, attempts, created_at, finished_at, error"
_NOW = "greatest(clock_timestamp(), created_at)"
# An attempt to call a callback is also an entry in the job log.
_RECORD = f"""
WITH {_HELD}, o AS MATERIALIZED (
    SELECT o.* FROM unnest(
        %(of)s::bigint[], %(of_epoch)s::bigint[], %(webhook)s::uuid[], %(position)s::bigint[], %(ordering_key)s::text[],
        %(state)s::bigint[], %(attempts)s::bigint[], %(wait)s::bigint[], %(started)s::timestamptz[], %(micros)s::bigint[],
        %(status)s::bigint[], %(error)s::text[], %(address)s::text[], %(response)s::text[]
    ) AS o (
        shard, epoch, webhook, position, ordering_key, state, attempts, wait, started_at, micros, status, error, address, response
    )
    JOIN held ON held.shard = o.shard AND held.epoch = o.epoch
), retried AS (
    UPDATE pending_deliveries d SET attempts = o.attempts, error = o.error,
        due_at = clock_timestamp() + o.wait * interval '1 microsecond'
    FROM o WHERE d.webhook = o.webhook AND d.position = o.position AND d.ordering_key = o.ordering_key AND o.state = {PENDING}
    RETURNING o.webhook, o.position, o.ordering_key, o.state, o.attempts, o.error, d.payload
), taken AS (
    DELETE FROM pending_deliveries d USING o
    WHERE d.webhook = o.webhook AND d.position = o.position AND d.ordering_key = o.ordering_key AND o.state <> {PENDING}
    RETURNING d.webhook, d.position, d.ordering_key, d.source, d.shard, d.payload, d.sealed_url, o.state, o.attempts, d.created_at,
        o.error
), finished AS (
    INSERT INTO finished_deliveries ({_FINISHED})
    SELECT webhook, position, ordering_key, source, shard, payload, sealed_url, state, attempts, created_at, {_NOW}, error
    FROM taken
), written AS (
    SELECT {_JOB} AS job, ARRAY[position, attempts] AS turn, webhook, state, attempts, error, payload::json->>'status' AS status
    FROM (
        SELECT * FROM retried UNION ALL SELECT webhook, position, ordering_key, state, attempts, error, payload FROM taken
    ) AS o WHERE {_OF_JOB}
), {numbered_lines("written")}, logged AS (
    INSERT INTO job_log_lines (id, job, task, program, severity, message, created_at)
    SELECT id, job, 0, '{CALLBACK_PROGRAM}',
        CASE state WHEN {DELIVERED} THEN {Severity.INFO} WHEN {PENDING} THEN {Severity.WARN} ELSE {Severity.ERROR} END,
        format('Webhook %%s, %%s, attempt %%s: ', webhook, status, attempts) || coalesce(error, 'delivered')
            || CASE state WHEN {PENDING} THEN ' It is tried again.' WHEN {FAILED} THEN ' It is given up.' ELSE '' END,
        clock_timestamp()
    FROM numbered
), tried AS (
    INSERT INTO delivery_attempts (webhook, position, ordering_key, started_at, seconds, status, error, address, response)
    SELECT webhook, position, ordering_key, started_at, micros / 1e6, status, error, address, response FROM o
), health AS (
    INSERT INTO delivery_endpoints AS known (webhook, failing_since, succeeded_at, circuit_since, circuit_until)
    SELECT t.webhook, t.since, CASE WHEN t.since IS NULL THEN clock_timestamp() END,
        CASE WHEN t.open_for IS NOT NULL THEN clock_timestamp() END, clock_timestamp() + t.open_for * interval '1 microsecond'
    FROM unnest(
        %(t_shard)s::bigint[], %(t_epoch)s::bigint[], %(t_webhook)s::uuid[], %(t_since)s::timestamptz[], %(t_open_for)s::bigint[]
    ) AS t (shard, epoch, webhook, since, open_for)
    JOIN held ON held.shard = t.shard AND held.epoch = t.epoch
    ON CONFLICT (webhook) DO UPDATE SET failing_since = excluded.failing_since,
        succeeded_at = coalesce(excluded.succeeded_at, known.succeeded_at), circuit_until = excluded.circuit_until,
        circuit_since = CASE WHEN (excluded.circuit_until IS NULL) = (known.circuit_until IS NULL) THEN known.circuit_since
            ELSE clock_timestamp() END
)
SELECT shard, epoch FROM held
"""
# `failing_since` is cleared, so that an endpoint starts healthy when it is enabled again.
# If a table has no statistics, a join with the chosen rows may read all deliveries of the webhook for each chunk. IS TRUE keeps
# the planner from choosing such a join.
_FAIL = f"""
WITH {_HELD}, health AS (
    UPDATE delivery_endpoints SET failing_since = NULL, circuit_since = NULL, circuit_until = NULL
    FROM held WHERE webhook = %(webhook)s AND failing_since IS NOT NULL
), chosen AS MATERIALIZED (
    SELECT position, ordering_key FROM pending_deliveries, held WHERE webhook = %(webhook)s
      AND (SELECT version FROM record_view WHERE kind IN {ENDPOINTS} AND id = %(webhook)s::text AND NOT deleted)
          IS NOT DISTINCT FROM %(version)s::bigint
    ORDER BY position, ordering_key LIMIT %(chunk)s FOR UPDATE OF pending_deliveries
), taken AS (
    DELETE FROM pending_deliveries d
    WHERE d.webhook = %(webhook)s AND d.position = ANY(ARRAY(SELECT position FROM chosen))
      AND ((d.position, d.ordering_key) IN (SELECT position, ordering_key FROM chosen)) IS TRUE
    RETURNING d.*
)
INSERT INTO finished_deliveries ({_FINISHED})
SELECT webhook, position, ordering_key, source, shard, payload, sealed_url, {FAILED}, attempts, created_at, {_NOW}, %(error)s
FROM taken
"""


class DeliveryStore:
    """Pending deliveries and outcomes, for the member that owns the shards of the webhooks.

    Reads of different endpoints at the same moment share a query.
    """

    def __init__(self, database: Database, *, member: UUID) -> None:
        self._database = database
        self._member = member
        self._pages = DataLoader[PageRequest, Page](self._read_pages)
        self._lanes = DataLoader[tuple[UUID, str], Page](self._read_lanes)
        self._probes = DataLoader[UUID, PendingDelivery](self._read_probes)
        self._statuses = DataLoader[UUID, WebhookStatus](self._read_statuses, limit=512)

    async def last_places(self, cursors: Iterable[Cursor]) -> dict[Cursor, Place]:
        """Return the places of the last pending deliveries of sources and shards. New deliveries come after them."""
        places = dict.fromkeys(cursors, BEGINNING)
        rows = await self._database.rows(_LAST_PLACES, (_sources(places), _shards(places)))
        return places | {(source, shard): (position, webhook, key) for source, shard, position, webhook, key in rows}

    async def webhooks(self) -> list[UUID]:
        """Return the webhooks with pending deliveries."""
        return [webhook for (webhook,) in await self._database.rows(_WEBHOOKS)]

    async def read_new(self, after: Mapping[Cursor, Place], *, limit: int) -> dict[Cursor, list[Place]]:
        """Return the places of pending deliveries of sources and shards after a place of each, in order, up to `limit` of each.

        Without any this costs one look-up in an index, whatever other shards hold.
        """
        positions, webhooks, keys = zip(*after.values(), strict=True)
        columns = (_sources(after), _shards(after), bigints(positions), uuids(webhooks), texts(keys))
        places: defaultdict[Cursor, list[Place]] = defaultdict(list)
        for source, shard, position, webhook, key in await self._database.rows(_NEW, (*columns, limit)):
            places[source, shard].append((position, webhook, key))
        return places

    async def page(self, request: PageRequest) -> Page:
        """Return a page of a webhook. It has fewer rows than the limit if many webhooks are read at the same moment."""
        return await self._pages(request) or NO_ROWS

    async def _read_pages(self, requests: Sequence[PageRequest]) -> Mapping[PageRequest, Page]:
        most = max(_LEAST_PAGE, _PAGES // len(requests))
        limits = [min(request.limit, most) for request in requests]
        rows = await self._database.rows(
            _OF_WEBHOOKS,
            (
                uuids([request.webhook for request in requests]),
                bigints([request.position for request in requests]),
                texts([request.ordering_key for request in requests]),
                bigints(limits),
            ),
        )
        pages: list[list[PendingDelivery]] = [[] for _ in requests]
        for number, *row in rows:
            pages[number - 1].append(PendingDelivery._make(row))
        return {request: Page(page, more=len(page) == limit) for request, page, limit in zip(requests, pages, limits, strict=True)}

    async def lane(self, webhook: UUID, ordering_key: str) -> Page:
        """Return the first deliveries of a webhook with this ordering key."""
        return await self._lanes((webhook, ordering_key)) or NO_ROWS

    async def _read_lanes(self, lanes: Sequence[tuple[UUID, str]]) -> Mapping[tuple[UUID, str], Page]:
        columns = (uuids([webhook for webhook, _ in lanes]), texts([key for _, key in lanes]))
        rows: defaultdict[tuple[UUID, str], list[PendingDelivery]] = defaultdict(list)
        for row in map(PendingDelivery._make, await self._database.rows(_OF_LANES, columns)):
            rows[row.webhook, row.ordering_key].append(row)
        return {lane: Page(first, more=len(first) == _OF_A_LANE) for lane, first in rows.items()}

    async def probe(self, webhook: UUID) -> PendingDelivery | None:
        """Return a delivery that is due and the first of its ordering key; if none is due, the one that will be next. Return None
        if nothing is pending.

        This costs one look-up in an index for each ordering key, however many deliveries wait behind it.
        """
        return await self._probes(webhook)

    async def _read_probes(self, webhooks: Sequence[UUID]) -> Mapping[UUID, PendingDelivery]:
        rows = map(PendingDelivery._make, await self._database.rows(_PROBES, (uuids(webhooks),)))
        return {row.webhook: row for row in rows}

    async def webhook_status(self, webhook: UUID) -> WebhookStatus:
        """Return the status at the moment of the call or later."""
        return await self._statuses(webhook) or ABSENT

    async def _read_statuses(self, webhooks: Sequence[UUID]) -> Mapping[UUID, WebhookStatus]:
        return {
            webhook: WebhookStatus._make(status) for webhook, *status in await self._database.rows(_STATUSES, (uuids(webhooks),))
        }

    async def record(
        self, connection: AsyncConnection[TupleRow], outcomes: Sequence[AttemptOutcome], *, health: Sequence[EndpointHealthChange]
    ) -> set[tuple[int, int]]:
        """Write outcomes, at most one for each delivery. Return the shards, with their epochs, that the member still owns."""
        outcomes = sorted(outcomes, key=lambda outcome: outcome.key)
        with unavailable():
            shards = {(outcome.shard, outcome.epoch) for outcome in outcomes} | {
                (outcome.shard, outcome.epoch) for outcome in health
            }
            cursor = await connection.execute(
                _RECORD, self._fence(shards) | _outcome_columns(outcomes) | _health_columns(health), binary=True
            )
            return {(shard, epoch) for shard, epoch in await cursor.fetchall()}

    async def fail_pending(self, webhook: UUID, error: str, *, shard: tuple[int, int], version: int | None) -> None:
        """Let all pending deliveries of a webhook fail while it has this version; None for a deleted webhook. `shard` is a shard
        and its epoch."""
        parameters = self._fence([shard]) | {"webhook": webhook, "error": error, "chunk": _CHUNK, "version": version}
        while await self._database.execute(_FAIL, parameters) == _CHUNK:
            pass

    def _fence(self, owned: Iterable[tuple[int, int]]) -> dict[str, object]:
        shards, epochs = zip(*owned, strict=True)
        return {"shards": bigints(shards), "epochs": bigints(epochs), "consumer": CONSUMER, "member": self._member}


def _sources(cursors: Iterable[Cursor]) -> PackedArray:
    return bigints([source for source, _ in cursors])


def _shards(cursors: Iterable[Cursor]) -> PackedArray:
    return bigints([shard for _, shard in cursors])


def _outcome_columns(outcomes: Sequence[AttemptOutcome]) -> dict[str, object]:
    return {
        "of": bigints([outcome.shard for outcome in outcomes]),
        "of_epoch": bigints([outcome.epoch for outcome in outcomes]),
        "webhook": uuids([outcome.key[0] for outcome in outcomes]),
        "position": bigints([outcome.key[1] for outcome in outcomes]),
        "ordering_key": texts([outcome.key[2] for outcome in outcomes]),
        "state": bigints([outcome.state for outcome in outcomes]),
        "attempts": bigints([outcome.attempts for outcome in outcomes]),
        "wait": bigints([int(outcome.wait * 1e6) for outcome in outcomes]),
        "started": instants([outcome.started_at for outcome in outcomes]),
        "micros": bigints([int(outcome.seconds * 1e6) for outcome in outcomes]),
        "status": bigints([outcome.status for outcome in outcomes]),
        "error": texts([outcome.error for outcome in outcomes]),
        "address": texts([outcome.address for outcome in outcomes]),
        "response": texts([outcome.response for outcome in outcomes]),
    }


def _health_columns(health: Sequence[EndpointHealthChange]) -> dict[str, object]:
    return {
        "t_shard": bigints([change.shard for change in health]),
        "t_epoch": bigints([change.epoch for change in health]),
        "t_webhook": uuids([change.webhook for change in health]),
        "t_since": instants([change.failing_since for change in health]),
        "t_open_for": bigints([None if change.open_for is None else int(change.open_for * 1e6) for change in health]),
    }
