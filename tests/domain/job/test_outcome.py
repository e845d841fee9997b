"""The outcomes that the owner of a job gets, by the domain events of the job."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from domain.job.aggregate import Job
from domain.job.events import JobCompleted
from domain.job.outcome import TOPICS, JobOutcome, OutcomeKind, outcome
from domain.job.values import Result
from tests.domain.job.jobs_given import (
    BROKEN,
    COMPLETED,
    FETCH,
    NUMBER,
    OUTPUTS,
    PAUSED,
    RESUMED,
    STARTED,
    STORE,
    a_job,
    accepted,
    begun,
    committed,
    done,
    failed,
)
from tests.domain.scenario import Fact, fact, folded


def reported(*since: Fact, first: Fact | None = None) -> Sequence[JobOutcome]:
    """The outcomes of all events of a job, each with the job after the last one."""
    history = a_job(*since, first=first).history
    job = folded(history)
    assert isinstance(job, Job)
    matches = [(event, outcome(event, job)) for event in history]
    assert {event.TOPIC for event, reported_outcome in matches if reported_outcome is not None} <= TOPICS
    return [reported_outcome for _, reported_outcome in matches if reported_outcome is not None]


def test_a_completed_job_names_the_files_that_it_published_and_what_it_found_out() -> None:
    assert reported(STARTED, begun(), committed(), done(), COMPLETED) == [
        JobOutcome(kind=OutcomeKind.COMPLETED, job=NUMBER, files=OUTPUTS, metadata={"size": 3})
    ]


def test_metadata_is_that_of_all_steps_and_the_last_one_counts() -> None:
    fetched = done(result=Result(metadata={"size": 3, "sha256": "00"}))
    stored = done(plan=STORE, result=Result(metadata={"size": 4}))
    steps = (STARTED, begun(), fetched, begun(plan=STORE), stored, COMPLETED)
    [completed] = reported(*steps, first=accepted(FETCH, STORE))
    assert completed.metadata == {"size": 4, "sha256": "00"}


def test_a_failed_job_gives_its_reason_and_no_files() -> None:
    ended = fact(JobCompleted, failed=True, reason="no video track")
    assert reported(STARTED, begun(), failed(retry_at=None), ended) == [
        JobOutcome(kind=OutcomeKind.FAILED, job=NUMBER, reason="no video track")
    ]


def test_a_job_that_is_broken_and_resumed_tells_both() -> None:
    assert [reported_outcome.kind for reported_outcome in reported(STARTED, BROKEN, RESUMED)] == [
        OutcomeKind.BROKEN,
        OutcomeKind.RESUMED,
    ]


def test_a_rerun_names_the_job_that_it_repeats() -> None:
    assert reported(first=accepted(rerun_of=3)) == [JobOutcome(kind=OutcomeKind.RERUN, job=NUMBER, rerun_of=3)]


@pytest.mark.parametrize("since", [(), (STARTED,), (STARTED, begun(), committed()), (PAUSED,)])
def test_nothing_else_is_told(since: tuple[Fact, ...]) -> None:
    assert reported(*since) == []
