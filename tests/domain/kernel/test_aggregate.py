"""The aggregate root: streams, versions, times, and what it remembers. For every aggregate of the product."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar
from uuid import UUID

import pytest
from eventsourcing.domain import OriginatorIDError, OriginatorVersionError
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from api.wiring.catalogue import AGGREGATES
from domain.event.aggregate import MediaEvent
from domain.event.events import Described, EventRegistered
from domain.event.values import EventState, Trigger
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from tests.domain.scenario import NOW, THEN, collected, folded
from tests.golden.samples import HAPPENED, history

every_aggregate = pytest.mark.parametrize("aggregate", AGGREGATES, ids=[aggregate.KIND for aggregate in AGGREGATES])


def remembered(root: AggregateRoot) -> AggregateRoot:
    """The aggregate, put away as JSON and taken out again."""
    return type(root).from_snapshot(stream=root.id, version=root.version, state=from_json(to_json(root.snapshot())))


@every_aggregate
def test_a_snapshot_restores_the_aggregate_as_it_was_at_every_version(aggregate: type[AggregateRoot]) -> None:
    events = history(aggregate)
    for count in range(1, len(events) + 1):
        root = folded(events[:count])
        assert root is not None
        again = remembered(root)
        assert again == root
        assert again.claims() == root.claims()


@every_aggregate
def test_a_snapshot_and_the_events_after_it_are_the_whole_history(aggregate: type[AggregateRoot]) -> None:
    events = history(aggregate)
    whole = folded(events)
    for count in range(1, len(events)):
        early = folded(events[:count])
        assert early is not None
        assert folded(events[count:], root=remembered(early)) == whole


@every_aggregate
def test_a_snapshot_is_a_copy(aggregate: type[AggregateRoot]) -> None:
    events = history(aggregate)
    root = folded(events[:1])
    assert root is not None
    snapshot = root.snapshot()
    before = to_json(snapshot)
    folded(events[1:], root=root)
    assert to_json(snapshot) == before


@every_aggregate
def test_versions_count_the_events(aggregate: type[AggregateRoot]) -> None:
    events = history(aggregate)
    root = folded(events)
    assert root is not None
    assert root.version == len(events)


@pytest.mark.parametrize(
    "aggregate", [aggregate for aggregate in AGGREGATES if len(history(aggregate)) > 1], ids=lambda aggregate: aggregate.KIND
)
def test_an_event_of_another_stream_or_out_of_turn_is_not_applied(aggregate: type[AggregateRoot]) -> None:
    first, second, *_ = history(aggregate)
    root = folded([first])
    with pytest.raises(OriginatorVersionError):
        second.model_copy(update={"originator_version": 3}).mutate(root)
    with pytest.raises(OriginatorVersionError):
        second.model_copy(update={"originator_version": 1}).mutate(root)
    with pytest.raises(OriginatorIDError):
        second.model_copy(update={"originator_id": "event:another"}).mutate(root)


def test_time_never_runs_backwards_within_a_stream() -> None:
    event = MediaEvent.register(UUID(int=1), NOW, {})
    event.amend(NOW - timedelta(days=1), {"title": "One"})
    event.amend(NOW + timedelta(seconds=1), {"title": "Two"})
    event.change_state(THEN, EventState.SUSPENDED, trigger=Trigger.OPERATOR)
    assert [change.timestamp for change in collected(event)] == [NOW, NOW, NOW + timedelta(seconds=1), NOW + timedelta(seconds=1)]
    assert (event.created_on, event.modified_on) == (NOW, NOW + timedelta(seconds=1))


def test_what_happened_is_handed_over_once() -> None:
    event = MediaEvent.register(UUID(int=1), NOW, {})
    assert len(collected(event)) == 1
    assert collected(event) == []


def test_streams_are_named_by_kind_and_key() -> None:
    assert MediaEvent.stream(UUID(int=1)) == "event:00000000-0000-0000-0000-000000000001"
    root = MediaEvent.register("a:b", NOW, {})  # type: ignore[arg-type]
    assert (root.id, root.key) == ("event:a:b", "a:b")


def test_an_event_cannot_be_changed() -> None:
    event = Described(originator_id="event:1", originator_version=2, timestamp=HAPPENED, title="Final")
    with pytest.raises(ValidationError):
        event.title = "Other"  # type: ignore[misc]


def test_an_event_is_written_strictly() -> None:
    with pytest.raises(ValidationError):
        EventRegistered(originator_id="event:1", originator_version=1, timestamp=HAPPENED, room_id="no guid")


class Bare(AggregateRoot):
    """An aggregate that forgot to say how it is remembered."""

    KIND: ClassVar[str] = "bare"


def test_an_aggregate_that_cannot_be_remembered_says_which() -> None:
    bare = Bare.__new__(Bare)
    bare.__base_init__("bare:1", 1, NOW)
    with pytest.raises(NotImplementedError, match="Bare"):
        bare.snapshot()
    at = NOW.isoformat()
    state = {"created_on": at, "modified_on": at, "shown_version": 1, "shown_on": at, "details": {}}
    with pytest.raises(NotImplementedError, match="Bare"):
        Bare.from_snapshot(stream="bare:1", version=1, state=state)


def test_a_command_must_say_what_it_is_for() -> None:
    command: Command[Bare] = Command("1")
    with pytest.raises(NotImplementedError):
        command.kind()
    with pytest.raises(NotImplementedError):
        command.act(Bare.__new__(Bare), at=NOW)
    assert not command.creates


class TestCause:
    def test_a_retried_command_gives_its_events_the_same_ids(self) -> None:
        cause = Cause.by("studio")
        ids = [cause.event_id(index) for index in range(1000)]
        assert ids == [cause.event_id(index) for index in range(1000)]
        assert len(set(ids)) == 1000
        assert set(ids).isdisjoint(Cause.by("studio").event_id(index) for index in range(1000))

    def test_without_a_transaction_a_command_correlates_with_itself(self) -> None:
        cause = Cause.by("studio")
        assert cause.correlation_id == str(cause.command_id)
        assert Cause.by("studio", correlation_id="t-1").correlation_id == "t-1"
        assert Cause.by("studio", causation_id=UUID(int=5)).causation_id == UUID(int=5)
