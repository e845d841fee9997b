"""Invariants of aggregates under any sequence of commands."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from api.wiring.catalogue import AGGREGATES, RECORDS, catalogue
from domain.client.aggregate import Client
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.events import ForceStopped, NotificationForced
from domain.event.facets import Particulars
from domain.event.values import Trigger
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.command import Command
from domain.kernel.errors import DomainError
from domain.kernel.event import DomainEvent, FirstEvent
from domain.kernel.mapper import EventMapper
from tests.golden.samples import example
from tests.properties.histories import client_lives, event_commands, record_commands

KEY = UUID(int=9)
START = datetime.fromisoformat("2031-01-02T12:00:00Z")
MAPPER = EventMapper(catalogue())
Stored = tuple[str, str, int, bytes]
ORDERS = (ForceStopped.TOPIC, NotificationForced.TOPIC)
"""Recorded although they change nothing."""


def stored(event: DomainEvent) -> Stored:
    return event.TOPIC, event.originator_id, event.originator_version, MAPPER.state(event)


def replayed(log: list[Stored], root: AggregateRoot | None = None) -> AggregateRoot | None:
    for topic, stream, version, state in log:
        root = MAPPER.read(topic, stream=stream, version=version, state=state).mutate(root)
    return root


def remembered(root: AggregateRoot) -> AggregateRoot:
    return type(root).from_snapshot(stream=root.id, version=root.version, state=from_json(to_json(root.snapshot())))


def lived(commands: list[Command[Any]]) -> tuple[list[Stored], AggregateRoot | None]:
    """Carry the commands out as the executor does: a refused one leaves nothing behind. The clock sometimes jumps back."""
    log: list[Stored] = []
    live: AggregateRoot | None = None
    for number, command in enumerate(commands):
        try:
            live = command.decide(live, at=START + timedelta(seconds=number * (-1 if number % 5 == 4 else 1)))
        except DomainError:
            live = replayed(log)
            continue
        log += [stored(event) for event in live.collect_events() if isinstance(event, DomainEvent)]
    return log, live


def holds(log: list[Stored], live: AggregateRoot | None, cut: int) -> None:
    """The invariants of every stream."""
    assert (live.version if live is not None else 0) == len(log)
    assert [version for _, _, version, _ in log] == list(range(1, len(log) + 1))
    assert replayed(log) == live, "what is replayed from stored bytes is what lived"
    if live is None:
        return
    begin = cut % len(log)
    early = replayed(log[:begin])
    assert replayed(log[begin:], remembered(early) if early is not None else None) == live, "snapshot and tail make the whole"
    assert remembered(live) == live
    events = [MAPPER.read(topic, stream=s, version=v, state=state) for topic, s, v, state in log]
    times = [event.timestamp for event in events]
    assert times == sorted(times)
    last = next(event for event in reversed(events) if event.shown)
    assert (live.shown_version, live.shown_on) == (last.originator_version, last.timestamp)
    changes_something(log)


def changes_something(log: list[Stored]) -> None:
    """Every event but the first leaves the state other than it found it; only an order is recorded all the same."""
    root = replayed(log[:1])
    assert root is not None
    for topic, stream, version, state in log[1:]:
        before = to_json(root.snapshot()["details"])
        replayed([(topic, stream, version, state)], root)
        if topic not in ORDERS:
            assert to_json(root.snapshot()["details"]) != before, f"{topic} at version {version} changed nothing"


BOUNDED = settings(max_examples=120, deadline=None)
cuts = st.integers(0, 100)


@BOUNDED
@given(st.lists(event_commands(KEY), max_size=14), cuts)
def test_any_sequence_of_commands_on_an_event_keeps_the_invariants(commands: list[Command[Any]], cut: int) -> None:
    holds(*lived(commands), cut)


@BOUNDED
@given(client_lives("studio"), cuts)
def test_any_sequence_of_commands_on_a_client_keeps_the_invariants(commands: list[Command[Any]], cut: int) -> None:
    log, live = lived(commands)
    holds(log, live, cut)
    if isinstance(live, Client):
        assert live.roles
        assert live.keys == () or not live.deleted


@BOUNDED
@given(st.sampled_from(RECORDS).flatmap(lambda kind: st.lists(record_commands(kind, UUID(int=1)), max_size=12)), cuts)
def test_any_sequence_of_commands_on_a_record_keeps_the_invariants(commands: list[Command[Any]], cut: int) -> None:
    holds(*lived(commands), cut)


@BOUNDED
@given(st.lists(event_commands(KEY), min_size=1, max_size=10))
def test_telling_an_event_what_it_is_changes_nothing(commands: list[Command[Any]]) -> None:
    _, live = lived(commands)
    if not isinstance(live, MediaEvent) or live.deleted:
        return
    present = {name: getattr(live.details, name) for name in Particulars.model_fields}
    for command in (
        AddOrUpdateEvent(KEY, present, live.details.state, live.details.mp4_state),
        MediaEvent.change_state.on(KEY, live.details.state, trigger=Trigger.OPERATOR),
        AddOrUpdateEvent(KEY, {}),
    ):
        version = live.version
        assert command.decide(live, at=START).collect_events() == []
        assert live.version == version


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(AGGREGATES), st.data())
def test_appliers_take_every_event_in_any_order(aggregate: type[AggregateRoot], data: st.DataObject) -> None:
    """Rules change over the years and old logs stay: an applier that refuses would make a history unreadable."""
    first = aggregate.EVENTS[0]
    others = [event for event in aggregate.EVENTS if not issubclass(event, FirstEvent)]
    order = data.draw(st.lists(st.sampled_from(others), max_size=15)) if others else []
    log = [stored(example(event, version=version)) for version, event in enumerate([first, *order], start=1)]
    root = replayed(log)
    assert root is not None
    assert root.version == len(log)
    assert remembered(root) == root
    root.claims()
