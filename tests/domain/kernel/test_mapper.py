"""Domain events to stored bytes and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from eventsourcing.persistence import StoredEvent
from pydantic_core import from_json

from api.wiring.catalogue import AGGREGATES, catalogue
from domain.event.events import Described, EventRegistered, Rescheduled
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper, UnknownTopic
from tests.golden.samples import HAPPENED, history

MAPPER = EventMapper(catalogue())
STREAM = "event:1"


def described(**facts: object) -> Described:
    return Described(originator_id=STREAM, originator_version=3, timestamp=HAPPENED, **facts)


def again(event: DomainEvent) -> DomainEvent:
    return MAPPER.read(event.TOPIC, stream=event.originator_id, version=event.originator_version, state=MAPPER.state(event))


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=[aggregate.KIND for aggregate in AGGREGATES])
def test_every_event_comes_back_as_it_was_written(aggregate: type[AggregateRoot]) -> None:
    for event in history(aggregate):
        read = again(event)
        assert read == event
        assert type(read) is type(event)
        assert read.model_fields_set == event.model_fields_set


def test_the_stored_state_holds_the_facts_and_the_time_and_not_where_it_lies() -> None:
    assert from_json(MAPPER.state(described(title="Final"))) == {"timestamp": "2031-01-02T03:04:05.678000Z", "title": "Final"}


def test_set_to_nothing_is_told_from_not_touched() -> None:
    read = again(described(title=None))
    assert read.facts() == {"title": None}
    assert again(described()).facts() == {}


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-12))])
@pytest.mark.parametrize("microsecond", [0, 1, 678_000, 999_999])
def test_moments_keep_their_offset_and_every_microsecond(zone: timezone, microsecond: int) -> None:
    start = datetime(2031, 3, 4, 5, 6, 7, microsecond, tzinfo=zone)
    event = Rescheduled(originator_id=STREAM, originator_version=2, timestamp=HAPPENED, scheduled_start=start)
    read = again(event)
    assert isinstance(read, Rescheduled)
    assert read.scheduled_start == start
    assert read.scheduled_start is not None
    assert read.scheduled_start.utcoffset() == start.utcoffset()
    assert MAPPER.state(read) == MAPPER.state(event)


def test_members_of_other_versions_are_ignored() -> None:
    state = b'{"timestamp":"2031-01-02T03:04:05Z","title":"Final","mood":{"tense":true},"class_version":9}'
    read = MAPPER.read("event.described", stream=STREAM, version=2, state=state)
    assert read.facts() == {"title": "Final"}


def test_what_is_stored_cannot_move_an_event_to_another_place() -> None:
    """The place of an event is the row's, whatever its bytes may say."""
    state = b'{"timestamp":"2031-01-02T03:04:05Z","title":"Final"}'
    read = MAPPER.read("event.described", stream="event:ü", version=77, state=state)
    assert (read.originator_id, read.originator_version) == ("event:ü", 77)


@pytest.mark.parametrize("topic", ["event.exploded", "event", "Event.described", "event.described "])
def test_an_unknown_topic_says_so(topic: str) -> None:
    with pytest.raises(UnknownTopic, match=topic):
        MAPPER.read(topic, stream=STREAM, version=1, state=b'{"timestamp":"2031-01-02T03:04:05Z"}')


def test_an_unknown_kind_says_so() -> None:
    with pytest.raises(UnknownTopic):
        MAPPER.catalogue.aggregate("spaceship")


@pytest.mark.parametrize("key", ['a"b', "a\\b", "a\nb", "a\x00b", "a\u2028b", "\ud800"])
def test_a_stream_whose_name_json_would_escape_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="stream name"):
        MAPPER.read("event.described", stream=f"event:{key}", version=1, state=b'{"timestamp":"2031-01-02T03:04:05Z"}')


def test_the_library_finds_its_seam() -> None:
    event = EventRegistered(originator_id=STREAM, originator_version=1, timestamp=HAPPENED, title="Final")
    stored = MAPPER.to_stored_event(event)
    assert stored == StoredEvent(STREAM, 1, "event.registered", MAPPER.state(event))
    assert MAPPER.to_domain_event(stored) == event


def test_the_catalogue_holds_every_event_of_every_aggregate_under_its_own_name() -> None:
    events = [event for aggregate in AGGREGATES for event in aggregate.EVENTS]
    assert list(catalogue().events.values()) == events
    for aggregate in AGGREGATES:
        assert {event.aggregate_kind() for event in aggregate.EVENTS} == {aggregate.KIND}
        assert catalogue().aggregate(aggregate.KIND) is aggregate
