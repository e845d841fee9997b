"""The queue of tasks: which are ready, and whose worker is lost, on the database's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import timedelta

import pytest

from api.wiring.core import Core
from domain.job.aggregate import Job, RetryPolicy
from domain.job.values import JobState, TaskPlan
from projections.consumers.leases import shard_of
from projections.job.queue import MOST, ActiveRun, QueuedRun, ReadyTask, TaskQueue
from projections.job.view import SHARDS
from tests.projections.job.jobs_made import AT_ONCE, THREE, accept, begin, commit, complete, fail, present, started, update
from tests.projections.log.helpers import rows
from tests.support.clock import HandClock
from tests.support.feeding import do

WORKER = "w"
"""The worker of `begin`."""
ALL = range(SHARDS)


@pytest.fixture(autouse=True)
def _at_present(clock: HandClock) -> None:
    clock.now = present()


def work(inner: Core) -> TaskQueue:
    return TaskQueue(inner.database, "work")


async def alive(inner: Core, worker: str = WORKER, *, seconds: float = 60.0) -> None:
    statement = "INSERT INTO job_workers VALUES (%s, clock_timestamp() + make_interval(secs => %s))"
    await inner.database.execute(statement, (worker, seconds))


async def ready(queue: TaskQueue, shards: Collection[int] | None = None, *, limit: int = MOST) -> list[QueuedRun]:
    return [task.run for task in await queue.first(shards, limit=limit)]


class TestReady:
    async def test_a_ready_task_has_the_number_of_its_next_run(self, inner: Core) -> None:
        await started(inner, 1, client="studio")
        shard = shard_of("1", SHARDS)
        assert await work(inner).first() == [ReadyTask(QueuedRun(1, 1, 1), False, shard, 5, "studio", "")]
        await begin(inner, 1)
        assert await work(inner).first() == []
        await fail(inner, 1)
        assert await ready(work(inner)) == [QueuedRun(1, 1, 2)]

    async def test_the_most_urgent_first_then_the_oldest(self, inner: Core) -> None:
        for number, priority in ((1, 5), (2, 9), (3, 1), (4, 5)):
            await started(inner, number, TaskPlan(id=1, name="a"), TaskPlan(id=2, name="b"), priority=priority)
        runs = [run[:2] for run in await ready(work(inner))]
        assert runs == [(3, 1), (3, 2), (1, 1), (1, 2), (4, 1), (4, 2), (2, 1), (2, 2)]

    async def test_only_of_its_queue(self, inner: Core) -> None:
        await started(inner, 1, *THREE)
        await begin(inner, 1)
        await complete(inner, 1)
        assert await ready(TaskQueue(inner.database, "windows_capture")) == [QueuedRun(1, 3, 1)]
        assert await ready(work(inner)) == [QueuedRun(1, 2, 1)]

    async def test_only_of_the_shards_that_are_asked_for(self, inner: Core) -> None:
        for number in range(1, 20):
            await started(inner, number)
        mine = {shard_of("7", SHARDS), shard_of("8", SHARDS)}
        expected = [QueuedRun(number, 1, 1) for number in range(1, 20) if shard_of(str(number), SHARDS) in mine]
        assert await ready(work(inner), mine) == expected
        assert await ready(work(inner), ALL) == await ready(work(inner)) == [QueuedRun(number, 1, 1) for number in range(1, 20)]
        assert await ready(work(inner), ()) == []
        assert await ready(work(inner), ALL, limit=2) == [QueuedRun(1, 1, 1), QueuedRun(2, 1, 1)]

    async def test_only_of_other_clients(self, inner: Core) -> None:
        for number, client, priority in ((1, "studio", 1), (2, "playout", 9), (3, "archive", 5)):
            await started(inner, number, client=client, priority=priority)
        assert [task.run.job for task in await work(inner).first_of_others("studio")] == [3, 2]
        assert [task.run.job for task in await work(inner).first_of_others("archive", limit=1)] == [1]

    async def test_nothing_of_jobs_that_are_not_started(self, inner: Core) -> None:
        await accept(inner, 1)
        await started(inner, 2)
        await update(inner, 2, queue_state=JobState.PAUSED)
        await started(inner, 3)
        await update(inner, 3, queue_state=JobState.BROKEN)
        await started(inner, 4)
        await begin(inner, 4)
        assert await work(inner).first() == []

    async def test_a_retry_waits_until_it_is_due(self, inner: Core) -> None:
        for number, delay in ((1, timedelta(hours=1)), (2, timedelta(0))):
            await started(inner, number)
            await begin(inner, number)
            await fail(inner, number, retries=RetryPolicy(3, delay))
        assert await ready(work(inner)) == [QueuedRun(2, 1, 2)]

    async def test_a_task_without_a_time_does_not_wait_for_the_clock_of_its_writer(self, inner: Core, clock: HandClock) -> None:
        clock.forward(hours=5)
        await started(inner, 1)
        assert await ready(work(inner)) == [QueuedRun(1, 1, 1)]


class TestPublishing:
    async def test_only_when_its_worker_is_lost_and_as_the_same_run(self, inner: Core, database_url: str) -> None:
        await alive(inner)
        await started(inner, 1)
        await begin(inner, 1)
        await commit(inner, 1)
        assert await work(inner).first() == [], "its worker is at it"
        rows(database_url, "UPDATE job_workers SET until = clock_timestamp() - interval '1 second' RETURNING 1")
        assert await work(inner).lost() == [], "nothing is lost that is decided"
        [task] = await work(inner).first()
        assert (task.run, task.publishing) == (QueuedRun(1, 1, 1), True)

    async def test_also_while_its_job_is_paused_but_not_when_it_is_broken(self, inner: Core) -> None:
        for number in (1, 2):
            await started(inner, number)
            await begin(inner, number)
            await commit(inner, number)
        await update(inner, 1, queue_state=JobState.PAUSED)
        await update(inner, 2, queue_state=JobState.BROKEN)
        assert await ready(work(inner)) == [QueuedRun(1, 1, 1)]


class TestLost:
    async def test_runs_of_a_worker_without_a_lease_in_any_queue(self, inner: Core) -> None:
        """The lease may have gone with the table, which is not in the log."""
        await started(inner, 1)
        await begin(inner, 1)
        await started(inner, 2)
        windows = TaskQueue(inner.database, "windows_capture")
        assert await windows.lost() == [ActiveRun(QueuedRun(1, 1, 1), "studio", "")]
        assert await windows.lost(limit=0) == []

    async def test_rows_of_a_worker_with_a_lease_are_left_out(self, inner: Core) -> None:
        await alive(inner, seconds=60)
        await alive(inner, "another", seconds=-1)
        await started(inner, 1)
        await begin(inner, 1)
        assert await work(inner).lost() == []

    async def test_a_lease_runs_out_by_the_databases_clock(self, inner: Core) -> None:
        await alive(inner, seconds=0.2)
        await started(inner, 1)
        await begin(inner, 1)
        lost_runs: list[ActiveRun] = []
        async with asyncio.timeout(60):
            while not lost_runs:
                lost_runs = await work(inner).lost()
        assert [lost_run.run for lost_run in lost_runs] == [QueuedRun(1, 1, 1)]
        assert await work(inner).first() == [], "it is for the job to say that the run is lost"
        await do(inner, Job.expire_lease.on(1, 1, run=1, retries=AT_ONCE))
        assert await ready(work(inner)) == [QueuedRun(1, 1, 2)]
        assert await work(inner).lost() == []

    async def test_the_runs_of_a_worker_as_the_log_has_them(self, inner: Core) -> None:
        for number in (1, 2, 3):
            await started(inner, number)
            await begin(inner, number)
        await commit(inner, 2)
        await complete(inner, 3)
        assert [task.run for task in await work(inner).of_worker(WORKER)] == [QueuedRun(1, 1, 1), QueuedRun(2, 1, 1)]
        assert await work(inner).of_worker("another") == []


class TestPresent:
    async def test_runs_that_their_jobs_still_wait_for(self, inner: Core) -> None:
        for number in range(1, 6):
            await started(inner, number)
            await begin(inner, number)
        await commit(inner, 2)
        await update(inner, 3, queue_state=JobState.BROKEN)
        await update(inner, 4, queue_state=JobState.PAUSED)
        await complete(inner, 5)
        runs = [QueuedRun(number, 1, 1) for number in range(1, 7)]
        assert await work(inner).present(runs) == {QueuedRun(1, 1, 1), QueuedRun(2, 1, 1), QueuedRun(4, 1, 1)}
        assert await work(inner).present([QueuedRun(1, 1, 2)]) == set()
