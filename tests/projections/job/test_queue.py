"""The queue of tasks: claims, leases and heartbeats on the database's clock."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from api.wiring.core import Core
from domain.job.aggregate import Retries
from domain.job.commands import ExpireLease
from domain.job.values import JobState, TaskPlan
from projections.job.queue import Claimed, Expired, Run, TaskQueue
from tests.conftest import HandClock
from tests.projections.feeding import do
from tests.projections.job.jobs_made import AT_ONCE, THREE, accept, begin, commit, complete, fail, present, started, update
from tests.projections.log.helpers import rows, until

WORK = ["work"]
WINDOWS = ["windows_capture"]


@pytest.fixture(autouse=True)
def _at_present(clock: HandClock) -> None:
    clock.now = present()


def member(inner: Core, number: int = 1, *, lease: float = 30.0) -> TaskQueue:
    return TaskQueue(inner.database, member=UUID(int=number), lease=lease)


def run_out(url: str, run: Run | None = None) -> None:
    """The lease of a run, or every lease, is over."""
    which = "" if run is None else f" WHERE (job, task, run) = ({run.job}, {run.task}, {run.run})"
    rows(url, f"UPDATE job_leases SET until = clock_timestamp() - interval '1 second'{which} RETURNING 1")


async def claimed(queue: TaskQueue, *, queues: list[str] = WORK, limit: int = 10) -> list[Run]:
    return [one.run for one in await queue.claim(queues, limit=limit)]


class TestClaiming:
    async def test_a_ready_task_is_claimed_with_the_number_of_its_next_run(self, inner: Core) -> None:
        await started(inner, 1, client="studio")
        assert await member(inner).claim(WORK, limit=10) == [Claimed(Run(1, 1, 1), False, "studio", "")]
        await begin(inner, 1)
        await fail(inner, 1)
        assert await claimed(member(inner)) == [Run(1, 1, 2)]

    async def test_once(self, inner: Core) -> None:
        await started(inner, 1)
        assert await claimed(member(inner, 1)) == [Run(1, 1, 1)]
        assert await claimed(member(inner, 1)) == []
        assert await claimed(member(inner, 2)) == []

    async def test_the_most_urgent_first_then_the_oldest(self, inner: Core) -> None:
        for number, priority in ((1, 5), (2, 9), (3, 1), (4, 5)):
            await started(inner, number, TaskPlan(id=1, name="a"), TaskPlan(id=2, name="b"), priority=priority)
        queue = member(inner)
        taken = [one.run[:2] for _ in range(8) for one in await queue.claim(WORK, limit=1)]
        assert taken == [(3, 1), (3, 2), (1, 1), (1, 2), (4, 1), (4, 2), (2, 1), (2, 2)]
        assert await claimed(queue) == []

    async def test_only_of_the_queues_that_are_asked_for(self, inner: Core) -> None:
        await started(inner, 1, *THREE)
        await begin(inner, 1)
        await complete(inner, 1)
        assert await claimed(member(inner), queues=WINDOWS) == [Run(1, 3, 1)]
        assert await claimed(member(inner), queues=[*WORK, *WINDOWS]) == [Run(1, 2, 1)]

    async def test_nothing_of_jobs_that_are_not_started(self, inner: Core) -> None:
        await accept(inner, 1)
        await started(inner, 2)
        await update(inner, 2, queue_state=JobState.PAUSED)
        await started(inner, 3)
        await update(inner, 3, queue_state=JobState.BROKEN)
        await started(inner, 4)
        await begin(inner, 4)
        assert await claimed(member(inner)) == []

    async def test_not_before_it_is_due(self, inner: Core) -> None:
        await started(inner, 1)
        await begin(inner, 1)
        await fail(inner, 1, retries=Retries(3, timedelta(hours=1)))
        assert await claimed(member(inner)) == []
        await started(inner, 2)
        await begin(inner, 2)
        await fail(inner, 2, retries=Retries(3, timedelta(seconds=1.5)))
        early = await inner.database.row("SELECT due_at > clock_timestamp() FROM job_task_view WHERE job = 2")
        found: list[Run] = []
        async with asyncio.timeout(60):
            while not found:
                found = await claimed(member(inner))
        assert found == [Run(2, 1, 2)]
        assert await inner.database.rows("SELECT FROM job_task_view WHERE job = 2 AND due_at > clock_timestamp()") == []
        assert early is not None

    async def test_a_task_without_a_time_does_not_wait_for_the_clock_of_its_writer(self, inner: Core, clock: HandClock) -> None:
        clock.forward(hours=5)
        await started(inner, 1)
        assert await claimed(member(inner)) == [Run(1, 1, 1)]

    async def test_concurrent_claims_share_all_tasks(self, inner: Core, other: Core) -> None:
        for number in range(1, 41):
            await started(inner, number)

        async def all_of(queue: TaskQueue) -> list[Run]:
            found: list[Run] = []
            while more := await claimed(queue, limit=3):
                found += more
            return found

        lanes = [member(inner, 1), member(inner, 2), member(other, 3), member(other, 4)]
        taken = [run for lane in await asyncio.gather(*map(all_of, lanes)) for run in lane]
        left = await claimed(member(inner, 5), limit=100)
        assert sorted(taken + left) == [Run(number, 1, 1) for number in range(1, 41)]

    async def test_a_locked_row_is_skipped(self, inner: Core, database_url: str) -> None:
        await started(inner, 1)
        await started(inner, 2)
        with psycopg.connect(database_url) as busy:
            busy.execute("SELECT FROM job_task_view WHERE job = 1 FOR UPDATE")
            assert await claimed(member(inner)) == [Run(2, 1, 1)]
        assert await claimed(member(inner)) == [Run(1, 1, 1)]


class TestLeases:
    async def test_an_expired_claim_without_a_start_is_claimed_with_the_same_number(self, inner: Core, database_url: str) -> None:
        await started(inner, 1)
        await claimed(member(inner, 1))
        run_out(database_url)
        assert await member(inner).expired() == [], "nothing has begun, so nothing was lost"
        assert await claimed(member(inner, 2)) == [Run(1, 1, 1)]
        assert await member(inner, 1).renew([Run(1, 1, 1)]) == set()

    async def test_a_short_lease_runs_out_by_the_databases_clock(self, inner: Core) -> None:
        await started(inner, 1)
        await claimed(member(inner, 1, lease=0.2))
        await begin(inner, 1)
        assert await claimed(member(inner, 2)) == []
        found: list[Expired] = []
        async with asyncio.timeout(60):
            while not found:
                found = await member(inner, 2).expired()
        assert found == [Expired(Run(1, 1, 1), "studio", "")]
        assert await claimed(member(inner, 2)) == [], "it is for the job to say that the run is lost"

    async def test_a_renewed_lease_does_not_expire(self, inner: Core) -> None:
        await started(inner, 1)
        owner = member(inner, 1, lease=0.5)
        await claimed(owner)
        await begin(inner, 1)
        owner.lease = 60.0
        assert await owner.renew([Run(1, 1, 1)]) == {Run(1, 1, 1)}
        [(seconds,)] = await inner.database.rows("SELECT extract(epoch FROM until - clock_timestamp())::float8 FROM job_leases")
        assert 50 < seconds <= 60
        assert await owner.expired() == []

    async def test_only_held_leases_are_renewed(self, inner: Core, database_url: str) -> None:
        for number in (1, 2, 3):
            await started(inner, number)
        mine, others = member(inner, 1), member(inner, 2)
        assert len(await claimed(mine, limit=2)) == 2
        assert await claimed(others) == [Run(3, 1, 1)]
        run_out(database_url, Run(1, 1, 1))
        everything = [Run(number, 1, 1) for number in (1, 2, 3, 9)]
        assert await mine.renew(everything) == {Run(2, 1, 1)}
        assert await others.renew(everything) == {Run(3, 1, 1)}
        assert await mine.renew([]) == set()

    async def test_an_expired_lease_cannot_be_renewed(self, inner: Core, database_url: str) -> None:
        await started(inner, 1)
        frozen, heir = member(inner, 1), member(inner, 2)
        await claimed(frozen)
        await begin(inner, 1)
        run_out(database_url)
        [lost] = await heir.expired()
        await do(inner, ExpireLease(*lost.run, retries=AT_ONCE))
        assert await claimed(heir) == [Run(1, 1, 2)]
        assert await frozen.renew([Run(1, 1, 1)]) == set()
        assert await frozen.present([Run(1, 1, 1)]) == set()
        assert await heir.renew([Run(1, 1, 2)]) == {Run(1, 1, 2)}

    async def test_a_run_without_any_lease_is_lost(self, inner: Core) -> None:
        """Its lease may have gone with the table, which is not in the log."""
        await started(inner, 1)
        await begin(inner, 1)
        assert [one.run for one in await member(inner).expired()] == [Run(1, 1, 1)]
        assert await member(inner).expired(limit=0) == []

    async def test_a_released_task_can_be_claimed(self, inner: Core) -> None:
        await started(inner, 1)
        await started(inner, 2)
        mine = member(inner, 1)
        await claimed(mine)
        await member(inner, 2).release([Run(1, 1, 1)])
        assert await claimed(member(inner, 2)) == [], "nobody releases for others"
        await mine.release([Run(1, 1, 1)])
        assert await claimed(member(inner, 2)) == [Run(1, 1, 1)]

    async def test_old_leases_are_deleted_and_current_ones_are_kept(self, inner: Core, database_url: str) -> None:
        await started(inner, 1)
        await started(inner, 2)
        await claimed(member(inner, 1))
        rows(database_url, "UPDATE job_leases SET until = clock_timestamp() - interval '2 hours' WHERE job = 1 RETURNING 1")
        await member(inner).tidy()
        assert rows(database_url, "SELECT job FROM job_leases") == [(2,)]


class TestPublishing:
    async def test_a_publishing_task_is_claimed_as_the_same_run(self, inner: Core, database_url: str) -> None:
        await started(inner, 1)
        await claimed(member(inner, 1))
        await begin(inner, 1)
        await commit(inner, 1)
        assert await claimed(member(inner, 2)) == [], "its owner is at it"
        run_out(database_url)
        assert await member(inner, 2).expired() == [], "nothing is lost that is decided"
        assert await member(inner, 2).claim(WORK, limit=5) == [Claimed(Run(1, 1, 1), True, "studio", "")]
        assert await claimed(member(inner, 3)) == []

    async def test_also_while_its_job_is_paused_but_not_when_it_is_broken(self, inner: Core) -> None:
        for number in (1, 2):
            await started(inner, number)
            await begin(inner, number)
            await commit(inner, number)
        await update(inner, 1, queue_state=JobState.PAUSED)
        await update(inner, 2, queue_state=JobState.BROKEN)
        assert await claimed(member(inner)) == [Run(1, 1, 1)]


class TestPresent:
    async def test_runs_that_their_jobs_still_wait_for(self, inner: Core) -> None:
        for number in range(1, 6):
            await started(inner, number)
            await begin(inner, number)
        await commit(inner, 2)
        await update(inner, 3, queue_state=JobState.BROKEN)
        await update(inner, 4, queue_state=JobState.PAUSED)
        await complete(inner, 5)
        runs = [Run(number, 1, 1) for number in range(1, 7)]
        assert await member(inner).present(runs) == {Run(1, 1, 1), Run(2, 1, 1), Run(4, 1, 1)}
        assert await member(inner).present([Run(1, 1, 2)]) == set()


async def test_a_claim_whose_answer_was_lost_is_found_again_when_its_lease_is_over(inner: Core, database_url: str) -> None:
    """The connection breaks after the statement: no worker knows of the lease, and the task is not lost."""
    await started(inner, 1)
    await claimed(member(inner, 1, lease=0.2))
    found: list[Run] = []

    async def free() -> bool:
        found.extend(await claimed(member(inner, 2)))
        return bool(found)

    async with asyncio.timeout(60):
        while not await free():
            pass
    assert found == [Run(1, 1, 1)]
    await until(lambda: rows(database_url, "SELECT member FROM job_leases") == [(UUID(int=2),)])
