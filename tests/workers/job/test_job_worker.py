"""The loop of a worker of jobs: what it starts together, in which order, and what it reads."""

from __future__ import annotations

from pathlib import Path

from domain.job.aggregate import Job
from domain.job.values import JobState, TaskState
from projections.job.admission import AdmittedJob, QueuedJob
from projections.job.queue import QueuedRun, ReadyTask
from tests.support.engine import Engine, process
from workers.job.job_worker import OverdueProposals, urgency

Migrated = tuple[str, str | None]


async def commands(engine: Engine, number: int) -> dict[str, str]:
    """Return the commands that wrote the events of a job, by topic."""
    rows = await engine.inner.database.rows(
        "SELECT topic, metadata::json->>'command_id' FROM events WHERE originator_id = %s ORDER BY position", (Job.stream(number),)
    )
    return {topic.removeprefix("job."): command for topic, command in rows}


async def started(engine: Engine) -> list[tuple[int, str]]:
    """Return the job and the name of each task, in the order in which they were started."""
    rows = await engine.inner.database.rows(
        "SELECT originator_id, convert_from(state, 'utf8')::json->>'name' FROM events WHERE topic = 'job.task_started' "
        "ORDER BY position"
    )
    return [(int(stream.partition(":")[2]), name) for stream, name in rows]


async def test_a_worker_starts_a_job_with_its_first_task_without_a_controller(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    number = await engine.accept("noop")
    async with process(database_url, migrated[1], media_root=tmp_path, roles=("work",)):
        await engine.ended(number)
    wrote = await commands(engine, number)
    assert wrote["started"] == wrote["task_started"]
    assert wrote["task_completed"] == wrote["completed"]


async def test_many_jobs_start_in_few_appends_and_report_in_few(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    await engine.set("max_jobs", 50)
    numbers = [await engine.accept("noop") for _ in range(40)]
    before = await engine.inner.database.rows("SELECT count(*) FROM commits")
    async with process(database_url, migrated[1], media_root=tmp_path, roles=("work",), steps=20):
        for number in numbers:
            await engine.ended(number)
    [(commits,)] = await engine.inner.database.rows("SELECT count(*) - %s FROM commits", before[0])
    assert commits < len(numbers)


async def test_a_job_goes_on_unless_more_urgent_work_waits(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    await engine.set("max_jobs", 50)
    async with process(database_url, migrated[1], media_root=tmp_path, roles=("work",), steps=1):
        long = await engine.accept("waiting", seconds=2)
        await engine.until(long, lambda job: job.tasks[1].state is TaskState.RUNNING)
        late, urgent = await engine.accept("noop", priority=9), await engine.accept("noop", priority=1)
        for number in (late, urgent, long):
            await engine.ended(number)
        alone = await engine.accept("chain")
        await engine.ended(alone)
    assert [job for job, _ in await started(engine)] == [long, urgent, long, late, *[alone] * 3]
    wrote = await commands(engine, alone)
    rows = await engine.inner.database.rows(
        "SELECT count(*), count(DISTINCT metadata::json->>'command_id') FROM events "
        "WHERE originator_id = %s AND topic IN ('job.task_completed', 'job.task_started', 'job.completed')",
        (Job.stream(alone),),
    )
    assert rows == [(7, 4)], f"each task starts with the end of the one before: {wrote}"


async def test_a_queued_job_waits_for_a_place_where_no_controller_starts_it(
    engine: Engine, database_url: str, migrated: Migrated, tmp_path: Path
) -> None:
    await engine.set("max_jobs", 50)
    async with process(database_url, migrated[1], media_root=tmp_path, roles=("work",), steps=1):
        long = await engine.accept("waiting", seconds=600)
        await engine.until(long, lambda job: job.tasks[1].state is TaskState.RUNNING)
        waiting = await engine.accept("noop")
        assert (await engine.job(waiting)).state is JobState.QUEUED
        await engine.update(long, queue_state=JobState.BROKEN)
        await engine.ended(waiting)


def test_work_is_started_by_priority_then_age_then_task() -> None:
    tasks = [ReadyTask(QueuedRun(job, task, 1), False, 0, priority, "studio", "") for job, task, priority in ((4, 1, 5), (1, 2, 5))]
    jobs = [AdmittedJob(QueuedJob(job, priority), 1, None) for job, priority in ((2, 5), (9, 1), (1, 5))]
    assert sorted([*map(urgency, tasks), *map(urgency, jobs)]) == [
        (1, 9, 0),
        (5, 1, 0),
        (5, 1, 2),
        (5, 2, 0),
        (5, 4, 1),
    ]


def test_what_waits_is_borrowed_only_when_it_was_seen_for_long_enough() -> None:
    first, second, third = (AdmittedJob(QueuedJob(number, 5), 1, None) for number in (1, 2, 3))
    waiting = OverdueProposals(0.05)
    assert waiting.update([first, second], now=10.0) == []
    assert waiting.update([first, second, third], now=10.04) == []
    assert waiting.update([second, third], now=10.06) == [second]
    assert waiting.update([first, second], now=10.2) == [second], "the first one had gone and come back"
