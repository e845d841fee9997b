"""Scenarios of one job, in each of its states."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from domain.job import events
from domain.job.aggregate import Job, RetryPolicy
from domain.job.values import JobState, Output, Result, Semaphore, Submission, TaskPlan
from domain.kernel.encryption import SecretRef
from domain.kernel.named_callback import NamedCallback
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact, given

NUMBER = 17
PAST = THEN - timedelta(hours=1)
DUE = THEN + timedelta(minutes=1)
"""Ahead when the job was accepted, and past when the command comes."""
SOON = NOW + timedelta(hours=1)
SEMAPHORE = Semaphore(url="https://semaphore.test/open")
ELSEWHERE = Semaphore(url="https://other.test/", sealed_url=SecretRef(reference=UUID(int=8), fingerprint="f8"))
SEALED = SecretRef(reference=UUID(int=7), fingerprint="f7")
CALLBACK = NamedCallback(
    id=UUID(int=1), url="https://hooks.test/a", sealed_url=SecretRef(reference=UUID(int=10), fingerprint="f10")
)
FETCH = TaskPlan(id=1, name="fetch")
STORE = TaskPlan(id=2, name="store", after=(1,))
LINE = (FETCH, STORE)
RETRIES = RetryPolicy(limit=3, delay=timedelta(seconds=5))
RESULT = Result(message="done", files=("a/b.mp4",), metadata={"size": 3})
OUTPUTS = (Output(path="b.mp4", name="a/b.mp4", size=3, sha256="00"),)
OPEN = (JobState.QUEUED, JobState.PENDING, JobState.SCHEDULED, JobState.PAUSED)
SHUT = tuple(state for state in JobState if state not in OPEN)


def submission(*tasks: TaskPlan, **more: Any) -> Submission:
    facts = {"client": "studio", "workflow": "fetch", "content_id": "a", "parameters": {"n": 1}, **more}
    return Submission(tasks=tasks or (FETCH,), **facts)


def accepted(*tasks: TaskPlan, priority: int = 5, **more: Any) -> Fact:
    facts = {name: more.pop(name) for name in ("run_at", "semaphore", "rerun_of", "headers") if name in more}
    return fact(events.Accepted, submission=submission(*tasks, **more), priority=priority, **facts)


def a_job(*since: Fact, first: Fact | None = None) -> Scenario[Job]:
    """A queued job of one task, and the events since."""
    return given(Job, NUMBER, first or accepted(), *since)


STARTED = fact(events.JobStarted, slot=1, low_slot=1)
PAUSED = fact(events.Paused)
BROKEN = fact(events.Broken)
RESUMED = fact(events.JobQueued, resumed=True)
COMPLETED = fact(events.JobCompleted, failed=False)


def begun(run: int = 1, *, attempt: int | None = None, plan: TaskPlan = FETCH) -> Fact:
    return fact(events.TaskStarted, task=plan.id, name=plan.name, run=run, attempt=attempt or run, worker="w")


def committed(run: int = 1, *, plan: TaskPlan = FETCH) -> Fact:
    return fact(events.OutputsCommitted, task=plan.id, name=plan.name, run=run, outputs=OUTPUTS, result=RESULT)


def done(run: int = 1, *, plan: TaskPlan = FETCH, **facts: Any) -> Fact:
    return fact(events.TaskCompleted, task=plan.id, name=plan.name, run=run, **facts)


def failed(run: int = 1, *, attempt: int | None = None, retry_at: Any = THEN, error: str = "no", plan: TaskPlan = FETCH) -> Fact:
    facts = {"attempt": attempt or run, "error": error, "retry_at": retry_at}
    return fact(events.TaskFailed, task=plan.id, name=plan.name, run=run, **facts)


def lost(run: int = 1, *, attempt: int | None = None, retry_at: Any = THEN) -> Fact:
    return fact(events.TaskLeaseExpired, task=1, name="fetch", run=run, attempt=attempt or run, retry_at=retry_at)


def interrupted(run: int = 1) -> Fact:
    return fact(events.TaskInterrupted, task=1, name="fetch", run=run)


def abandoned(reason: str, *, cause: str = "") -> Fact:
    return fact(events.JobCompleted, failed=True, reason=reason, cause=cause)


def running(*since: Fact) -> Scenario[Job]:
    """Return a job whose only task is in its first run."""
    return a_job(STARTED, begun(), *since)


IN_STATE = {
    JobState.QUEUED: a_job(),
    JobState.STARTED: a_job(STARTED),
    JobState.COMPLETED: running(done(), COMPLETED),
    JobState.PENDING: a_job(first=accepted(semaphore=SEMAPHORE)),
    JobState.BROKEN: a_job(BROKEN),
    JobState.SCHEDULED: a_job(first=accepted(run_at=DUE)),
    JobState.PAUSED: a_job(PAUSED),
}
