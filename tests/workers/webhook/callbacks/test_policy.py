"""Notices of a job for each of its domain events."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from domain.job import events
from domain.job.aggregate import Job
from domain.job.values import JobState
from domain.kernel.command import Command
from tests.domain.scenario import NOW, Fact, Scenario, fact, given
from tests.workers.webhook.callbacks.jobs_given import FETCHED, FILES, OUTPUTS, RETRIES, submission
from workers.webhook.callbacks.policy import payload, sample

ACCEPTED = fact(events.Accepted, submission=submission(custom_data={"a": [1]}), priority=5)
STARTED = fact(events.JobStarted, slot=1, low_slot=None)
RETRY = NOW + timedelta(seconds=30)
COMMON = {
    "job_id": 17,
    "workflow": "http_fetch_verify",
    "content_id": "film",
    "message": "",
    "files": [],
    "metadata": {},
    "custom_data": {"a": [1]},
    "time": "2031-01-02T13:30:00.000Z",
    "client": "studio",
}


def run_of(task: int, run: int = 1, attempt: int = 1) -> Fact:
    return fact(events.TaskStarted, task=task, name="fetch" if task == 1 else "verify", run=run, attempt=attempt, worker="w")


def fetched() -> tuple[Fact, ...]:
    committed = fact(events.OutputsCommitted, task=1, name="fetch", run=1, outputs=OUTPUTS, result=FETCHED)
    return run_of(1), committed, fact(events.TaskCompleted, task=1, name="fetch", run=1)


def notices_of(scenario: Scenario[Job], command: Command[Job]) -> list[dict[str, Any]]:
    """Return the notices of a command's events, each with the job after it."""
    outcome = scenario.when(command)
    assert outcome.refusal is None
    result, job = [], scenario.root
    for event in outcome.happened:
        job = event.mutate(job)
        assert job is not None
        notice = payload(event, job)
        if notice is not None:
            result.append(notice)
    return result


def a_job(*since: Fact) -> Scenario[Job]:
    return given(Job, 17, ACCEPTED, *since)


def test_the_notice_of_a_start_has_the_custom_data_of_the_client() -> None:
    [notice] = notices_of(a_job(), Job.start.on(17, slot=1, low_slot=None, priority=5))
    assert notice == {**COMMON, "status": "started"}
    assert list(notice)[:2] == ["job_id", "status"]


def test_notices_of_tasks_have_name_and_attempt() -> None:
    assert notices_of(a_job(STARTED), Job.start_task.on(17, 1, run=1, worker="w")) == [
        {**COMMON, "status": "task_started", "task": "fetch", "attempt": 1}
    ]
    committed = a_job(STARTED, *fetched()[:2])
    assert notices_of(committed, Job.complete_task.on(17, 1, run=1)) == [
        {
            **COMMON,
            "status": "task_completed",
            "message": "2 files",
            "files": list(FILES),
            "metadata": {"bytes": 7},
            "task": "fetch",
            "attempt": 1,
        }
    ]


def test_the_notice_of_completion_has_all_files() -> None:
    last = a_job(STARTED, *fetched(), run_of(2))
    result = FETCHED.model_copy(update={"message": "", "files": (), "metadata": {"duration": 1.5}})
    task, job = notices_of(last, Job.complete_task.on(17, 2, run=1, result=result))
    assert (task["status"], task["task"], task["files"]) == ("task_completed", "verify", [])
    metadata = {"fetch": {"bytes": 7}, "verify": {"duration": 1.5}}
    assert job == {**COMMON, "status": "completed", "message": "2 files", "files": list(FILES), "metadata": metadata}


def test_a_failure_says_whether_it_is_tried_again() -> None:
    running = a_job(STARTED, *fetched(), run_of(2))
    [again] = notices_of(running, Job.fail_task.on(17, 2, run=1, error="no disk", retries=RETRIES))
    told_first = {"message": "no disk; it is tried again at 2031-01-02T13:30:30.000Z", "task": "verify", "attempt": 1}
    assert again == {**COMMON, "status": "task_failed", **told_first}
    task, job = notices_of(running, Job.fail_task.on(17, 2, run=1, error="no disk", retries=RETRIES, final=True))
    assert task["message"] == "no disk; it is not tried again"
    assert (job["status"], job["message"]) == ("failed", "the task verify failed: no disk")
    assert (job["files"], job["metadata"]) == (list(FILES), {"fetch": {"bytes": 7}})


def test_a_lost_worker_is_a_failure() -> None:
    lost = fact(events.TaskLeaseExpired, task=1, name="fetch", run=1, attempt=1, retry_at=RETRY)
    [first] = notices_of(a_job(STARTED, run_of(1)), Job.expire_lease.on(17, 1, run=1, retries=RETRIES))
    assert (first["status"], first["attempt"]) == ("task_failed", 1)
    assert first["message"] == "its worker gave no sign of life; it is tried again at 2031-01-02T13:30:30.000Z"
    task, job = notices_of(
        a_job(STARTED, run_of(1), lost, run_of(1, run=2, attempt=2)), Job.expire_lease.on(17, 1, run=2, retries=RETRIES)
    )
    assert (task["message"], task["attempt"]) == ("its worker gave no sign of life; it is not tried again", 2)
    assert (job["status"], job["message"]) == ("failed", "the worker of the task fetch was lost 2 times in a row")


def test_pause_resume_and_manual_end_have_notices() -> None:
    running = a_job(STARTED)
    assert notices_of(running, Job.update.on(17, {"queue_state": JobState.PAUSED})) == [{**COMMON, "status": "paused"}]
    paused = a_job(STARTED, fact(events.Paused))
    assert notices_of(paused, Job.update.on(17, {"queue_state": JobState.QUEUED})) == [
        {**COMMON, "status": "queued", "message": "it was resumed"}
    ]
    assert notices_of(running, Job.break_off.on(17)) == [{**COMMON, "status": "broken"}]
    assert notices_of(running, Job.break_off.on(17, rerun_as=18)) == [
        {**COMMON, "status": "broken", "message": "it is repeated as job 18"}
    ]


UPDATES = [Job.update.on(17, {"priority": 1}), Job.update.on(17, {"run_at": NOW + timedelta(days=1)})]


@pytest.mark.parametrize(
    "command",
    [
        *UPDATES,
        Job.commit_outputs.on(17, 1, run=1, outputs=OUTPUTS, result=FETCHED),
        Job.interrupt_task.on(17, 1, run=1),
    ],
)
def test_other_events_have_no_notice(command: Command[Job]) -> None:
    running = command not in UPDATES
    assert notices_of(a_job(*([STARTED, run_of(1)] if running else [])), command) == []
    assert notices_of(Scenario(Job, 17, []), Job.accept.on(17, submission())) == []


def test_a_sample_has_the_fields_of_a_notice() -> None:
    assert sample(client="studio", at=NOW).keys() == {**COMMON, "status": ""}.keys()
