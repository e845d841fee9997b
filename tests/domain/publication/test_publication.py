"""Publications: what they follow, and what they refuse."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from domain.destination.targets import Target
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.kernel.command import Command
from domain.kernel.encryption import SecretRef
from domain.kernel.errors import NotFound, PlanOutdated, Refused
from domain.kernel.named_callback import NamedCallback
from domain.publication import events
from domain.publication.aggregate import Publication
from domain.publication.handlers import command_of
from domain.publication.values import PublicationKind, PublicationState, PublicationText
from tests.domain.scenario import Fact, Scenario, fact, given

KEY, DESTINATION, TRANSACTION = UUID(int=7), UUID(int=8), UUID(int=9)
SECRET, ADDRESS = SecretRef(reference=UUID(int=1), fingerprint="a"), SecretRef(reference=UUID(int=2), fingerprint="b")
TEXT = PublicationText(
    title="Final",
    options_json='{"token":null}',
    secrets={'["token"]': SECRET},
    callbacks=(NamedCallback(id=UUID(int=3), url="https://h.test/a", sealed_url=ADDRESS),),
)
FACTS: dict[str, Any] = {
    "content_id": "c",
    "destination_id": DESTINATION,
    "target": Target.S3,
    "transaction_id": TRANSACTION,
    "client": "studio",
    "text": TEXT,
}
SCHEDULED = fact(events.PublicationScheduled, kind=PublicationKind.VOD, **FACTS)
PROCESSED = fact(events.Processed, job=17)
COMPLETED = fact(events.PublicationCompleted, job_version=5, details={"etag": "x"})


def schedule(**more: Any) -> Command[Publication]:
    return Publication.schedule.on(KEY, kind=PublicationKind.VOD, **FACTS, **more)


SCHEDULE = schedule(job=17)


def publication(*since: Fact) -> Scenario[Publication]:
    return given(Publication, KEY, SCHEDULED, *since)


def reported(kind: OutcomeKind, version: int, job: int = 17, **more: Any) -> Any:
    return command_of(str(KEY), JobOutcome(kind=kind, job=job, version=version, **more))


def test_it_is_processed_by_its_job_from_the_beginning() -> None:
    made = given(Publication, KEY).when(SCHEDULE).then(SCHEDULED, PROCESSED)
    assert (made.state, made.job, made.started) == (PublicationState.Processing, 17, made.created_on)
    assert made.links() == {f"destination:{DESTINATION}"}
    assert made.secrets() == {SECRET.reference, ADDRESS.reference}


def test_where_it_cannot_be_published_it_has_failed_at_once_and_holds_nothing() -> None:
    fault = (PublicationState.FailedDestination, "the destination is not active")
    failed = fact(events.PublicationFailed, state=fault[0], reason=fault[1], job_version=0)
    made = given(Publication, KEY).when(schedule(fault=fault)).then(SCHEDULED, failed)
    assert (made.state, made.job, made.started, made.links()) == (PublicationState.FailedDestination, None, None, frozenset())


def test_a_completed_job_brings_the_details_of_the_target() -> None:
    done = publication(PROCESSED).when(reported(OutcomeKind.COMPLETED, 5, metadata={"details": {"etag": "x"}})).then(COMPLETED)
    assert (done.state, done.details, done.completed is not None, done.links()) == (
        PublicationState.Completed,
        {"etag": "x"},
        True,
        frozenset(),
    )


@pytest.mark.parametrize("metadata", [{}, {"details": None}, {"details": {"isUnavailable": True}}])
def test_without_details_or_where_it_is_not_available_it_has_failed(metadata: dict[str, Any]) -> None:
    failed = publication(PROCESSED).when(reported(OutcomeKind.COMPLETED, 5, metadata=metadata))
    reason = "the target returned no details, or reports that it is not available"
    failed.then(fact(events.PublicationFailed, state=PublicationState.FailedPublication, reason=reason, job_version=5))


@pytest.mark.parametrize(
    ("cause", "state"),
    [
        ("destination", PublicationState.FailedDestination),
        ("media", PublicationState.FailedMediaAsset),
        ("publication", PublicationState.FailedPublication),
        ("", PublicationState.FailedPublication),
    ],
)
def test_a_failed_job_says_what_is_at_fault(cause: str, state: PublicationState) -> None:
    failed = publication(PROCESSED).when(reported(OutcomeKind.FAILED, 5, reason="the sentence", cause=cause))
    failed.then(fact(events.PublicationFailed, state=state, reason="the sentence", job_version=5))


def test_outcomes_of_other_jobs_and_late_ones_are_no_news() -> None:
    processed = publication(PROCESSED)
    processed.when(reported(OutcomeKind.FAILED, 5, job=16, reason="x")).then_nothing()
    done = publication(PROCESSED, COMPLETED)
    done.when(reported(OutcomeKind.COMPLETED, 5, metadata={"details": {}})).then_nothing()
    done.when(reported(OutcomeKind.FAILED, 6, reason="x")).then_nothing()


def test_a_resumed_job_and_a_repeated_one_process_it_again() -> None:
    failed = publication(
        PROCESSED, fact(events.PublicationFailed, state=PublicationState.FailedPublication, reason="x", job_version=5)
    )
    failed.when(reported(OutcomeKind.RESUMED, 6)).then(fact(events.Processed, job=17, job_version=6))
    again = failed.when(reported(OutcomeKind.RERUN, 1, job=18, rerun_of=17)).then(fact(events.Processed, job=18, job_version=1))
    assert (again.jobs, again.state) == ((17, 18), PublicationState.Processing)
    failed.when(Publication.resume.on(KEY, 19, job_version=1, rerun_of=16)).then_refused(Refused)
    failed.when(reported(OutcomeKind.RERUN, 9, job=17, rerun_of=17)).then_nothing()


def test_an_amendment_is_stored_only_if_the_text_differs() -> None:
    other = TEXT.model_copy(update={"title": "Other"})
    publication().when(Publication.amend.on(KEY, TEXT, still=TEXT)).then_nothing()
    publication().when(Publication.amend.on(KEY, other, still=TEXT)).then(fact(events.Amended, text=other))
    publication().when(Publication.amend.on(KEY, other, still=other)).then_refused(PlanOutdated)
    refused = fact(events.PublicationFailed, state=PublicationState.FailedPublication, reason="no", job_version=5)
    done = publication(PROCESSED, COMPLETED)
    done.when(Publication.amend.on(KEY, other, still=TEXT, refusal="no")).then(fact(events.Amended, text=other), refused)


def test_it_is_published_and_unpublished_once() -> None:
    publication().when(Publication.show.on(KEY, True)).then(fact(events.PublicationPublished))
    publication(fact(events.PublicationPublished)).when(Publication.show.on(KEY, True)).then_nothing()
    publication(fact(events.PublicationPublished)).when(Publication.show.on(KEY, False)).then(fact(events.Unpublished))


def test_a_withdrawn_one_is_gone_and_its_secrets_too() -> None:
    command = Publication.withdraw.on(KEY, hard=True, running_job=None)
    gone = publication(PROCESSED, COMPLETED).when(command).then(fact(events.Withdrawn, hard=True, target_left=False))
    assert (gone.secrets(), gone.links()) == (frozenset(), frozenset())
    publication(fact(events.Withdrawn, hard=True)).when(Publication.show.on(KEY, True)).then_refused(NotFound)
    publication(PROCESSED).when(command).then_refused(PlanOutdated)


def test_a_running_upload_leaves_something_at_the_target_that_is_removed_later() -> None:
    command = Publication.withdraw.on(KEY, hard=True, running_job=17)
    gone = publication(PROCESSED).when(command).then(fact(events.Withdrawn, hard=True, target_left=True))
    assert gone.links() == {f"destination:{DESTINATION}"}
    assert len(gone.secrets()) == 2
    cleared = publication(PROCESSED, fact(events.Withdrawn, hard=True, target_left=True)).when(Publication.clear_target.on(KEY))
    root = cleared.then(fact(events.TargetCleared))
    assert (root.secrets(), root.links()) == (frozenset(), frozenset())
    publication(fact(events.Withdrawn, hard=False)).when(Publication.clear_target.on(KEY)).then_nothing()
