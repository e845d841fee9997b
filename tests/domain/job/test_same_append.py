"""A worker that has a place starts a task in the append that makes it ready. ADR 0037."""

from __future__ import annotations

from domain.job.aggregate import Job
from domain.job.values import TaskPlan
from tests.domain.job.jobs_given import (
    COMPLETED,
    FETCH,
    NUMBER,
    PAUSED,
    RESUMED,
    SOON,
    STARTED,
    STORE,
    a_job,
    accepted,
    begun,
    done,
    failed,
    running,
)

WORK = {"work": "w"}


def test_a_job_starts_with_its_first_task() -> None:
    a_job(first=accepted(FETCH, STORE)).when(Job.start.on(NUMBER, slot=1, low_slot=1, priority=5, workers=WORK)).then(
        STARTED, begun()
    )


def test_only_in_the_queue_of_the_worker() -> None:
    grab = TaskPlan(id=1, name="grab", queue="windows_capture")
    both = accepted(grab, TaskPlan(id=2, name="fetch"))
    a_job(first=accepted(grab)).when(Job.start.on(NUMBER, slot=1, low_slot=1, priority=5, workers=WORK)).then(STARTED)
    a_job(first=both).when(Job.start.on(NUMBER, slot=1, low_slot=1, priority=5, workers=WORK)).then(
        STARTED, begun(plan=TaskPlan(id=2, name="fetch"))
    )


def test_a_resumed_job_starts_with_the_next_run_of_what_is_left() -> None:
    resumed = running(failed(), PAUSED, RESUMED)
    resumed.when(Job.start.on(NUMBER, slot=1, low_slot=1, priority=5, workers=WORK)).then(STARTED, begun(2))


def test_a_retry_that_is_not_due_is_not_started() -> None:
    later = running(failed(retry_at=SOON), PAUSED, RESUMED)
    later.when(Job.start.on(NUMBER, slot=1, low_slot=1, priority=5, workers=WORK)).then(STARTED)


def test_no_task_starts_where_the_job_does_not() -> None:
    a_job(first=accepted(priority=6)).when(Job.start.on(NUMBER, slot=1, low_slot=1, priority=5, workers=WORK)).then_nothing()
    a_job(PAUSED).when(Job.start.on(NUMBER, slot=1, low_slot=1, priority=5, workers=WORK)).then_nothing()


def test_the_next_task_starts_when_one_is_completed() -> None:
    chain = a_job(STARTED, begun(), first=accepted(FETCH, STORE))
    chain.when(Job.complete_task.on(NUMBER, 1, run=1, workers=WORK)).then(done(), begun(plan=STORE))
    chain.when(Job.complete_task.on(NUMBER, 1, run=1)).then(done())


def test_a_repeat_of_the_completion_starts_nothing_more() -> None:
    chain = a_job(STARTED, begun(), done(), begun(plan=STORE), first=accepted(FETCH, STORE))
    chain.when(Job.complete_task.on(NUMBER, 1, run=1, workers=WORK)).then_nothing()


def test_nothing_starts_in_a_paused_job_and_after_the_last_task() -> None:
    paused = a_job(STARTED, begun(), PAUSED, first=accepted(FETCH, STORE))
    paused.when(Job.complete_task.on(NUMBER, 1, run=1, workers=WORK)).then(done())
    running().when(Job.complete_task.on(NUMBER, 1, run=1, workers=WORK)).then(done(), COMPLETED)
