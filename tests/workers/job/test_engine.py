"""The whole engine: controller, task worker and steps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from domain.job.values import JobState, TaskState
from projections.job.queue import JobNumberSequence
from tests.projections.log.helpers import until
from tests.support.engine import Engine, process

Migrated = tuple[str, str | None]


@pytest.fixture
async def engine(database_url: str, migrated: Migrated, tmp_path: Path) -> AsyncIterator[Engine]:
    async with process(database_url, migrated[1], media_root=tmp_path) as inner:
        yield Engine(inner, JobNumberSequence(inner.database))


def runs(engine: Engine, workflow: str, step: str | None = None) -> dict[str, float]:
    """Return how many runs of a workflow's steps, or of one step, have ended with each outcome."""
    (metric,) = [each for each in engine.inner.registry.collect() if each.name == "medialedger_step_runs"]
    return {
        sample.labels["outcome"]: sample.value
        for sample in metric.samples
        if sample.name.endswith("_total") and sample.labels["workflow"] == workflow and step in (None, sample.labels["step"])
    }


async def test_a_job_runs_to_its_end(engine: Engine) -> None:
    number = await engine.accept("noop")
    job = await engine.ended(number)
    assert (job.state, job.failed) == (JobState.COMPLETED, False)
    assert await engine.topics(number) == ["accepted", "started", "task_started", "task_completed", "completed"]
    metrics = engine.inner.registry
    await until(lambda: metrics.get_sample_value("medialedger_jobs_ended_total", {"workflow": "noop", "outcome": "completed"}) == 1)
    assert sum(runs(engine, "noop").values()) == 1


async def test_tasks_follow_their_graph_and_publish_what_they_made(engine: Engine, tmp_path: Path) -> None:
    number = await engine.accept("chain")
    job = await engine.ended(number)
    assert [task.state for task in job.tasks.values()] == [TaskState.COMPLETED] * 3
    assert (tmp_path / "match" / f"{number}-2.txt").read_text() == f"{number} 2 1\n"
    assert job.tasks[3].result is not None
    assert job.tasks[3].result.files == (f"match/{number}-3.txt",)
    assert (await engine.topics(number))[2:6] == ["task_started", "outputs_committed", "task_completed", "task_started"]
    await until(lambda: not (tmp_path / ".jobs" / str(number)).exists())


async def test_branches_join(engine: Engine) -> None:
    job = await engine.ended(await engine.accept("diamond"))
    assert [task.state for task in job.tasks.values()] == [TaskState.COMPLETED] * 4


async def test_a_failure_is_tried_again_and_then_given_up(engine: Engine) -> None:
    await engine.set("retry_delay", 0)
    await engine.set("retry_limit", 2)
    good, bad = await engine.accept("failing", times=2), await engine.accept("failing", times=3)
    assert not (await engine.ended(good)).failed
    job = await engine.ended(bad)
    assert (job.state, job.failed) == (JobState.COMPLETED, True)
    assert job.reason == "the task fail failed 3 times: failed as it was told, run 3"
    assert [task.state for task in job.tasks.values()] == [TaskState.FAILED, TaskState.CANCELLED]
    assert runs(engine, "failing", "fail") == {"completed": 1, "failed": 5}


async def test_a_final_failure_is_not_tried_again(engine: Engine) -> None:
    job = await engine.ended(await engine.accept("failing", final=True))
    assert (job.failed, job.tasks[1].run) == (True, 1)


async def test_a_step_that_crashes_its_process_fails(engine: Engine) -> None:
    await engine.set("retry_limit", 0)
    job = await engine.ended(await engine.accept("crashing"))
    assert "The process of the step ended with status 3." in job.reason


@pytest.mark.parametrize(("path", "name"), [(None, ".jobs/../other/film.mp4"), ("../../../../other/film.mp4", "match/film.mp4")])
async def test_a_step_whose_process_was_taken_over_publishes_nothing_of_others(
    engine: Engine, tmp_path: Path, path: str | None, name: str
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "film.mp4").write_text("theirs")
    number = await engine.accept("claiming", path=path, name=name)
    job = await engine.ended(number)
    assert (job.failed, job.tasks[1].run) == (True, 1)
    assert job.reason.endswith("The process of the step named a file that is not its own.")
    assert await engine.topics(number) == ["accepted", "started", "task_started", "task_failed", "completed"]
    assert (tmp_path / "other" / "film.mp4").read_text() == "theirs"
    assert not (tmp_path / "match").exists()


async def test_a_broken_job_stops_at_once_and_lets_its_slot_go(engine: Engine) -> None:
    await engine.set("max_jobs", 1)
    running, waiting = await engine.accept("waiting"), await engine.accept("noop")
    await engine.until(running, lambda job: job.tasks[1].state is TaskState.RUNNING)
    assert (await engine.job(waiting)).state is JobState.QUEUED
    await engine.update(running, queue_state=JobState.BROKEN)
    await engine.ended(waiting)
    assert (await engine.job(running)).tasks[1].state is TaskState.CANCELLED


async def test_a_paused_job_ends_its_step_and_goes_on_when_resumed(engine: Engine) -> None:
    number = await engine.accept("waiting", seconds=3)
    await engine.until(number, lambda job: job.tasks[1].state is TaskState.RUNNING)
    await engine.update(number, queue_state=JobState.PAUSED)
    job = await engine.until(number, lambda job: job.tasks[1].state is TaskState.COMPLETED)
    assert (job.state, job.tasks[2].state, job.holds_slot) == (JobState.PAUSED, TaskState.WAITING, False)
    await engine.update(number, queue_state=JobState.QUEUED)
    assert not (await engine.ended(number)).failed


async def test_a_failed_job_leaves_no_files_and_a_resumed_job_reports_it(engine: Engine, tmp_path: Path) -> None:
    """Many failed jobs would otherwise fill the disk for all."""
    number = await engine.accept("keeping", times=1, final=True)
    assert (await engine.ended(number)).failed
    await until(lambda: not (tmp_path / ".jobs" / str(number)).exists())
    await engine.update(number, queue_state=JobState.PAUSED)
    await engine.update(number, queue_state=JobState.QUEUED)
    job = await engine.ended(number)
    assert (job.failed, job.tasks[1].run, job.tasks[2].run) == (True, 1, 2)
    assert job.reason.endswith("The file kept.txt, which an earlier step kept, no longer exists. Run the job again.")


async def test_what_a_failed_job_did_not_publish_bars_nobody(engine: Engine, tmp_path: Path) -> None:
    assert not (await engine.ended(await engine.accept("claiming", name="match/film.mp4"))).failed
    number = await engine.accept("claiming", name="match/film.mp4", client="playout")
    job = await engine.ended(number)
    assert job.reason.endswith("A job of another client has published match/film.mp4; it is not replaced.")
    await until(lambda: not (tmp_path / ".jobs" / str(number) / "1").exists())


async def test_a_run_that_leaves_nothing_takes_nothing_from_the_next_one(engine: Engine) -> None:
    await engine.set("retry_delay", 0)
    job = await engine.ended(await engine.accept("leaving"))
    assert job.tasks[1].result is not None
    assert (job.tasks[1].run, job.tasks[1].result.metadata) == (3, {"left": True})


async def test_never_more_than_max_jobs(engine: Engine) -> None:
    numbers = [await engine.accept("noop") for _ in range(30)]
    for number in numbers:
        await engine.ended(number)
    started, most = set[str](), 0
    topics = await engine.inner.database.rows("SELECT topic, originator_id FROM events ORDER BY position")
    for topic, stream in topics:
        if topic == "job.started":
            started.add(stream)
        elif topic == "job.completed":
            started.discard(stream)
        most = max(most, len(started))
    assert most == 2
