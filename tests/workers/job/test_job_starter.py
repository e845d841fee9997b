"""Starting jobs in the places of this process, on a real log."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.job.values import JobState, TaskPlan, TaskState
from projections.consumers.leases import shard_of
from projections.job.settings import EngineSettingsQueries
from projections.job.view import SHARDS
from tests.projections.job.jobs_made import accept, present
from tests.support.clock import HandClock
from workers.job.job_starter import JobStarter
from workers.kernel.wakeups import Waker

ALL = range(SHARDS)
GRAB = TaskPlan(id=1, name="grab", queue="windows_capture")


@dataclass
class ByHand:
    """A worker with a given number of places."""

    name: str = "work"
    places: int = 1
    expects_place: bool = False
    has_room: bool = True
    worker: str = "here 1"
    used: list[Job | None] = field(default_factory=list)

    def reserve(self, most: int) -> int:
        places = min(self.places, most)
        self.places -= places
        return places

    def use_place(self, job: Job | None, *, worker: str) -> None:
        assert worker == self.worker
        self.used.append(job)


@pytest.fixture(autouse=True)
def _at_present(clock: HandClock) -> None:
    clock.now = present()


def starter(inner: Core, *workers: ByHand) -> JobStarter:
    made = JobStarter(inner.database, inner.executor, settings=EngineSettingsQueries(inner.database), waker=Waker())
    for worker in workers:
        made.add(worker)
    return made


async def job(inner: Core, number: int) -> Job:
    aggregate = await inner.streams.load(Job.stream(number))
    assert isinstance(aggregate, Job)
    return aggregate


async def state(inner: Core, number: int) -> tuple[JobState, TaskState]:
    current = await job(inner, number)
    return current.state, current.tasks[1].state


async def written_together(inner: Core, number: int) -> bool:
    """Return True if the same command wrote `started` and `task_started` of the job."""
    rows = await inner.database.rows(
        "SELECT metadata::json->>'command_id' FROM events "
        "WHERE originator_id = %s AND topic IN ('job.started', 'job.task_started')",
        (Job.stream(number),),
    )
    return len(rows) == 2 and len(set(rows)) == 1


async def test_a_job_and_its_first_task_start_in_one_append(inner: Core) -> None:
    await accept(inner, 1)
    worker = ByHand()
    assert await starter(inner, worker).start(ALL) == 1
    assert await written_together(inner, 1)
    [used] = worker.used
    assert used is not None
    assert (used.number, used.tasks[1].state, used.tasks[1].worker) == (1, TaskState.RUNNING, "here 1")


async def test_without_a_place_it_starts_all_the_same_and_its_task_waits(inner: Core) -> None:
    await accept(inner, 1)
    await accept(inner, 2, client="other")
    worker = ByHand(places=1)
    made = starter(inner, worker)
    assert await made.start(ALL) == 2
    states = sorted([await state(inner, 1), await state(inner, 2)])
    assert states == [(JobState.STARTED, TaskState.WAITING), (JobState.STARTED, TaskState.RUNNING)]
    assert not made.backlogged


async def test_where_a_place_is_expected_the_job_stays_queued(inner: Core) -> None:
    await accept(inner, 1)
    await accept(inner, 2, GRAB)
    worker = ByHand(places=0, expects_place=True)
    made = starter(inner, worker)
    assert await made.start(ALL) == 1, "the job for a queue that has no worker here does not wait for this one's places"
    assert [await state(inner, number) for number in (1, 2)] == [
        (JobState.QUEUED, TaskState.WAITING),
        (JobState.STARTED, TaskState.WAITING),
    ]
    assert made.backlogged
    worker.places = 1
    assert await made.start(ALL) == 1
    assert await written_together(inner, 1)
    assert not made.backlogged


async def test_only_the_jobs_of_its_shards(inner: Core) -> None:
    await accept(inner, 1)
    await accept(inner, 2)
    assert await starter(inner).start([shard_of("2", SHARDS)]) == 1
    assert [(await job(inner, number)).state for number in (1, 2)] == [JobState.QUEUED, JobState.STARTED]
    assert await starter(inner).start(()) == 0


async def test_a_place_is_given_back_when_the_job_does_not_start(inner: Core, second: Core) -> None:
    """Another process has started it meanwhile, and this one decides on outdated information."""
    await accept(inner, 1)
    worker, rival = ByHand(), ByHand(worker="there 2")
    made = starter(inner, worker)
    proposed = await made._proposals(ALL, begin=0.0)
    await starter(second, rival).start(ALL)
    await made._start([(proposal, worker) for proposal in proposed])
    [used] = worker.used
    assert used is None or used.tasks[1].worker == "there 2"
    topics = await inner.database.rows("SELECT topic FROM events WHERE originator_id = 'job:1' ORDER BY position")
    assert [topic for (topic,) in topics] == ["job.accepted", "job.started", "job.task_started"]


async def test_jobs_of_all_queues_are_borrowed_after_a_while(inner: Core) -> None:
    """The two workers of one process take turns: neither discards the waiting times that the other one has seen."""
    await accept(inner, 1)
    await accept(inner, 2, GRAB)
    work, windows = ByHand(), ByHand(name="windows_capture", worker="here 2")
    made = starter(inner, work, windows)
    await made.start_unowned(work)
    await made.start_unowned(windows)
    assert [(await job(inner, number)).state for number in (1, 2)] == [JobState.QUEUED] * 2, "their owner goes first"
    while not (work.used and windows.used):
        await made.start_unowned(work)
        await made.start_unowned(windows)
    assert [await state(inner, number) for number in (1, 2)] == [(JobState.STARTED, TaskState.RUNNING)] * 2
    assert await written_together(inner, 1)
