"""Runs of tasks: each has a number, and only the current run may report how it ended. ADR 0021."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.job import events
from domain.job.aggregate import Job
from domain.job.values import Fenced, JobState, Result, TaskPlan, TaskState
from domain.kernel.command import Command
from tests.domain.job.jobs_given import (
    BROKEN,
    COMPLETED,
    LINE,
    NUMBER,
    OUTPUTS,
    PAUSED,
    RESULT,
    RESUMED,
    RETRIES,
    STARTED,
    STORE,
    a_job,
    abandoned,
    accepted,
    begun,
    committed,
    done,
    failed,
    interrupted,
    lost,
    running,
)
from tests.domain.scenario import NOW, THEN, Fact, Scenario

LATER = NOW + RETRIES.delay


def start(run: int = 1, task: int = 1) -> Command[Job]:
    return Job.start_task.on(NUMBER, task, run=run, worker="w")


def of_run(run: int, task: int = 1) -> dict[str, Command[Job]]:
    """Everything that a worker says of a run that has begun."""
    return {
        "commit": Job.commit_outputs.on(NUMBER, task, run=run, outputs=OUTPUTS, result=RESULT),
        "complete": Job.complete_task.on(NUMBER, task, run=run, result=RESULT),
        "fail": Job.fail_task.on(NUMBER, task, run=run, error="no", retries=RETRIES),
        "expire": Job.expire_lease.on(NUMBER, task, run=run, retries=RETRIES),
        "interrupt": Job.interrupt_task.on(NUMBER, task, run=run),
    }


FENCED = ("commit", "complete", "fail")
"""The other two report about a run of another worker; a late report changes nothing."""
every_word = pytest.mark.parametrize("word", list(of_run(1)))


def job_of(scenario: Scenario[Job]) -> Job:
    assert scenario.root is not None
    return scenario.root


def states(scenario: Scenario[Job]) -> dict[int, TaskState]:
    job = job_of(scenario)
    return {key: job.state_of(task) for key, task in job.tasks.items()}


class TestStarting:
    def test_a_ready_task_begins_its_next_run(self) -> None:
        job = a_job(STARTED).when(start()).then(begun())
        task = job.tasks[1]
        assert (task.state, task.run, task.attempts, task.worker, task.started_at) == (TaskState.RUNNING, 1, 1, "w", NOW)

    @pytest.mark.parametrize("run", [-1, 0, 2, 3])
    def test_a_run_starts_with_the_next_number_only(self, run: int) -> None:
        a_job(STARTED).when(start(run)).then_refused(Fenced)

    @pytest.mark.parametrize(
        "scenario",
        [
            a_job(),
            a_job(PAUSED),
            a_job(STARTED, PAUSED),
            a_job(BROKEN),
            running(committed()),
            running(done(), COMPLETED),
            running(PAUSED, RESUMED),
        ],
    )
    def test_not_unless_it_is_ready(self, scenario: Scenario[Job]) -> None:
        run = job_of(scenario).tasks[1].run
        scenario.when(start(run + 1)).then_refused(Fenced)

    def test_no_task_that_the_job_does_not_have(self) -> None:
        a_job(STARTED).when(start(task=9)).then_refused(Fenced)
        for word, command in of_run(1, task=9).items():
            assert running().when(command).then_refused(Fenced), word

    def test_a_run_is_started_once_by_one_worker(self) -> None:
        running().when(start()).then_nothing()
        running().when(Job.start_task.on(NUMBER, 1, run=1, worker="another")).then_refused(Fenced)
        running(committed()).when(start()).then_refused(Fenced)


class TestFencing:
    @every_word
    @pytest.mark.parametrize("run", [0, 1, 3])
    def test_a_command_about_another_run_is_fenced(self, word: str, run: int) -> None:
        second = running(failed(), begun(2))
        outcome = second.when(of_run(run)[word])
        if word in FENCED:
            outcome.then_refused(Fenced)
        else:
            outcome.then_nothing()

    @every_word
    @pytest.mark.parametrize(
        "scenario",
        [
            a_job(STARTED),
            running(failed()),
            running(lost()),
            running(interrupted()),
            running(BROKEN),
            running(BROKEN, PAUSED, RESUMED, STARTED),
            running(failed(retry_at=None), abandoned("no")),
        ],
        ids=["not begun", "failed", "lost", "given back", "broken off", "broken off and resumed", "given up"],
    )
    def test_a_command_about_an_ended_run_is_fenced(self, word: str, scenario: Scenario[Job]) -> None:
        outcome = scenario.when(of_run(1)[word])
        if word in FENCED:
            outcome.then_refused(Fenced)
        else:
            outcome.then_nothing()

    @every_word
    def test_a_completed_task_does_not_change(self, word: str) -> None:
        outcome = running(done(), COMPLETED).when(of_run(1)[word])
        if word in ("commit", "fail"):
            outcome.then_refused(Fenced)
        else:
            outcome.then_nothing()


class TestEnding:
    def test_a_step_without_files_completes_its_task(self) -> None:
        job = running().when(Job.complete_task.on(NUMBER, 1, run=1, result=RESULT)).then(done(result=RESULT), COMPLETED)
        task = job.tasks[1]
        assert (job.state, job.failed, job.modified_on) == (JobState.COMPLETED, False, NOW)
        assert (task.state, task.result, task.ended_at) == (TaskState.COMPLETED, RESULT, NOW)

    def test_outputs_are_committed_before_they_are_published(self) -> None:
        job = running().when(Job.commit_outputs.on(NUMBER, 1, run=1, outputs=OUTPUTS, result=RESULT)).then(committed())
        task = job.tasks[1]
        assert (task.state, task.outputs, task.result) == (TaskState.PUBLISHING, OUTPUTS, RESULT)
        assert running(committed()).when(Job.complete_task.on(NUMBER, 1, run=1)).then(done(), COMPLETED).tasks[1].result == RESULT

    def test_a_repeated_command_changes_nothing(self) -> None:
        running(committed()).when(Job.commit_outputs.on(NUMBER, 1, run=1, outputs=OUTPUTS, result=RESULT)).then_nothing()
        running(committed(), done(), COMPLETED).when(Job.complete_task.on(NUMBER, 1, run=1)).then_nothing()

    def test_a_publishing_run_neither_expires_nor_is_interrupted(self) -> None:
        running(committed()).when(Job.expire_lease.on(NUMBER, 1, run=1, retries=RETRIES)).then_nothing()
        running(committed()).when(Job.interrupt_task.on(NUMBER, 1, run=1)).then_nothing()

    def test_publishing_can_fail_and_the_next_run_begins_without_its_files(self) -> None:
        job = (
            running(committed())
            .when(Job.fail_task.on(NUMBER, 1, run=1, error="disk full", retries=RETRIES))
            .then(failed(retry_at=LATER, error="disk full"))
        )
        assert job.state_of(job.tasks[1]) is TaskState.READY
        task = job_of(running(committed(), failed(), begun(2))).tasks[1]
        assert (task.outputs, task.result) == ((), None)

    def test_it_ends_while_its_job_is_paused_or_waits_for_a_slot_again(self) -> None:
        for since in ([PAUSED], [PAUSED, RESUMED]):
            job = running(*since).when(Job.complete_task.on(NUMBER, 1, run=1, result=RESULT)).then(done(result=RESULT), COMPLETED)
            assert job.state is JobState.COMPLETED


def at_attempt(number: int) -> Scenario[Job]:
    """Return a job whose task has failed `number - 1` times and is running again."""
    before = [fact_ for run in range(1, number) for fact_ in (begun(run), failed(run))]
    return a_job(STARTED, *before, begun(number))


class TestRetries:
    @pytest.mark.parametrize("attempt", [1, 2, 3])
    def test_a_failed_task_is_tried_again_later(self, attempt: int) -> None:
        command = Job.fail_task.on(NUMBER, 1, run=attempt, error="no", retries=RETRIES)
        job = at_attempt(attempt).when(command).then(failed(attempt, retry_at=LATER))
        task = job.tasks[1]
        assert (job.state_of(task), task.due_at, task.error, task.attempts) == (TaskState.READY, LATER, "no", attempt)

    def test_after_the_last_retry_the_job_is_abandoned(self) -> None:
        command = Job.fail_task.on(NUMBER, 1, run=4, error="no", retries=RETRIES)
        job = at_attempt(4).when(command).then(failed(4, retry_at=None), abandoned("the task fetch failed 4 times: no"))
        assert (job.state, job.failed, job.tasks[1].state) == (JobState.COMPLETED, True, TaskState.FAILED)

    def test_without_retries_the_first_failure_is_final(self) -> None:
        command = Job.fail_task.on(NUMBER, 1, run=1, error="no", retries=replace(RETRIES, limit=0))
        running().when(command).then(failed(retry_at=None), abandoned("the task fetch failed: no"))

    def test_a_final_failure_is_not_retried(self) -> None:
        command = Job.fail_task.on(NUMBER, 1, run=1, error="404", retries=RETRIES, final=True)
        running().when(command).then(failed(retry_at=None, error="404"), abandoned("the task fetch failed: 404"))

    def test_the_owner_is_told_the_cause_of_a_failure(self) -> None:
        command = Job.fail_task.on(NUMBER, 1, run=1, error="403", retries=RETRIES, final=True, cause="destination")
        why = abandoned("the task fetch failed: 403", cause="destination")
        running().when(command).then(failed(retry_at=None, error="403"), why)

    def test_a_limit_that_is_lowered_meanwhile_counts_at_once(self) -> None:
        command = Job.fail_task.on(NUMBER, 1, run=3, error="no", retries=replace(RETRIES, limit=1))
        at_attempt(3).when(command).then(failed(3, retry_at=None), abandoned("the task fetch failed 3 times: no"))

    def test_a_paused_job_waits_with_the_retry(self) -> None:
        job = running(PAUSED).when(Job.fail_task.on(NUMBER, 1, run=1, error="no", retries=RETRIES)).then(failed(retry_at=LATER))
        assert (job.state, job.state_of(job.tasks[1])) == (JobState.PAUSED, TaskState.WAITING)

    def test_the_last_failure_abandons_a_paused_job(self) -> None:
        command = Job.fail_task.on(NUMBER, 1, run=1, error="no", retries=RETRIES, final=True)
        outcome = running(PAUSED).when(command)
        assert outcome.then(failed(retry_at=None), abandoned("the task fetch failed: no")).state is JobState.COMPLETED


class TestLostWorkers:
    def test_a_lost_run_counts_as_an_attempt(self) -> None:
        job = running().when(Job.expire_lease.on(NUMBER, 1, run=1, retries=RETRIES)).then(lost(retry_at=LATER))
        task = job.tasks[1]
        assert (job.state_of(task), task.attempts, task.lost) == (TaskState.READY, 1, 1)
        assert (task.due_at, task.error) == (LATER, "its worker was lost")

    def test_two_in_a_row_fail_the_job_with_the_reason(self) -> None:
        why = abandoned("the worker of the task fetch was lost 2 times in a row")
        job = (
            running(lost(), begun(2)).when(Job.expire_lease.on(NUMBER, 1, run=2, retries=RETRIES)).then(lost(2, retry_at=None), why)
        )
        assert (job.state, job.failed, job.reason) == (JobState.COMPLETED, True, why.facts["reason"])

    @pytest.mark.parametrize("between", [failed(2), interrupted(2)])
    def test_a_report_between_two_lost_runs_resets_the_count(self, between: Fact) -> None:
        attempt = 2 if between.event is events.TaskInterrupted else 3
        scenario = running(lost(), begun(2), between, begun(3, attempt=attempt))
        scenario.when(Job.expire_lease.on(NUMBER, 1, run=3, retries=RETRIES)).then(lost(3, attempt=attempt, retry_at=LATER))

    def test_the_last_attempt_may_be_lost_too(self) -> None:
        why = abandoned("the worker of the task fetch was lost at attempt 1, the last one")
        running().when(Job.expire_lease.on(NUMBER, 1, run=1, retries=replace(RETRIES, limit=0))).then(lost(retry_at=None), why)

    def test_a_resume_resets_the_count_of_lost_runs(self) -> None:
        given_up = running(lost(), begun(2), lost(2, retry_at=None), abandoned("lost"), PAUSED, RESUMED, STARTED)
        again = Scenario(Job, NUMBER, [*given_up.history])
        job = again.when(start(3)).then(begun(3, attempt=1))
        assert (job.tasks[1].lost, job.tasks[1].attempts) == (0, 1)


class TestGivingBack:
    def test_it_is_ready_at_once_and_no_attempt_is_counted(self) -> None:
        job = running().when(Job.interrupt_task.on(NUMBER, 1, run=1)).then(interrupted())
        task = job.tasks[1]
        assert (job.state_of(task), task.attempts, task.run, task.due_at) == (TaskState.READY, 0, 1, None)

    def test_the_next_run_has_another_number(self) -> None:
        running(interrupted()).when(start(1)).then_refused(Fenced)
        running(interrupted()).when(start(2)).then(begun(2, attempt=1))

    def test_any_number_of_times(self) -> None:
        history = [fact_ for run in range(1, 20) for fact_ in (begun(run, attempt=1), interrupted(run))]
        a_job(STARTED, *history, begun(20, attempt=1)).when(Job.fail_task.on(NUMBER, 1, run=20, error="no", retries=RETRIES)).then(
            failed(20, attempt=1, retry_at=LATER)
        )


DIAMOND = (
    TaskPlan(id=1, name="fetch"),
    TaskPlan(id=2, name="left", after=(1,)),
    TaskPlan(id=3, name="right", queue="windows_capture", after=(1,)),
    TaskPlan(id=4, name="join", after=(2, 3)),
)


def diamond(*since: Fact) -> Scenario[Job]:
    return a_job(STARTED, *since, first=accepted(*DIAMOND))


def through(*plans: TaskPlan) -> list[Fact]:
    return [fact_ for plan in plans for fact_ in (begun(plan=plan), done(plan=plan))]


W, R, U, C, F, X = (
    TaskState.WAITING,
    TaskState.READY,
    TaskState.RUNNING,
    TaskState.COMPLETED,
    TaskState.FAILED,
    TaskState.CANCELLED,
)


class TestGraphs:
    @pytest.mark.parametrize(
        ("scenario", "expected"),
        [
            (a_job(first=accepted(*DIAMOND)), (W, W, W, W)),
            (diamond(), (R, W, W, W)),
            (diamond(begun()), (U, W, W, W)),
            (diamond(*through(DIAMOND[0])), (C, R, R, W)),
            (diamond(*through(*DIAMOND[:2])), (C, C, R, W)),
            (diamond(*through(*DIAMOND[:3])), (C, C, C, R)),
            (diamond(*through(*DIAMOND[:2]), PAUSED), (C, C, W, W)),
            (diamond(*through(*DIAMOND[:2]), PAUSED, RESUMED, STARTED), (C, C, R, W)),
            (diamond(*through(*DIAMOND[:2]), begun(plan=DIAMOND[2]), BROKEN), (C, C, X, X)),
        ],
    )
    def test_a_task_is_ready_when_all_before_it_are_done(self, scenario: Scenario[Job], expected: tuple[TaskState, ...]) -> None:
        assert tuple(states(scenario).values()) == expected

    def test_branches_run_at_the_same_time(self) -> None:
        scenario = diamond(*through(DIAMOND[0]), begun(plan=DIAMOND[1]))
        scenario.when(start(task=3)).then(begun(plan=DIAMOND[2]))

    def test_the_job_is_done_when_the_last_of_them_is(self) -> None:
        scenario = diamond(*through(*DIAMOND[:3]), begun(plan=DIAMOND[3]))
        scenario.when(Job.complete_task.on(NUMBER, 4, run=1)).then(done(plan=DIAMOND[3]), COMPLETED)
        diamond(begun()).when(Job.complete_task.on(NUMBER, 1, run=1)).then(done())

    def test_the_first_task_given_up_cancels_the_others(self) -> None:
        scenario = diamond(*through(DIAMOND[0]), begun(plan=DIAMOND[1]), begun(plan=DIAMOND[2]))
        command = Job.fail_task.on(NUMBER, 2, run=1, error="no", retries=RETRIES, final=True)
        job = scenario.when(command).then(failed(retry_at=None, plan=DIAMOND[1]), abandoned("the task left failed: no"))
        assert [task.state for task in job.tasks.values()] == [C, F, X, X]
        assert job.tasks[3].ended_at == NOW

    def test_a_cancelled_branch_is_fenced(self) -> None:
        scenario = diamond(
            *through(DIAMOND[0]),
            begun(plan=DIAMOND[1]),
            begun(plan=DIAMOND[2]),
            failed(retry_at=None, plan=DIAMOND[1]),
            abandoned("no"),
        )
        for word in FENCED:
            scenario.when(of_run(1, task=3)[word]).then_refused(Fenced)

    def test_runs_are_counted_task_by_task(self) -> None:
        scenario = diamond(begun(), failed(), begun(2), done(2))
        scenario.when(start(task=2)).then(begun(plan=DIAMOND[1]))


def test_steps_of_a_line_come_one_after_the_other() -> None:
    line = a_job(STARTED, first=accepted(*LINE))
    line.when(start(task=2)).then_refused(Fenced)
    after = (
        a_job(STARTED, begun(), first=accepted(*LINE))
        .when(Job.complete_task.on(NUMBER, 1, run=1, result=Result()))
        .then(done(result=Result()))
    )
    assert after.state_of(after.tasks[2]) is TaskState.READY
    a_job(STARTED, *through(*LINE[:1]), first=accepted(*LINE)).when(start(task=2)).then(begun(plan=STORE))


@pytest.mark.parametrize("delay", [0.0, 0.25, 86_400.0])
def test_a_delay_may_be_any_length(delay: float) -> None:
    retries: Any = replace(RETRIES, delay=timedelta(seconds=delay))
    job = running().when(Job.fail_task.on(NUMBER, 1, run=1, error="no", retries=retries)).after
    assert job is not None
    assert job.tasks[1].due_at == NOW + timedelta(seconds=delay)
    assert job.tasks[1].started_at == THEN
