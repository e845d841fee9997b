"""States of a job: commands in each state and the events that follow. docs/reference/api/job-engine.md#states; ADR 0021."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from domain.job import events
from domain.job.aggregate import Job
from domain.job.values import JobState, Semaphore, TaskPlan, TaskState
from domain.kernel.command import Command
from domain.kernel.errors import NotFound, Refused
from tests.domain.job.jobs_given import (
    BROKEN,
    COMPLETED,
    DUE,
    ELSEWHERE,
    IN_STATE,
    NUMBER,
    OPEN,
    PAST,
    PAUSED,
    RESUMED,
    SEMAPHORE,
    SHUT,
    SOON,
    STARTED,
    a_job,
    accepted,
    begun,
    done,
    failed,
    running,
    submission,
)
from tests.domain.scenario import NOW, THEN, Scenario, fact, given

NEW_REFERENCE = UUID(int=99)
every_state = pytest.mark.parametrize("state", JobState)
open_states = pytest.mark.parametrize("state", OPEN)
shut_states = pytest.mark.parametrize("state", SHUT)


def update(**changes: object) -> Command[Job]:
    return Job.update.on(NUMBER, changes)


def root(scenario: Scenario[Job]) -> Job:
    assert scenario.root is not None
    return scenario.root


@every_state
def test_the_scenarios_are_in_the_states_that_they_are_named_after(state: JobState) -> None:
    assert root(IN_STATE[state]).state is state
    assert root(IN_STATE[state]).ended is (state in (JobState.COMPLETED, JobState.BROKEN))


class TestAccepting:
    def test_the_first_event_holds_the_whole_request(self) -> None:
        asked = submission()
        options: dict[str, Any] = {"priority": 3, "run_at": SOON, "semaphore": SEMAPHORE, "rerun_of": 4, "headers": {"host": "x"}}
        job = (
            given(Job, NUMBER)
            .when(Job.accept.on(NUMBER, asked, **options))
            .then(fact(events.Accepted, submission=asked, **options))
        )
        assert (job.number, job.priority, job.run_at, job.semaphore, job.failed) == (NUMBER, 3, SOON, SEMAPHORE, False)

    def test_absent_fields_are_not_in_the_first_event(self) -> None:
        job = given(Job, NUMBER).when(Job.accept.on(NUMBER, submission())).then(accepted())
        assert (job.state, job.priority, job.run_at, job.semaphore) == (JobState.QUEUED, 5, None, None)

    @pytest.mark.parametrize(
        ("run_at", "semaphore", "state"),
        [
            (None, None, JobState.QUEUED),
            (PAST, None, JobState.QUEUED),
            (NOW, None, JobState.QUEUED),
            (SOON, None, JobState.SCHEDULED),
            (SOON, SEMAPHORE, JobState.SCHEDULED),
            (None, SEMAPHORE, JobState.PENDING),
            (PAST, SEMAPHORE, JobState.PENDING),
        ],
    )
    def test_time_and_semaphore_determine_the_first_state(self, run_at: Any, semaphore: Semaphore | None, state: JobState) -> None:
        after = given(Job, NUMBER).when(Job.accept.on(NUMBER, submission(), run_at=run_at, semaphore=semaphore)).after
        assert after is not None
        assert after.state is state

    def test_the_same_command_again_changes_nothing(self) -> None:
        a_job().when(Job.accept.on(NUMBER, submission())).then_nothing()

    @pytest.mark.parametrize(
        "tasks",
        [
            (TaskPlan(id=1, name="a", after=(1,)),),
            (TaskPlan(id=1, name="a", after=(2,)), TaskPlan(id=2, name="b")),
            (TaskPlan(id=1, name="a"), TaskPlan(id=1, name="b")),
        ],
    )
    def test_a_graph_with_a_cycle_or_a_duplicate_is_a_programming_error(self, tasks: tuple[TaskPlan, ...]) -> None:
        with pytest.raises(AssertionError):
            given(Job, NUMBER).when(Job.accept.on(NUMBER, submission(*tasks)))


@pytest.mark.parametrize(
    "command",
    [
        update(priority=1),
        Job.break_off.on(NUMBER),
        Job.queue.on(NUMBER, run_at=None, semaphore=None),
        Job.start.on(NUMBER, slot=1, low_slot=None, priority=5),
    ],
)
def test_a_command_to_an_unknown_job_is_refused(command: Command[Job]) -> None:
    given(Job, NUMBER).when(command).then_refused(NotFound)


class TestFromAnyState:
    @every_state
    def test_paused(self, state: JobState) -> None:
        outcome = IN_STATE[state].when(update(queue_state=JobState.PAUSED))
        assert outcome.then(*([] if state is JobState.PAUSED else [PAUSED])).state is JobState.PAUSED

    @every_state
    def test_broken(self, state: JobState) -> None:
        outcome = IN_STATE[state].when(update(queue_state=JobState.BROKEN))
        assert outcome.then(*([] if state is JobState.BROKEN else [BROKEN])).state is JobState.BROKEN

    @every_state
    def test_a_rerun_breaks_a_job_unless_it_is_broken(self, state: JobState) -> None:
        outcome = IN_STATE[state].when(Job.break_off.on(NUMBER, rerun_as=18))
        expected = [] if state is JobState.BROKEN else [fact(events.Broken, rerun_as=18)]
        assert outcome.then(*expected).state is JobState.BROKEN

    @every_state
    def test_the_priority_can_be_changed(self, state: JobState) -> None:
        job = IN_STATE[state].when(update(priority=2)).then(fact(events.PriorityChanged, previous=5, priority=2))
        assert (job.priority, job.state) == (2, state)
        IN_STATE[state].when(update(priority=5)).then_nothing()

    @every_state
    def test_an_update_of_nothing_does_nothing(self, state: JobState) -> None:
        IN_STATE[state].when(update()).then_nothing()

    @every_state
    def test_started_and_completed_are_not_for_clients_to_set(self, state: JobState) -> None:
        for wanted in (JobState.STARTED, JobState.COMPLETED, JobState.PENDING, JobState.SCHEDULED):
            IN_STATE[state].when(update(queue_state=wanted)).then_nothing()


class TestResuming:
    def test_a_paused_job_is_queued_again(self) -> None:
        assert a_job(PAUSED).when(update(queue_state=JobState.QUEUED)).then(RESUMED).state is JobState.QUEUED

    @pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.PAUSED])
    def test_only_a_paused_job_can_be_resumed(self, state: JobState) -> None:
        refusal = IN_STATE[state].when(update(queue_state=JobState.QUEUED)).then_refused(Refused)
        assert refusal.rule == f"queue_state: only a paused job can be queued; this one is {state.name.lower()}"

    def test_resumed_failed_tasks_are_tried_again_and_completed_ones_stay(self) -> None:
        job = root(running(failed(retry_at=None), fact(events.JobCompleted, failed=True, reason="no"), PAUSED, RESUMED))
        assert (job.state, job.failed, job.reason) == (JobState.QUEUED, False, "")
        task = job.tasks[1]
        assert (task.state, task.run, task.attempts, task.error) == (TaskState.WAITING, 1, 0, "")
        again = running(done(), COMPLETED, PAUSED, RESUMED)
        assert root(again).tasks[1].state is TaskState.COMPLETED

    def test_a_job_that_has_nothing_left_to_do_completes_without_a_slot(self) -> None:
        again = running(done(), COMPLETED, PAUSED, RESUMED)
        assert again.when(Job.start.on(NUMBER, slot=2, low_slot=None, priority=5)).then(COMPLETED).state is JobState.COMPLETED

    def test_resumed_cancelled_tasks_start_a_new_run(self) -> None:
        job = root(running(BROKEN, PAUSED, RESUMED, STARTED))
        task = job.tasks[1]
        assert (job.state_of(task), task.run, task.attempts) == (TaskState.READY, 1, 0)


class TestWhenItsTimeComes:
    @pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.PENDING])
    def test_a_due_job_is_queued(self, state: JobState) -> None:
        seen = root(IN_STATE[state])
        after = (
            IN_STATE[state].when(Job.queue.on(NUMBER, run_at=seen.run_at, semaphore=seen.semaphore)).then(fact(events.JobQueued))
        )
        assert after.state is JobState.QUEUED

    @pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.PENDING])
    @pytest.mark.parametrize(
        ("run_at", "semaphore"), [(SOON, None), (SOON, SEMAPHORE), (None, ELSEWHERE), (DUE, ELSEWHERE), (None, None)]
    )
    def test_a_job_changed_since_the_check_is_not_queued(self, state: JobState, run_at: Any, semaphore: Semaphore | None) -> None:
        IN_STATE[state].when(Job.queue.on(NUMBER, run_at=run_at, semaphore=semaphore)).then_nothing()

    @pytest.mark.parametrize("state", [state for state in JobState if state not in (JobState.SCHEDULED, JobState.PENDING)])
    def test_no_other_is_queued(self, state: JobState) -> None:
        IN_STATE[state].when(Job.queue.on(NUMBER, run_at=None, semaphore=None)).then_nothing()


class TestStarting:
    def test_a_queued_job_takes_its_slots(self) -> None:
        after = a_job().when(Job.start.on(NUMBER, slot=1, low_slot=1, priority=5)).then(STARTED)
        assert (after.state, after.slot, after.low_slot) == (JobState.STARTED, 1, 1)
        assert after.state_of(after.tasks[1]) is TaskState.READY

    @pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.QUEUED])
    def test_only_a_queued_job_is_started_and_only_once(self, state: JobState) -> None:
        IN_STATE[state].when(Job.start.on(NUMBER, slot=2, low_slot=None, priority=5)).then_nothing()

    def test_a_job_that_holds_a_slot_keeps_it(self) -> None:
        resumed = running(PAUSED, RESUMED)
        resumed.when(Job.start.on(NUMBER, slot=2, low_slot=None, priority=5)).then(STARTED)


class TestRescheduling:
    @open_states
    def test_to_a_later_time_it_is_scheduled(self, state: JobState) -> None:
        after = IN_STATE[state].when(update(run_at=SOON)).then(fact(events.JobScheduled, run_at=SOON))
        assert (after.state, after.run_at) == (JobState.SCHEDULED, SOON)

    @open_states
    def test_to_the_past_it_stays_what_it_is_and_is_due(self, state: JobState) -> None:
        after = IN_STATE[state].when(update(run_at=PAST)).then(fact(events.RunTimeChanged, run_at=PAST))
        assert (after.state, after.run_at) == (state, PAST)

    @shut_states
    def test_not_once_it_has_begun(self, state: JobState) -> None:
        assert IN_STATE[state].when(update(run_at=SOON)).then_refused(Refused).rule == f"run_at: the job is {state.name.lower()}"

    def test_to_the_same_time_nothing_changes(self) -> None:
        a_job(first=accepted(run_at=SOON)).when(update(run_at=SOON)).then_nothing()
        a_job(first=accepted(run_at=SOON, semaphore=SEMAPHORE)).when(update(run_at=SOON)).then_nothing()

    def test_the_same_time_makes_a_paused_job_wait_again(self) -> None:
        paused = a_job(PAUSED, first=accepted(run_at=SOON))
        assert paused.when(update(run_at=SOON)).then(fact(events.JobScheduled, run_at=SOON)).state is JobState.SCHEDULED

    def test_a_job_that_was_resumed_before_its_time_can_be_sent_back_to_wait_for_it(self) -> None:
        resumed = a_job(PAUSED, RESUMED, first=accepted(run_at=SOON))
        assert resumed.when(update(run_at=SOON)).then(fact(events.JobScheduled, run_at=SOON)).state is JobState.SCHEDULED

    def test_one_bad_change_changes_nothing(self) -> None:
        a_job(STARTED).when(update(priority=1, run_at=SOON)).then_refused(Refused)


class TestGates:
    @pytest.mark.parametrize(
        ("before", "semaphore", "after"),
        [
            (JobState.QUEUED, SEMAPHORE, JobState.PENDING),
            (JobState.PENDING, None, JobState.QUEUED),
            (JobState.PENDING, ELSEWHERE, JobState.PENDING),
            (JobState.SCHEDULED, SEMAPHORE, JobState.SCHEDULED),
            (JobState.PAUSED, SEMAPHORE, JobState.PAUSED),
        ],
    )
    def test_a_semaphore_can_be_set_until_the_job_starts(
        self, before: JobState, semaphore: Semaphore | None, after: JobState
    ) -> None:
        job = IN_STATE[before].when(update(semaphore=semaphore)).then(fact(events.SemaphoreChanged, semaphore=semaphore))
        assert (job.state, job.semaphore) == (after, semaphore)

    def test_the_same_semaphore_changes_nothing(self) -> None:
        IN_STATE[JobState.PENDING].when(update(semaphore=SEMAPHORE)).then_nothing()
        a_job().when(update(semaphore=None)).then_nothing()

    def test_the_same_secret_encrypted_again_is_the_same_semaphore(self) -> None:
        assert ELSEWHERE.sealed_url is not None
        resealed = Semaphore(url=ELSEWHERE.url, sealed_url=ELSEWHERE.sealed_url.model_copy(update={"reference": NEW_REFERENCE}))
        a_job(first=accepted(semaphore=ELSEWHERE)).when(update(semaphore=resealed)).then_nothing()

    @shut_states
    def test_not_afterwards(self, state: JobState) -> None:
        refusal = IN_STATE[state].when(update(semaphore=SEMAPHORE)).then_refused(Refused)
        assert refusal.rule == f"sempahore_url: the job is {state.name.lower()}"


def test_changes_are_made_in_the_order_priority_semaphore_time_state() -> None:
    changes = update(queue_state=JobState.PAUSED, run_at=SOON, semaphore=SEMAPHORE, priority=1)
    job = (
        a_job()
        .when(changes)
        .then(
            fact(events.PriorityChanged, previous=5, priority=1),
            fact(events.SemaphoreChanged, semaphore=SEMAPHORE),
            fact(events.JobScheduled, run_at=SOON),
            PAUSED,
        )
    )
    assert job.state is JobState.PAUSED


def test_time_never_runs_backwards_in_a_job() -> None:
    after = a_job().when(Job.start.on(NUMBER, slot=1, low_slot=None, priority=5), at=THEN.replace(year=2030)).after
    assert after is not None
    assert after.modified_on == THEN


def test_a_step_that_runs_may_end_while_its_job_is_paused_and_then_the_job_is_done() -> None:
    assert root(running(PAUSED, done(), COMPLETED)).state is JobState.COMPLETED
    assert root(a_job(STARTED, begun(), PAUSED)).tasks[1].in_progress


def test_slots_that_were_chosen_for_another_priority_start_nothing() -> None:
    """Otherwise a job that is no longer urgent would take a slot that is reserved for urgent jobs."""
    less_urgent = a_job(fact(events.PriorityChanged, previous=3, priority=7))
    less_urgent.when(Job.start.on(NUMBER, slot=1, low_slot=None, priority=3)).then_nothing()
    less_urgent.when(Job.start.on(NUMBER, slot=1, low_slot=1, priority=7)).then(STARTED)
