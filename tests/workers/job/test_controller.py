"""The controller starts the jobs that no worker takes, on a real log."""

from __future__ import annotations

import pytest

from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.job.values import JobState, TaskPlan, TaskState
from domain.kernel.ids import new_id
from projections.consumers.leases import ShardLeases, shard_of
from projections.job.admission import QueuedJobs
from projections.job.view import SHARDS
from tests.projections.job.jobs_made import accept, begin, complete, present, start, update
from tests.support.clock import HandClock
from workers.job.controller import CONSUMER, Controller
from workers.kernel.wakeups import Waker

ALL = range(SHARDS)
GRAB = TaskPlan(id=1, name="grab", queue="windows_capture")


@pytest.fixture(autouse=True)
def _at_present(clock: HandClock) -> None:
    clock.now = present()


def controller(inner: Core) -> Controller:
    leases = ShardLeases(inner.database, CONSUMER, shards=SHARDS, member=new_id())
    return Controller(QueuedJobs(inner.database), inner.executor, leases=leases, waker=Waker())


async def job(inner: Core, number: int) -> Job:
    aggregate = await inner.streams.load(Job.stream(number))
    assert isinstance(aggregate, Job)
    return aggregate


async def states(inner: Core, *numbers: int) -> list[JobState]:
    return [(await job(inner, number)).state for number in numbers]


async def test_a_job_that_is_first_in_two_looks_starts_and_its_task_waits(inner: Core) -> None:
    await accept(inner, 1)
    await accept(inner, 2, client="other")
    looking = controller(inner)
    await looking.start_waiting(ALL)
    assert await states(inner, 1, 2) == [JobState.QUEUED] * 2, "a worker with a free place goes first"
    await looking.start_waiting(ALL)
    assert await states(inner, 1, 2) == [JobState.STARTED] * 2
    assert (await job(inner, 1)).tasks[1].state is TaskState.WAITING


async def test_a_queue_that_moves_is_left_to_the_workers(inner: Core) -> None:
    for number in (1, 2):
        await accept(inner, number)
    await accept(inner, 3, GRAB, client="other")
    looking = controller(inner)
    await looking.start_waiting(ALL)
    await start(inner, 1, slot=1, low_slot=1)  # by a worker
    await looking.start_waiting(ALL)
    assert await states(inner, 2, 3) == [JobState.QUEUED, JobState.STARTED]
    await looking.start_waiting(ALL)
    assert await states(inner, 2) == [JobState.STARTED]


async def test_only_the_jobs_of_its_shards(inner: Core) -> None:
    await accept(inner, 1)
    await accept(inner, 2)
    looking = controller(inner)
    for _ in range(2):
        await looking.start_waiting(())
    for _ in range(2):
        await looking.start_waiting([shard_of("2", SHARDS)])
    assert await states(inner, 1, 2) == [JobState.QUEUED, JobState.STARTED]


async def test_a_job_that_was_resumed_while_its_last_step_runs_starts_at_once(inner: Core) -> None:
    await accept(inner, 1)
    await start(inner, 1, slot=1, low_slot=1)
    await begin(inner, 1)
    await update(inner, 1, queue_state=JobState.PAUSED)
    await update(inner, 1, queue_state=JobState.QUEUED)
    await controller(inner).start_waiting(ALL)
    assert await states(inner, 1) == [JobState.STARTED], "no worker has to take a task of it"
    await complete(inner, 1)
    assert await states(inner, 1) == [JobState.COMPLETED]


async def test_a_job_that_another_process_starts_meanwhile_starts_once(inner: Core, second: Core) -> None:
    await accept(inner, 1)
    looking, other = controller(inner), controller(second)
    await looking.start_waiting(ALL)
    await other.start_waiting(ALL)
    proposals = looking._waiting(await QueuedJobs(inner.database).proposals(ALL))
    await other.start_waiting(ALL)
    await looking._start(proposals)
    topics = await inner.database.rows("SELECT topic FROM events WHERE originator_id = 'job:1' ORDER BY position")
    assert [topic for (topic,) in topics] == ["job.accepted", "job.started"]
