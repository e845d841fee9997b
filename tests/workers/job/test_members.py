"""Several processes that start and run jobs: they share the work, borrow from each other, and take over the work of lost ones."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from domain.job.aggregate import Job
from domain.job.values import JobState, TaskState
from projections.job.view import SHARDS
from tests.support.engine import PLUGINS, Engine, once, process
from tests.support.waiting import ROOT, python

Migrated = tuple[str, str | None]
LEASE = 3
_STARTS = """
SELECT convert_from(state, 'utf8')::json->>'worker', count(*) FROM events WHERE topic = 'job.task_started' GROUP BY 1
"""
_OWNERS = "SELECT owner, count(*) FROM consumer_shards WHERE consumer = %s AND owner IS NOT NULL GROUP BY owner"


async def starts(engine: Engine) -> dict[str, int]:
    """Return the number of runs that each worker has started."""
    return dict(await engine.inner.database.rows(_STARTS))


async def shares(engine: Engine, consumer: str = "work") -> list[int]:
    """Return the number of shards that each member owns."""
    return sorted(count for _, count in await engine.inner.database.rows(_OWNERS, (consumer,)))


async def shared(engine: Engine, *counts: int) -> None:
    async def ask() -> bool:
        return await shares(engine) == list(counts)

    await once(ask)


async def each_once(engine: Engine, numbers: Sequence[int], *, tasks: int) -> None:
    for number in numbers:
        topics = await engine.topics(number)
        assert (topics.count("started"), topics.count("completed"), topics.count("task_started")) == (1, 1, tasks)


@pytest.mark.parametrize("members", [2, pytest.param(4, marks=pytest.mark.long)])
async def test_members_share_the_jobs_and_each_runs_once(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path, members: int
) -> None:
    await engine.set("max_jobs", 50)
    async with AsyncExitStack() as running:
        for _ in range(members):
            await running.enter_async_context(process(database_url, migrated[1], media_root=tmp_path, steps=3))
        await shared(engine, *[SHARDS // members] * members)
        numbers = [await engine.accept("chain", priority=1 + index % 10) for index in range(20 * members)]
        for number in numbers:
            await engine.ended(number)
    await each_once(engine, numbers, tasks=3)
    assert len(await starts(engine)) == members, "every member had its part"


async def test_a_member_that_joins_gets_its_part_at_once(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    """The first member runs long steps of its shards: a shard is handed over, its running steps stay."""
    await engine.set("max_jobs", 50)
    async with process(database_url, migrated[1], media_root=tmp_path, steps=2):
        long = [await engine.accept("waiting", seconds=600) for _ in range(2)]
        for number in long:
            await engine.until(number, lambda job: job.tasks[1].state is TaskState.RUNNING)
        await shared(engine, SHARDS)
        async with process(database_url, migrated[1], media_root=tmp_path, steps=2):
            await shared(engine, SHARDS // 2, SHARDS // 2)
            short = [await engine.accept("noop") for _ in range(20)]
            for number in short:
                await engine.ended(number)
        await shared(engine, SHARDS)
        assert [(await engine.job(number)).tasks[1].run for number in long] == [1, 1]
    await each_once(engine, short, tasks=1)


async def test_a_worker_without_a_free_place_holds_up_nobody(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    """A process owns all jobs and has one place, which is taken. Another one runs steps only, and borrows."""
    await engine.set("max_jobs", 50)
    async with process(database_url, migrated[1], media_root=tmp_path, steps=1):
        blocking = await engine.accept("waiting", seconds=600)
        job = await engine.until(blocking, lambda job: job.tasks[1].state is TaskState.RUNNING)
        async with process(database_url, migrated[1], media_root=tmp_path, roles=("work",), steps=2):
            numbers = [await engine.accept("diamond") for _ in range(10)]
            for number in numbers:
                await engine.ended(number)
        assert (await engine.job(blocking)).tasks[1].state is TaskState.RUNNING
    await each_once(engine, numbers, tasks=4)
    assert (await starts(engine))[job.tasks[1].worker] == 1, "all others were run by the other one"


async def test_no_client_has_every_place_of_a_worker(engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path) -> None:
    """Steps that last for hours take all places; then another client submits one job after another."""
    await engine.set("max_jobs", 50)
    async with process(database_url, migrated[1], media_root=tmp_path, steps=2):
        long = [await engine.accept("waiting", seconds=600) for _ in range(4)]
        for number in long[:2]:
            await engine.until(number, lambda job: job.tasks[1].state is TaskState.RUNNING)
        for _ in range(3):
            await engine.ended(await engine.accept("noop", client="other", priority=10))
        running = [(await engine.job(number)).tasks[1].state is TaskState.RUNNING for number in long]
    assert sum(running) == 2


async def test_more_urgent_work_of_others_comes_before_own(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    """No place is used for work that can wait while urgent work of a full worker cannot start."""
    await engine.set("max_jobs", 50)
    async with (
        process(database_url, migrated[1], media_root=tmp_path, steps=1),
        process(database_url, migrated[1], media_root=tmp_path, steps=1),
    ):
        await shared(engine, SHARDS // 2, SHARDS // 2)
        short, long = await engine.accept("waiting", seconds=10), await engine.accept("waiting", seconds=600)
        for number in (short, long):
            await engine.until(number, lambda job: job.tasks[1].state is TaskState.RUNNING)
        later = [await engine.accept("noop", priority=9) for _ in range(12)]
        urgent = [await engine.accept("noop", priority=1) for _ in range(12)]
        for number in (*later, *urgent):
            await engine.ended(number)
    stream = "SELECT originator_id FROM events WHERE topic = 'job.task_started' ORDER BY position"
    order = [int(line.partition(":")[2]) for (line,) in await engine.inner.database.rows(stream)]
    places = {number: order.index(number) for number in (*later, *urgent)}
    assert max(places[number] for number in urgent) < sorted(places[number] for number in later)[2]


@asynccontextmanager
async def apart(database_url: str, home: Path, *, lease: int = LEASE) -> AsyncIterator[int]:
    """Start a member as a separate process that can be killed and frozen, and yield its id. Its log is in the file `log`."""
    given = {"HOME": str(home), "DATABASE_URL": database_url, "STEPS": "4", "LEASE_SECONDS": str(lease), "LOG_LEVEL": "INFO"}
    environment = {f"MEDIALEDGER_{name}": value for name, value in given.items()} | {"MEDIALEDGER_MEDIA_ROOT": str(home / "media")}
    running = python(
        "-c",
        f"import sys; sys.stderr = sys.stdout = open({str(home / 'log')!r}, 'a', buffering=1); "
        "from api.cli.main import main; main(['workers', 'controller', 'work'])",
        environment=environment | {"PYTHONPATH": os.pathsep.join((str(ROOT), PLUGINS))},
    )
    try:
        yield running.pid
    finally:
        running.kill()
        await asyncio.to_thread(running.communicate)


async def test_a_frozen_member_that_comes_back_writes_nothing(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    await engine.set("max_jobs", 50)
    await engine.set("retry_delay", 0)
    async with apart(database_url, tmp_path) as frozen:
        numbers = [await engine.accept("waiting", seconds=6) for _ in range(4)]
        firsts = [await engine.until(number, lambda job: job.tasks[1].state is TaskState.RUNNING) for number in numbers]
        os.kill(frozen, signal.SIGSTOP)
        async with process(database_url, migrated[1], media_root=tmp_path / "media", lease=LEASE):
            for number in numbers:
                await engine.ended(number)
            before = [await engine.topics(number) for number in numbers]
            worker = firsts[0].tasks[1].worker
            assert {job.tasks[1].worker for job in firsts} == {worker}
            os.kill(frozen, signal.SIGCONT)
            await once(lambda: another_name(engine, frozen_worker=worker))
            assert [await engine.topics(number) for number in numbers] == before
            later = [await engine.accept("noop") for _ in range(4)]
            for number in later:
                await engine.ended(number)
    for number, topics in zip(numbers, before, strict=True):
        job = await engine.job(number)
        assert (job.failed, job.tasks[1].run, topics.count("task_lease_expired")) == (False, 2, 1)
        assert job.tasks[1].worker != worker
    await each_once(engine, later, tasks=1)


async def another_name(engine: Engine, *, frozen_worker: str) -> bool:
    """Return True if both members have leases, none of them under the lost name."""
    alive = await engine.inner.database.rows("SELECT worker FROM job_workers WHERE until > clock_timestamp()")
    return len(alive) == 2 and (frozen_worker,) not in alive


async def test_the_work_of_a_killed_member_is_done_by_the_others(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    """The runs of the killed member are repeated; jobs that it owned and had not begun start before or after, in the remaining
    places."""
    await engine.set("max_jobs", 50)
    await engine.set("retry_delay", 0)
    async with apart(database_url, tmp_path, lease=5) as killed:
        running = [await engine.accept("waiting", seconds=600) for _ in range(4)]
        for number in running:
            await engine.until(number, lambda job: job.tasks[1].state is TaskState.RUNNING)
        waiting = [await engine.accept("noop") for _ in range(10)]
        for number in waiting:
            await engine.until(number, lambda job: job.state is JobState.STARTED)
        os.kill(killed, signal.SIGKILL)
        async with process(database_url, migrated[1], media_root=tmp_path / "media", steps=8, lease=5):
            for number in waiting:
                await engine.ended(number)
            again = [await engine.until(number, runs_again) for number in running]
    assert [(job.tasks[1].attempts, job.tasks[1].lost) for job in again] == [(2, 1)] * 4
    await each_once(engine, waiting, tasks=1)


def runs_again(job: Job) -> bool:
    return job.tasks[1].state is TaskState.RUNNING and job.tasks[1].run == 2
