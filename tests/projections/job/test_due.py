"""Jobs that wait for their time or their semaphore, by the database's clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from api.wiring.core import Core
from domain.job.values import JobState, Semaphore
from projections.job.due_jobs import AT_ONCE, DueJobs
from projections.job.view import DUE_FROM, WAITING
from tests.projections.job.jobs_made import accept, present, update
from tests.support.clock import HandClock

SEMAPHORE = Semaphore(url="https://semaphore.test/")
NOTHING: Mapping[int, int] = {}


@pytest.fixture(autouse=True)
def _at_present(clock: HandClock) -> None:
    clock.now = present()


async def jobs(inner: Core, *clients: str, versions: Mapping[int, int] = NOTHING) -> list[int]:
    return [job.job for job in await DueJobs(inner.database).due(clients or ("studio",), versions)]


async def test_a_job_is_due_when_its_time_has_passed(inner: Core, clock: HandClock) -> None:
    for number, minutes in ((1, 60), (2, 3), (3, 2)):
        await accept(inner, number, run_at=clock.now + timedelta(minutes=minutes))
    assert await jobs(inner) == []
    for number, minutes in ((2, 3), (3, 2)):
        await update(inner, number, run_at=clock.now - timedelta(minutes=minutes))
    await accept(inner, 4)
    assert await jobs(inner) == [2, 3]


async def test_a_due_job_is_read_with_its_time_and_semaphore(inner: Core, clock: HandClock) -> None:
    """To the microsecond, so that the job knows it again."""
    run_at = clock.now + timedelta(microseconds=123_457) - timedelta(minutes=5)
    job = await accept(inner, 1, run_at=run_at, semaphore=SEMAPHORE)
    [due] = await DueJobs(inner.database).due(["studio"], NOTHING)
    assert (due.run_at, due.semaphore, due.version, due.client) == (job.run_at, job.semaphore, 1, "studio")
    assert due == await DueJobs(inner.database).still(1)


async def test_a_job_without_a_time_waits_for_its_semaphore_alone(inner: Core, clock: HandClock) -> None:
    await accept(inner, 1, semaphore=SEMAPHORE)
    await accept(inner, 2, semaphore=SEMAPHORE, run_at=clock.now + timedelta(hours=1))
    assert await jobs(inner) == [1]
    assert await DueJobs(inner.database).still(2) is None


async def test_known_jobs_are_left_out_until_they_change(inner: Core) -> None:
    for number in (1, 2, 3):
        await accept(inner, number, semaphore=SEMAPHORE)
    assert await jobs(inner, versions={1: 1, 3: 1}) == [2]
    await update(inner, 1, priority=1)
    assert await jobs(inner, versions={1: 1, 3: 1}) == [1, 2]


async def test_only_of_the_clients_that_are_asked_for(inner: Core) -> None:
    for number, client in enumerate(["b", "a", "b", "c"], start=1):
        await accept(inner, number, client=client, semaphore=SEMAPHORE)
    await accept(inner, 5, client="d")
    assert await DueJobs(inner.database).clients() == ["a", "b", "c"]
    assert sorted(await jobs(inner, "b", "c")) == [1, 3, 4]
    assert await jobs(inner, "nobody") == []


async def test_of_each_client_so_many_at_a_time(inner: Core) -> None:
    await inner.database.execute(
        "INSERT INTO job_view (id, version, client, state, transaction_id)"
        " SELECT n, 1, CASE WHEN n <= 1000 THEN 'many' ELSE 'few' END, 3, '' FROM generate_series(1, 1002) n"
    )
    numbers = await jobs(inner, "many", "few")
    assert len(numbers) == AT_ONCE + 2
    assert {1001, 1002} <= set(numbers)


@pytest.mark.parametrize("state", [state for state in JobState if state not in (JobState.PENDING, JobState.SCHEDULED)])
async def test_nothing_in_any_other_state_is_due(inner: Core, state: JobState) -> None:
    await accept(inner, 1, semaphore=SEMAPHORE)
    await inner.database.execute("UPDATE job_view SET state = %s", (int(state),))
    assert await jobs(inner) == []
    assert await DueJobs(inner.database).clients() == []
    assert await DueJobs(inner.database).still(1) is None


async def test_how_long_it_is_until_the_next(inner: Core, clock: HandClock) -> None:
    due = DueJobs(inner.database)
    assert await due.next_in(["studio"]) is None
    await accept(inner, 1, semaphore=SEMAPHORE)
    assert await due.next_in(["studio"]) is None, "what is due already waits for nothing but its semaphore"
    await accept(inner, 2, run_at=clock.now + timedelta(hours=2))
    await accept(inner, 3, run_at=clock.now + timedelta(hours=1))
    await accept(inner, 4, run_at=clock.now + timedelta(minutes=1), client="other")
    seconds = await due.next_in(["studio"])
    assert seconds is not None
    assert 3500 < seconds <= 3600
    both = await due.next_in(["studio", "other"])
    assert both is not None
    assert both <= 60


async def test_jobs_of_next_year_or_of_a_disabled_schedule_are_not_read(inner: Core) -> None:
    """The index alone finds the due jobs of a client, in their order."""
    await inner.database.execute(
        "INSERT INTO job_view (id, version, client, state, run_at, transaction_id) SELECT n, 1, 'off', 5,"
        " now() + (n - 10000) * interval '1 hour', '' FROM generate_series(1, 20000) n"
    )
    await inner.database.execute(
        "INSERT INTO job_view (id, version, client, state, run_at, transaction_id) SELECT 20000 + n, 1, 'a', 5,"
        " now() + interval '1 year' + n * interval '1 hour', '' FROM generate_series(1, 20000) n"
    )
    await inner.database.execute("INSERT INTO job_view (id, version, client, state, transaction_id) VALUES (90000, 1, 'a', 3, '')")
    await inner.database.execute("ANALYZE job_view")
    asked = f"SELECT id FROM job_view WHERE client = 'a' AND state IN {WAITING} AND {DUE_FROM} <= now() ORDER BY {DUE_FROM}, id"
    async with inner.database.connection() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_bitmapscan = off")  # of one row it costs as much
        cursor = await connection.execute(f"EXPLAIN {asked}".encode())
        plan = "\n".join(line for (line,) in await cursor.fetchall())
    assert "job_view_waiting" in plan
    assert "Sort" not in plan
    assert await jobs(inner, "a") == [90000]
