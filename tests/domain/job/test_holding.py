"""Slots and secrets that a job holds, and its snapshot. ADR 0021."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from pydantic_core import from_json, to_json

from domain.job import events
from domain.job.aggregate import Job, low_slots_of, slots_of
from domain.job.values import JobState, Semaphore
from domain.kernel.aggregate import Claim
from domain.kernel.encryption import SecretRef
from tests.domain.job.jobs_given import (
    BROKEN,
    CALLBACK,
    COMPLETED,
    DUE,
    ELSEWHERE,
    IN_STATE,
    LINE,
    NUMBER,
    PAUSED,
    RESUMED,
    SEALED,
    SEMAPHORE,
    STARTED,
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
from tests.domain.scenario import Fact, Scenario, fact

STREAM = f"job:{NUMBER}"
BOTH = {Claim("job.slot.studio", "1", STREAM), Claim("job.low_slot.studio", "1", STREAM)}


def root(scenario: Scenario[Job]) -> Job:
    assert scenario.root is not None
    return scenario.root


def of_line(*since: Fact) -> Scenario[Job]:
    return a_job(STARTED, *since, first=accepted(*LINE))


def test_slots_are_numbered_client_by_client() -> None:
    assert (slots_of("a"), low_slots_of("a")) == ("job.slot.a", "job.low_slot.a")
    assert slots_of("low_slot.a") != low_slots_of("a")


@pytest.mark.parametrize("state", JobState)
def test_a_slot_is_held_while_a_job_is_started(state: JobState) -> None:
    assert root(IN_STATE[state]).claims() == (BOTH if state is JobState.STARTED else set())


def test_an_urgent_job_holds_no_low_slot() -> None:
    [claim] = root(a_job(fact(events.JobStarted, slot=3, low_slot=None))).claims()
    assert claim == Claim("job.slot.studio", "3", STREAM)


@pytest.mark.parametrize(
    "scenario",
    [
        running(PAUSED),
        running(committed(), PAUSED),
        running(PAUSED, RESUMED),
        running(PAUSED, fact(events.JobScheduled, run_at=DUE)),
        of_line(begun(), failed()),
        of_line(begun(), lost()),
        of_line(begun(), interrupted()),
        of_line(begun(), done()),
    ],
    ids=["paused", "publishing", "resumed", "scheduled", "failed", "lost", "given back", "between tasks"],
)
def test_a_slot_is_held_while_a_step_runs_or_may_start(scenario: Scenario[Job]) -> None:
    assert root(scenario).claims() == BOTH


@pytest.mark.parametrize(
    "scenario",
    [
        a_job(STARTED, PAUSED),
        a_job(STARTED, PAUSED, RESUMED),
        running(PAUSED, failed()),
        running(PAUSED, lost()),
        running(PAUSED, interrupted()),
        of_line(begun(), PAUSED, done()),
        running(BROKEN),
        running(PAUSED, BROKEN),
        running(BROKEN, PAUSED, RESUMED),
        running(done(), COMPLETED),
        running(failed(retry_at=None), abandoned("no")),
        running(done(), COMPLETED, PAUSED),
    ],
)
def test_a_slot_is_free_when_no_step_runs_or_may_start(scenario: Scenario[Job]) -> None:
    assert root(scenario).claims() == set()


def test_a_job_started_again_takes_its_new_slot() -> None:
    scenario = of_line(begun(), PAUSED, done(), RESUMED)
    job = scenario.when(Job.start.on(NUMBER, slot=2, low_slot=None, priority=5)).then(
        fact(events.JobStarted, slot=2, low_slot=None)
    )
    assert job.claims() == {Claim("job.slot.studio", "2", STREAM)}


def test_a_job_holds_its_callbacks_until_it_has_ended() -> None:
    of_callback = Claim(f"job.of_callback.{CALLBACK.id}", str(NUMBER), STREAM)
    first = accepted(callbacks=(CALLBACK,))
    for scenario in (a_job(first=first), a_job(PAUSED, first=first), a_job(BROKEN, PAUSED, first=first)):
        assert of_callback in root(scenario).claims()
    assert root(a_job(BROKEN, first=first)).claims() == set()


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (accepted(), set()),
        (accepted(callbacks=(CALLBACK, CALLBACK.model_copy(update={"sealed_url": None}))), {UUID(int=10)}),
        (accepted(semaphore=SEMAPHORE), set()),
        (accepted(sealed_parameters=SEALED), {SEALED.reference}),
        (accepted(semaphore=ELSEWHERE, sealed_parameters=SEALED), {SEALED.reference, UUID(int=8)}),
    ],
)
def test_secrets_are_held(first: Fact, expected: set[UUID]) -> None:
    assert root(a_job(first=first)).secrets() == expected


def test_secrets_of_an_ended_job_are_kept_for_a_rerun() -> None:
    assert root(a_job(BROKEN, first=accepted(sealed_parameters=SEALED))).secrets() == {SEALED.reference}


def test_the_secret_of_a_semaphore_is_erased_with_it() -> None:
    job = a_job(first=accepted(semaphore=ELSEWHERE, sealed_parameters=SEALED))
    other = Semaphore(url="https://semaphore.test/", sealed_url=SecretRef(reference=UUID(int=9), fingerprint="f9"))
    assert job.when(Job.update.on(NUMBER, {"semaphore": other})).then(fact(events.SemaphoreChanged, semaphore=other)).secrets() == {
        SEALED.reference,
        UUID(int=9),
    }
    assert job.when(Job.update.on(NUMBER, {"semaphore": None})).then(fact(events.SemaphoreChanged, semaphore=None)).secrets() == {
        SEALED.reference
    }


@pytest.mark.parametrize(
    "scenario",
    [
        *IN_STATE.values(),
        running(committed(), PAUSED),
        running(lost(), begun(2), failed(2)),
        running(failed(retry_at=None), abandoned("no")),
        of_line(begun(), done(), begun(plan=LINE[1]), BROKEN),
        a_job(first=accepted(*LINE, semaphore=ELSEWHERE, run_at=DUE, sealed_parameters=SEALED, callbacks=(CALLBACK,))),
    ],
)
def test_a_snapshot_leaves_nothing_out(scenario: Scenario[Job]) -> None:
    job = root(scenario)
    again = Job.from_snapshot(stream=job.id, version=job.version, state=from_json(to_json(job.snapshot())))
    assert again == job
    assert again.references() == job.references()
    assert {key: again.state_of(task) for key, task in again.tasks.items()} == {
        key: job.state_of(task) for key, task in job.tasks.items()
    }


def test_a_restored_job_goes_on() -> None:
    job = root(running(lost()))
    again = Job.from_snapshot(stream=job.id, version=job.version, state=from_json(to_json(job.snapshot())))
    at = again.modified_on + timedelta(seconds=1)
    again.start_task(at, 1, run=2, worker="w")
    assert (again.tasks[1].run, again.tasks[1].attempts, again.tasks[1].lost) == (2, 2, 1)
