"""Workers that die, freeze or are stopped: no task is lost, and none is done twice."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from api.wiring.core import Core, core
from domain.job.aggregate import Job, RetryPolicy
from domain.job.values import Fenced, JobState, Output, Result, TaskState
from domain.kernel.clock import system_clock
from projections.job.queue import JobNumberSequence, QueuedRun, TaskQueue
from projections.job.worker_lease import WorkerLease
from tests.support.engine import Engine, once, plugins, process
from workers.adapters.step_account import NAME
from workers.adapters.system_account import system_account
from workers.job.job_worker import JobWorker
from workers.job.media_paths import JOBS, MediaPaths
from workers.job.workspaces import Workspaces

Migrated = tuple[str, str | None]
ONCE = RetryPolicy(3, timedelta(0))
LEASE = 2.0


@pytest.fixture
async def engine(database_url: str, migrated: Migrated) -> AsyncIterator[Engine]:
    """Run an engine without workers: the test does their work."""
    inner: Core = core(database_url, role=migrated[1], clock=system_clock)
    with plugins():
        await inner.start()
        await inner.log_watcher.start()
        try:
            yield Engine(inner, JobNumberSequence(inner.database))
        finally:
            await inner.log_watcher.stop()
            await inner.stop()


class Dying:
    """A worker that starts a task and disappears. A late report from it may still arrive."""

    def __init__(self, engine: Engine, *, lease: float = LEASE) -> None:
        self._engine = engine
        self._queue = TaskQueue(engine.inner.database, "work")
        self._lease = WorkerLease(engine.inner.database, host="the dying", seconds=lease)

    async def take(self) -> QueuedRun:
        await self._lease.keep()
        run = (await once(self._queue.first))[0].run
        await self._engine.do(Job.start_task.on(run.job, run.task, run=run.run, worker=self._lease.worker))
        return run


async def test_the_task_of_a_dead_worker_goes_to_another_and_late_reports_are_fenced(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    await engine.set("retry_delay", 0)
    number = await engine.accept("chain")
    async with process(database_url, migrated[1], media_root=tmp_path, roles=("controller",)):
        run = await Dying(engine).take()
        async with process(database_url, migrated[1], media_root=tmp_path, roles=("work",), lease=LEASE):
            job = await engine.ended(number)
    assert (job.failed, job.tasks[1].run, job.tasks[1].attempts) == (False, 2, 2)
    assert (await engine.topics(number))[2:4] == ["task_started", "task_lease_expired"]
    before = await engine.topics(number)
    made = (Output(path="x", name="match/x", size=1, sha256="0"),)
    for report in (
        Job.complete_task.on(run.job, run.task, run=run.run, result=Result()),
        Job.commit_outputs.on(run.job, run.task, run=run.run, outputs=made, result=Result()),
        Job.fail_task.on(run.job, run.task, run=run.run, error="it was not me", retries=ONCE),
    ):
        with pytest.raises(Fenced):
            await engine.do(report)
    await engine.do(Job.expire_lease.on(run.job, run.task, run=run.run, retries=ONCE))
    assert await engine.topics(number) == before


async def test_a_task_that_kills_its_workers_fails_the_job(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    await engine.set("retry_delay", 0)
    number = await engine.accept("noop")
    rescuer = TaskQueue(engine.inner.database, "work")
    async with process(database_url, migrated[1], media_root=tmp_path, roles=("controller",)):
        for _ in range(2):
            run = await Dying(engine, lease=0.1).take()
            assert [lost.run for lost in await once(rescuer.lost)] == [run]
            await engine.do(Job.expire_lease.on(run.job, run.task, run=run.run, retries=ONCE))
    job = await engine.job(number)
    assert (job.state, job.failed) == (JobState.COMPLETED, True)
    assert job.reason == "the worker of the task nothing was lost 2 times in a row"


async def test_committed_files_are_published_by_another_worker(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    number = await engine.accept("chain")
    async with process(database_url, migrated[1], media_root=tmp_path, roles=("controller",)):
        run = await Dying(engine).take()
    folder = MediaPaths(tmp_path, number).workspace(run.task, run.run)
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / name).write_text("by the dying one")
    if (account := system_account(NAME)) is not None:  # which runs the steps of root
        for path in (tmp_path / JOBS).rglob("*"):
            os.chown(path, account.pw_uid, account.pw_gid)
    made = tuple(Output(path=name, name=f"match/{name}", size=16, sha256="0") for name in ("a", "b"))
    await engine.do(Job.commit_outputs.on(run.job, run.task, run=run.run, outputs=made, result=Result(message="made")))
    (tmp_path / "match").mkdir()
    (folder / "a").rename(tmp_path / "match" / "a")  # so far it came
    async with process(database_url, migrated[1], media_root=tmp_path, lease=LEASE):
        job = await engine.ended(number)
    assert (job.failed, job.tasks[1].run, job.tasks[1].attempts) == (False, 1, 1)
    assert (tmp_path / "match" / "b").read_text() == "by the dying one"
    topics = await engine.topics(number)
    assert topics.count("outputs_committed") == 3
    assert topics.count("task_completed") == 3


async def test_the_next_task_is_not_lost_while_the_files_of_the_one_before_are_deleted(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The append that completes a task starts the next one."""
    rescue, discard, rounds = JobWorker._rescue, Workspaces.discard_runs, count()
    latest = 0

    async def counted(worker: JobWorker) -> None:
        nonlocal latest
        await rescue(worker)
        latest = next(rounds)

    async def slowly(files: Workspaces, run: QueuedRun) -> None:
        seen = latest

        async def looked() -> bool:
            return latest >= seen + 3

        if run.task == 1:
            await once(looked)
        await discard(files, run)

    monkeypatch.setattr(JobWorker, "_rescue", counted)
    monkeypatch.setattr(Workspaces, "discard_runs", slowly)
    number = await engine.accept("chain")
    async with process(database_url, migrated[1], media_root=tmp_path, lease=LEASE):
        job = await engine.ended(number)
    assert [(task.run, task.attempts) for task in job.tasks.values()] == [(1, 1)] * 3


async def test_a_stopping_worker_gives_its_tasks_back(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    number = await engine.accept("waiting", seconds=60)
    async with process(database_url, migrated[1], media_root=tmp_path):
        await engine.until(number, lambda job: job.tasks[1].state is TaskState.RUNNING)
    job = await engine.job(number)
    assert (job.state, job.tasks[1].state, job.tasks[1].attempts) == (JobState.STARTED, TaskState.WAITING, 0)
    assert (await engine.topics(number))[-1] == "task_interrupted"
    assert await engine.inner.database.rows("SELECT FROM job_workers") == []
    async with process(database_url, migrated[1], media_root=tmp_path):
        job = await engine.until(number, lambda job: job.tasks[1].state is TaskState.RUNNING)
    assert job.tasks[1].run == 2


@pytest.mark.long
async def test_two_controllers_and_three_workers_start_each_job_once(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    await engine.set("max_jobs", 7)
    await engine.set("priority_slots", 3)
    numbers = [await engine.accept("chain", priority=1 + index % 10) for index in range(40)]
    async with (
        process(database_url, migrated[1], media_root=tmp_path, roles=("controller",)),
        process(database_url, migrated[1], media_root=tmp_path, roles=("controller", "work"), steps=2),
        process(database_url, migrated[1], media_root=tmp_path, roles=("work",), steps=2),
        process(database_url, migrated[1], media_root=tmp_path, roles=("work",), steps=2),
    ):
        for number in numbers:
            await engine.ended(number, seconds=60)
    for number in numbers:
        topics = await engine.topics(number)
        assert (topics.count("started"), topics.count("completed"), topics.count("task_started")) == (1, 1, 3)
        assert (tmp_path / "match" / f"{number}-3.txt").read_text() == f"{number} 3 1\n"
    started, low = dict[str, bool](), dict[str, int]()
    most, most_low = 0, 0
    events = await engine.inner.database.rows(
        "SELECT topic, originator_id, convert_from(state, 'utf8') FROM events WHERE topic LIKE 'job.%%' ORDER BY position"
    )
    for topic, stream, state in events:
        if topic == "job.started":
            started[stream] = True
            if '"low_slot":null' not in state:
                low[stream] = 1
        elif topic == "job.completed":
            started.pop(stream)
            low.pop(stream, None)
        most, most_low = max(most, len(started)), max(most_low, len(low))
    assert most <= 7
    assert most_low <= 4
