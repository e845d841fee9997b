"""Retention removes what is too old and keeps the rest; one of several processes does it at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import psycopg
import pytest

from api.wiring.catalogue import DAY_TABLES, REMOVALS
from api.wiring.core import Core
from api.wiring.settings import Settings
from projections.job.log_lines import JobLogLine, write
from projections.log_store.log_store import Level, Logbook
from projections.webhook.queries import DeliveryFilter, DeliveryQueries
from projections.webhook.redelivery import Redelivery
from projections.webhook.store import DELIVERED, PENDING
from tests.projections.log.helpers import rows, until
from tests.projections.webhook.finishing import finishing
from tests.support.clock import HandClock
from workers import retention as module
from workers.retention import Retention

HOOK = UUID(int=7)


def retention(inner: Core, clock: HandClock, **environment: str) -> Retention:
    settings = Settings.from_env({f"MEDIALEDGER_{name.upper()}": value for name, value in environment.items()})
    return Retention(inner.database, tables=DAY_TABLES, removals=REMOVALS, days=partial(getattr, settings), clock=clock)


@pytest.fixture
def clock() -> HandClock:
    return HandClock(datetime.now(UTC))


async def test_lines_of_jobs_and_entries_of_the_log_store_are_kept_for_the_days_of_their_settings(
    inner: Core, database_url: str, clock: HandClock
) -> None:
    logbook, now = Logbook(inner.database, clock, machine="here"), clock.now
    for days in (12, 10, 6, 4, 0):
        clock.now = now - timedelta(days=days)
        await write(inner.database, lines=[JobLogLine(1, 1, 1, str(days), clock.now)], progress=())
        await logbook.note(Level.INFO, str(days), subject="a")
    await retention(inner, clock, job_line_days="11", log_days="5").tidy()
    assert rows(database_url, "SELECT message FROM job_log_lines ORDER BY id") == [("10",), ("6",), ("4",), ("0",)]
    assert rows(database_url, "SELECT message FROM logbook ORDER BY id") == [("4",), ("0",)]


async def test_finished_deliveries_are_kept_for_their_days_and_attempts_for_a_week_more(
    inner: Core, database_url: str, clock: HandClock
) -> None:
    """A pending delivery is kept however old it is, and a resent one is pending."""
    for position, days in enumerate((40, 40, 11, 9, 0), start=1):
        at = clock.now - timedelta(days=days)
        await inner.database.execute(
            "INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, due_at, created_at)"
            " VALUES (%s, %s, 'a', 0, 0, '{}', %s, %s)",
            (HOOK, position, at, at),
        )
        await inner.database.execute(
            "INSERT INTO delivery_attempts (webhook, position, ordering_key, started_at, seconds) VALUES (%s, %s, 'a', %s, 0)",
            (HOOK, position, at),
        )
        if position > 1:
            await inner.database.execute(finishing(f"position = {position}", finished_at="created_at"))
    actual = DeliveryQueries(inner.database)
    again = (await actual.page(HOOK, DeliveryFilter())).results[-2]
    assert await Redelivery(inner.database).resend(again.place)
    await retention(inner, clock, delivery_days="10").tidy()
    retained = [
        (result.position, result.state, len(result.attempts)) for result in (await actual.page(HOOK, DeliveryFilter())).results
    ]
    assert retained == [(5, DELIVERED, 1), (4, DELIVERED, 1), (2, PENDING, 0), (1, PENDING, 0)]
    assert rows(database_url, "SELECT position FROM delivery_attempts ORDER BY position") == [(3,), (4,), (5,)]


async def test_every_table_of_days_has_partitions_after_the_first_turn(inner: Core, database_url: str, clock: HandClock) -> None:
    working = retention(inner, clock)
    clock.forward(days=1000)  # which no other test reaches
    await working.start()
    question = "SELECT count(*) FROM pg_inherits WHERE inhparent = %s::regclass"
    before = {table.name: 0 for table in DAY_TABLES}
    await until(lambda: all(rows(database_url, question, name)[0][0] > 1 for name in before))
    await working.stop()


async def test_while_one_process_does_it_the_others_do_not(inner: Core, database_url: str, clock: HandClock) -> None:
    await write(inner.database, lines=[JobLogLine(1, 1, 1, "old", clock.now - timedelta(days=90))], progress=())
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (module._LOCK,))
        assert await retention(inner, clock).tidy()
        assert rows(database_url, "SELECT message FROM job_log_lines") == [("old",)]
    await retention(inner, clock).tidy()
    assert rows(database_url, "SELECT message FROM job_log_lines") == []
