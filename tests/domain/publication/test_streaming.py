"""Live publications: how a stream begins, goes on and ends, and what is refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from domain.destination.targets import Target
from domain.kernel.encryption import SecretRef
from domain.kernel.errors import NotFound, PlanOutdated, Refused
from domain.publication import events
from domain.publication.aggregate import Publication
from domain.publication.values import PublicationKind, PublicationState, PublicationText
from tests.domain.scenario import Fact, Scenario, fact, given

KEY, DESTINATION = UUID(int=7), UUID(int=8)
SECRET = SecretRef(reference=UUID(int=1), fingerprint="a")
FACTS: dict[str, Any] = {
    "content_id": str(UUID(int=5)),
    "destination_id": DESTINATION,
    "target": Target.YOUTUBE,
    "transaction_id": UUID(int=9),
    "client": "studio",
    "text": PublicationText(title="Final", options_json='{"token":null}', secrets={'["token"]': SECRET}),
    "audio_input_id": "en",
}
LIVE = fact(events.PublicationScheduled, kind=PublicationKind.LIVE, **FACTS)
FILM = fact(
    events.PublicationScheduled,
    kind=PublicationKind.VOD,
    **{name: value for name, value in FACTS.items() if name != "audio_input_id"},
)
STARTED = fact(events.PublicationStarted, details={"id": "b1"})
ARRIVED = fact(events.Arrived, details={"id": "b1", "status": "live"})
STOPPED = fact(events.Stopped, reason="")
CLOSED = fact(events.TargetClosed, fault="")
START = Publication.start.on(KEY, {"id": "b1"})
STOP = Publication.stop.on(KEY)
RUN = 2
"""The version of the event that starts it first."""
HOLDS, NOTHING = frozenset({f"destination:{DESTINATION}"}), frozenset[str]()


def stream(*since: Fact) -> Scenario[Publication]:
    return given(Publication, KEY, LIVE, *since)


def states(root: Publication) -> tuple[PublicationState, bool, bool]:
    return root.state, root.started is not None, root.completed is not None


def test_it_is_scheduled_and_has_no_times() -> None:
    made = given(Publication, KEY).when(Publication.schedule.on(KEY, kind=PublicationKind.LIVE, **FACTS)).then(LIVE)
    assert (*states(made), made.audio_input_id, made.links()) == (PublicationState.Scheduled, False, False, "en", NOTHING)


def test_it_is_started_reaches_its_target_and_is_stopped() -> None:
    started = stream().when(START).then(STARTED)
    assert (*states(started), started.run, started.details) == (PublicationState.InProgress, True, False, RUN, {"id": "b1"})
    assert (started.open, started.links()) == (True, HOLDS)
    arrived = stream(STARTED).when(Publication.arrive.on(KEY, RUN, details={"id": "b1", "status": "live"})).then(ARRIVED)
    assert (arrived.arrived, arrived.details) == (True, {"id": "b1", "status": "live"})
    ended = stream(STARTED, ARRIVED).when(STOP).then(STOPPED)
    assert (*states(ended), ended.open, ended.links()) == (PublicationState.Completed, True, True, True, HOLDS)
    closed = stream(STARTED, ARRIVED, STOPPED).when(Publication.close_target.on(KEY)).then(CLOSED)
    assert (closed.open, closed.links(), closed.details) == (False, NOTHING, {"id": "b1", "status": "live"})


@pytest.mark.parametrize(
    ("since", "command"),
    [
        ((STARTED,), START),
        ((STARTED, ARRIVED), Publication.arrive.on(KEY, RUN, details=ARRIVED.facts["details"])),
        ((STARTED,), Publication.arrive.on(KEY, RUN + 1, details={})),
        ((STARTED, STOPPED), Publication.arrive.on(KEY, RUN, details={})),
        ((STARTED, STOPPED), Publication.fail_push.on(KEY, RUN, state=PublicationState.FailedPublication, reason="x")),
        ((STARTED,), Publication.fail_push.on(KEY, 1, state=PublicationState.FailedPublication, reason="x")),
        ((), STOP),
        ((STARTED, STOPPED), STOP),
        ((STARTED,), Publication.close_target.on(KEY)),
        ((STARTED, STOPPED, CLOSED), Publication.close_target.on(KEY)),
        ((), Publication.close_target.on(KEY)),
        ((), Publication.recreate.on(KEY)),
    ],
)
def test_what_is_done_or_is_over_changes_nothing(since: tuple[Fact, ...], command: Any) -> None:
    stream(*since).when(command).then()


@pytest.mark.parametrize("state", [PublicationState.FailedDestination, PublicationState.FailedPublication])
def test_one_that_has_ended_or_failed_is_not_started_again(state: PublicationState) -> None:
    with pytest.raises(Refused, match="Completed; recreate"):
        stream(STARTED, STOPPED).when(START).then()
    failed = fact(events.PublicationFailed, state=state, reason="x")
    with pytest.raises(Refused, match="recreate"):
        stream(failed).when(START).then()


def test_a_start_that_the_target_refuses_fails_it_and_leaves_nothing_open() -> None:
    reason = PublicationState.FailedPublication, "no such channel"
    failed = (
        stream()
        .when(Publication.fail_start.on(KEY, *reason))
        .then(fact(events.PublicationFailed, state=reason[0], reason=reason[1]))
    )
    assert (*states(failed), failed.open) == (PublicationState.FailedPublication, False, False, False)
    with pytest.raises(PlanOutdated):
        stream(STARTED).when(Publication.fail_start.on(KEY, *reason)).then()


def test_a_push_that_is_given_up_fails_it_and_the_target_is_still_told() -> None:
    give_up = Publication.fail_push.on(KEY, RUN, state=PublicationState.FailedPublication, reason="it refuses the stream")
    failed = (
        stream(STARTED)
        .when(give_up)
        .then(fact(events.PublicationFailed, state=PublicationState.FailedPublication, reason="it refuses the stream"))
    )
    assert (failed.state, failed.open, failed.links()) == (PublicationState.FailedPublication, True, HOLDS)


def test_recreation_keeps_the_id_and_gets_a_new_target_id() -> None:
    anew = stream(STARTED, ARRIVED, STOPPED, CLOSED).when(Publication.recreate.on(KEY)).then(fact(events.Recreated))
    assert (*states(anew), anew.details, anew.creations) == (PublicationState.Scheduled, False, False, None, 1)
    again = stream(STARTED, STOPPED, CLOSED, fact(events.Recreated)).when(START).then(STARTED)
    assert (again.run, again.arrived) == (6, False)


def test_one_that_is_pushed_is_not_recreated_nor_before_its_target_was_asked() -> None:
    with pytest.raises(Refused, match="stop it first"):
        stream(STARTED).when(Publication.recreate.on(KEY)).then()
    with pytest.raises(PlanOutdated):
        stream(STARTED, STOPPED).when(Publication.recreate.on(KEY)).then()
    stream(STARTED, STOPPED).when(Publication.recreate.on(KEY, "gone")).then(
        fact(events.TargetClosed, fault="gone"), fact(events.Recreated)
    )


@pytest.mark.parametrize(("hard", "remaining"), [(True, True), (False, False)])
def test_a_deleted_one_keeps_its_secrets_and_its_destination_until_the_target_knows(hard: bool, remaining: bool) -> None:
    withdrawn = fact(events.Withdrawn, hard=hard, target_left=remaining, open=True)
    gone = stream(STARTED).when(Publication.withdraw.on(KEY, hard=hard, running_job=None)).then(withdrawn)
    assert (gone.open, gone.target_left, gone.links(), gone.secrets()) == (True, remaining, HOLDS, frozenset({SECRET.reference}))
    closed = stream(STARTED, withdrawn).when(Publication.close_target.on(KEY)).then(CLOSED)
    assert closed.secrets() == ({SECRET.reference} if hard else frozenset())
    if hard:
        cleared = stream(STARTED, withdrawn, CLOSED).when(Publication.clear_target.on(KEY)).then(fact(events.TargetCleared))
        assert (cleared.links(), cleared.secrets()) == (NOTHING, frozenset())


@pytest.mark.parametrize("command", [START, STOP, Publication.recreate.on(KEY)])
def test_a_film_and_a_deleted_stream_are_not_found(command: Any) -> None:
    for before in ((FILM,), (LIVE, fact(events.Withdrawn, hard=False, target_left=False))):
        with pytest.raises(NotFound):
            given(Publication, KEY, *before).when(command).then()


def test_a_snapshot_holds_all_of_it() -> None:
    root = stream(STARTED, ARRIVED).when(STOP).then(STOPPED)
    again = Publication.from_snapshot(stream=root.id, version=root.version, state=root.snapshot())
    assert again.__dict__ == {**root.__dict__, "_pending_events": again.__dict__["_pending_events"]}
