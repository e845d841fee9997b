"""The tables of deliveries: outcomes are written only under the epoch of the owner; a delivery is always one row."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from api.wiring.core import Core
from domain.record.record import RegisterRecord
from domain.webhook.aggregate import Webhook
from projections.consumers.leases import ShardLeases
from projections.webhook.keys import SHARDS, DeliverySource, shard_of
from projections.webhook.redelivery import Redelivery
from projections.webhook.store import (
    BEGINNING,
    CONSUMER,
    DELIVERED,
    FAILED,
    NO_ROWS,
    PENDING,
    AttemptOutcome,
    Cursor,
    DeliveryStore,
    EndpointHealthChange,
    PageRequest,
    Place,
)
from tests.projections.consuming import hold
from tests.projections.rows_read import counting
from tests.projections.webhook.finishing import finishing
from tests.support.feeding import do

MEMBER = UUID(int=77)
HOOK, OTHER, CALLBACK = UUID(int=1), UUID(int=2), UUID(int=24)
THEN = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)


@pytest.fixture
async def store(inner: Core) -> DeliveryStore:
    leases = ShardLeases(inner.database, CONSUMER, shards=SHARDS, member=MEMBER)
    await leases.start()
    await hold(leases)
    return DeliveryStore(inner.database, member=MEMBER)


def put(url: str, *keys: tuple[UUID, int, str], **columns: Any) -> None:
    state = columns.pop("state", PENDING)
    values = {"source": 0, "shard": None, "due_at": THEN - timedelta(days=20_000), **columns}
    with psycopg.connect(url) as connection:
        for webhook, position, ordering_key in keys:
            connection.execute(
                "INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, due_at, created_at)"
                " VALUES (%s, %s, %s, %s, %s, '{}', %s, now())",
                (webhook, position, ordering_key, *{**values, "shard": shard_of(webhook)}.values()),
            )
        if state != PENDING:
            positions = ", ".join(str(position) for _, position, _ in keys)
            connection.execute(finishing(f"position IN ({positions})", state=str(state)).encode())


def rows(url: str, question: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(question.encode()).fetchall()


def outcome(webhook: UUID, position: int, *, epoch: int = 1, state: int = DELIVERED, **more: Any) -> AttemptOutcome:
    fields: dict[str, Any] = {"attempts": 1, "wait": 0.0, "status": 200, "error": None, **more}
    return AttemptOutcome(
        key=(webhook, position, "a"),
        shard=shard_of(webhook),
        epoch=epoch,
        state=state,
        started_at=THEN,
        seconds=0.25,
        address="192.0.2.1",
        response="ok",
        **fields,
    )


async def recorded(
    inner: Core, store: DeliveryStore, *outcomes: AttemptOutcome, health: tuple[EndpointHealthChange, ...] = ()
) -> set[tuple[int, int]]:
    async with inner.database.connection() as connection:
        return await store.record(connection, outcomes, health=health)


async def test_outcomes_and_their_tries_are_written(inner: Core, store: DeliveryStore, database_url: str) -> None:
    put(database_url, (HOOK, 1, "a"), (HOOK, 2, "a"))
    again = outcome(HOOK, 2, state=PENDING, attempts=3, wait=90.0, status=None, error="no answer")
    owned = await recorded(inner, store, outcome(HOOK, 1), again, health=(EndpointHealthChange(HOOK, shard_of(HOOK), 1, THEN),))
    assert owned == {(shard_of(HOOK), 1)}
    assert rows(
        database_url, "SELECT state, attempts, error, finished_at IS NULL, due_at > now() FROM deliveries ORDER BY position"
    ) == [
        (1, 1, None, False, False),
        (0, 3, "no answer", True, True),
    ]
    tries = "SELECT position, started_at, seconds, status, error, address, response FROM delivery_attempts ORDER BY position"
    assert rows(database_url, tries) == [
        (1, THEN, 0.25, 200, None, "192.0.2.1", "ok"),
        (2, THEN, 0.25, None, "no answer", "192.0.2.1", "ok"),
    ]
    assert rows(database_url, "SELECT webhook, failing_since FROM delivery_endpoints") == [(HOOK, THEN)]


async def test_the_circuit_breaker_is_written_with_the_time_of_its_last_change(
    inner: Core, store: DeliveryStore, database_url: str
) -> None:
    put(database_url, *((HOOK, position, "a") for position in range(1, 6)))
    seen = []
    for position, open_for in enumerate((None, 30.0, 0.0, None, None), 1):
        health = EndpointHealthChange(HOOK, shard_of(HOOK), 1, THEN, open_for)
        await recorded(inner, store, outcome(HOOK, position), health=(health,))
        seen += rows(
            database_url,
            "SELECT circuit_since, round(extract(epoch FROM circuit_until - now()) / 30) FROM delivery_endpoints",
        )
    since, until = zip(*seen, strict=True)
    assert until == (None, 1, 0, None, None)
    assert since[0] is None
    assert since[1] == since[2] < since[3] == since[4]


async def test_a_former_owner_writes_nothing(inner: Core, store: DeliveryStore, database_url: str) -> None:
    put(database_url, (HOOK, 1, "a"), (OTHER, 1, "a"))
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE consumer_shards SET epoch = 2, owner = %s WHERE shard = %s", (OTHER, shard_of(HOOK)))
    health = (EndpointHealthChange(HOOK, shard_of(HOOK), 1, THEN),)
    assert await recorded(inner, store, outcome(HOOK, 1), outcome(OTHER, 1), health=health) == {(shard_of(OTHER), 1)}
    await store.fail_pending(HOOK, "the webhook is disabled", shard=(shard_of(HOOK), 1), version=None)
    assert rows(database_url, "SELECT webhook, state FROM deliveries ORDER BY webhook") == [(HOOK, 0), (OTHER, 1)]
    assert rows(database_url, "SELECT webhook FROM delivery_attempts") == [(OTHER,)]
    assert rows(database_url, "SELECT * FROM delivery_endpoints") == []


async def test_a_finished_delivery_is_not_overwritten(inner: Core, store: DeliveryStore, database_url: str) -> None:
    put(database_url, (HOOK, 1, "a"))
    await recorded(inner, store, outcome(HOOK, 1))
    await recorded(inner, store, outcome(HOOK, 1, state=PENDING, attempts=2, status=500, error="no"))
    assert rows(database_url, "SELECT state, attempts, error FROM deliveries") == [(1, 1, None)]
    assert rows(database_url, "SELECT count(*) FROM delivery_attempts") == [(2,)]


async def test_all_pending_deliveries_of_a_webhook_fail(store: DeliveryStore, database_url: str) -> None:
    put(database_url, (HOOK, 1, "a"), (HOOK, 2, "b"), (OTHER, 3, "a"))
    await store.fail_pending(HOOK, "the webhook was deleted", shard=(shard_of(HOOK), 1), version=None)
    assert rows(database_url, "SELECT position, state, error FROM deliveries ORDER BY position") == [
        (1, 2, "the webhook was deleted"),
        (2, 2, "the webhook was deleted"),
        (3, 0, None),
    ]


async def test_deliveries_fail_only_while_the_webhook_has_the_version_that_was_seen(
    inner: Core, store: DeliveryStore, database_url: str
) -> None:
    """The webhook may have been enabled again in the meantime."""
    await do(inner, RegisterRecord(HOOK, Webhook, {"webhook_url": "https://hooks.test/a", "disabled_at": THEN}))
    put(database_url, (HOOK, 1, "a"))
    seen = await store.webhook_status(HOOK)
    assert (seen.version, seen.enabled) == (1, False)
    await do(inner, Webhook.amend.on(HOOK, {"disabled_at": None}))
    assert (await store.webhook_status(HOOK)).enabled
    await store.fail_pending(HOOK, "the webhook is disabled", shard=(shard_of(HOOK), 1), version=seen.version)
    assert rows(database_url, "SELECT state FROM deliveries") == [(0,)]


async def test_the_delivery_for_a_probe_is_due_and_the_first_of_its_ordering_key(store: DeliveryStore, database_url: str) -> None:
    later = THEN + timedelta(days=20_000)
    put(database_url, (HOOK, 1, "a"), (HOOK, 2, "b"), due_at=later)
    put(database_url, (HOOK, 3, "a"))
    row = await store.probe(HOOK)
    assert row is not None
    assert (row.key, row.payload) == ((HOOK, 1, "a"), None)
    assert row.wait > 86400
    assert await store.probe(OTHER) is None
    put(database_url, (HOOK, 5, "c"), (HOOK, 6, "c"), (OTHER, 4, "a"))
    rows = await asyncio.gather(store.probe(HOOK), store.probe(OTHER))
    assert [row and (row.key, row.wait) for row in rows] == [((HOOK, 5, "c"), 0), ((OTHER, 4, "a"), 0)]


async def test_pending_rows_are_read_in_order_without_payload_before_they_are_due(store: DeliveryStore, database_url: str) -> None:
    put(database_url, (HOOK, 1, "a"), (OTHER, 1, "a"), (HOOK, 2, "a"), (HOOK, 2, "b"))
    put(database_url, (HOOK, 3, "a"), due_at=THEN + timedelta(days=20_000))
    put(database_url, (HOOK, 4, "a"), state=1)
    assert await store.webhooks() == [HOOK, OTHER]
    other, page = await asyncio.gather(store.page(PageRequest(OTHER, 0, "", 5)), store.page(PageRequest(HOOK, 2, "a", 2)))
    assert ([row.key for row in other.rows], other.more) == ([(OTHER, 1, "a")], False)
    assert ([row.key for row in page.rows], page.more) == ([(HOOK, 2, "b"), (HOOK, 3, "a")], True)
    assert (page.rows[0].payload, page.rows[0].wait) == ("{}", 0)
    assert page.rows[1].payload is None
    assert page.rows[1].wait > 86400
    lane, others = await asyncio.gather(store.lane(HOOK, "a"), store.lane(HOOK, "b"))
    assert [row.position for row in lane.rows] == [1, 2, 3]
    assert ([row.position for row in others.rows], others.more) == ([2], False)


async def test_a_lane_is_read_in_parts(store: DeliveryStore, database_url: str) -> None:
    put(database_url, *((HOOK, position, "a") for position in range(1, 20)))
    lane = await store.lane(HOOK, "a")
    assert lane.more
    assert [row.position for row in lane.rows] == list(range(1, len(lane.rows) + 1))
    assert await store.lane(HOOK, "b") == NO_ROWS


async def test_many_pages_of_one_moment_are_short(store: DeliveryStore, database_url: str) -> None:
    put(database_url, *((HOOK, position, "a") for position in range(1, 61)))
    requests = [PageRequest(UUID(int=number), 0, "", 1000) for number in range(1000, 1100)]
    page, *empty = await asyncio.gather(*map(store.page, [PageRequest(HOOK, 0, "", 1000), *requests]))
    assert (len(page.rows), page.more) == (50, True)
    assert {(len(other.rows), other.more) for other in empty} == {(0, False)}


async def test_new_rows_are_read_after_a_cursor_for_each_source_and_shard(store: DeliveryStore, database_url: str) -> None:
    put(database_url, (HOOK, 1, "a"), (OTHER, 1, "a"), (HOOK, 2, "a"), (HOOK, 2, "b"), (HOOK, 3, "a"))
    put(database_url, (CALLBACK, 1, "job:1"), source=DeliverySource.CALLBACKS)
    put(database_url, (HOOK, 4, "a"), state=1)
    first, other = (DeliverySource.NOTIFICATIONS, shard_of(HOOK)), (DeliverySource.NOTIFICATIONS, shard_of(OTHER))
    callbacks, empty = (DeliverySource.CALLBACKS, shard_of(CALLBACK)), (DeliverySource.CALLBACKS, shard_of(OTHER))
    cursors = [first, other, callbacks, empty]
    assert await store.last_places(cursors) == {
        first: (3, HOOK, "a"),
        other: (1, OTHER, "a"),
        callbacks: (1, CALLBACK, "job:1"),
        empty: BEGINNING,
    }
    after: dict[Cursor, Place] = {first: (1, HOOK, "a"), other: BEGINNING, callbacks: (1, CALLBACK, "job:1"), empty: BEGINNING}
    assert await store.read_new(after, limit=2) == {first: [(2, HOOK, "a"), (2, HOOK, "b")], other: [(1, OTHER, "a")]}


async def test_looking_for_new_rows_reads_nothing_of_other_shards(inner: Core, database_url: str) -> None:
    """A dead receiver has 5,000 pending deliveries, and this member has other shards."""
    await inner.database.execute(
        "INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, due_at, created_at)"
        " SELECT %s, n, n::text, 0, %s, '{}', now(), now() FROM generate_series(1, 5000) n",
        (HOOK, shard_of(HOOK)),
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("ANALYZE pending_deliveries")
    others = [shard for shard in range(SHARDS) if shard != shard_of(HOOK)]
    after: dict[Cursor, Place] = {(source, shard): BEGINNING for shard in others for source in DeliverySource}
    async with counting(database_url) as database:
        store = DeliveryStore(database, member=MEMBER)
        assert await store.read_new(after, limit=100) == {}
        assert await database.rows_read("pending_deliveries") == (0, 0)
        await store.page(PageRequest(HOOK, 0, "", 100))
        assert await database.rows_read("pending_deliveries") == (0, 100), "its own are counted"


async def test_a_finished_delivery_is_one_row_whoever_else_wants_it(inner: Core, store: DeliveryStore, database_url: str) -> None:
    """Outcomes, failures and resends of the same deliveries at the same time."""
    keys = [(HOOK, number, "a") for number in range(1, 41)]
    put(database_url, *keys)
    redelivery, owned = Redelivery(inner.database), (shard_of(HOOK), 1)
    for state in (DELIVERED, FAILED) * 3:
        await asyncio.gather(
            *(recorded(inner, store, *(outcome(HOOK, number, state=state) for _, number, _ in keys)) for _ in range(3)),
            store.fail_pending(HOOK, "the webhook was deleted", shard=owned, version=None),
            *(redelivery.resend_failed_since(HOOK, THEN - timedelta(days=20_000)) for _ in range(3)),
        )
        stored_rows = rows(database_url, "SELECT webhook, position, ordering_key FROM deliveries ORDER BY position")
        assert stored_rows == keys


async def test_a_delivery_is_finished_and_resent_in_one_statement_or_not_at_all(
    inner: Core, store: DeliveryStore, database_url: str
) -> None:
    """A transaction that is broken off in the middle leaves the row where it was."""
    put(database_url, (HOOK, 1, "a"))
    async with inner.database.connection() as connection, connection.transaction(force_rollback=True):
        await store.record(connection, [outcome(HOOK, 1)], health=())
    assert rows(database_url, "SELECT state, attempts FROM deliveries") == [(PENDING, 0)]
    assert rows(database_url, "SELECT FROM delivery_attempts") == []


async def test_a_delivery_is_never_finished_before_it_was_created(inner: Core, store: DeliveryStore, database_url: str) -> None:
    """The clock of the log may be ahead of the database's."""
    put(database_url, (HOOK, 1, "a"), (HOOK, 2, "a"))
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE pending_deliveries SET created_at = %s", (THEN + timedelta(days=9000),))
    await recorded(inner, store, outcome(HOOK, 1))
    await store.fail_pending(HOOK, "the webhook was deleted", shard=(shard_of(HOOK), 1), version=None)
    assert rows(database_url, "SELECT state, finished_at = created_at FROM deliveries ORDER BY position") == [(1, True), (2, True)]


async def test_more_than_one_statement_may_change_is_recovered_as_a_whole(inner: Core, database_url: str) -> None:
    """A single statement for all of them would take longer than a query may."""
    put(database_url, *((HOOK, number, "a") for number in range(1, 20_002)), state=2)
    assert await Redelivery(inner.database).resend_failed_since(HOOK, THEN - timedelta(days=20_000)) == 20_001
    assert rows(database_url, "SELECT count(*) FROM deliveries WHERE state = 0") == [(20_001,)]
