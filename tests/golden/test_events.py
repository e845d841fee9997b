"""Compatibility with existing logs: they can still be read, and events are written as before. Files are added, never edited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic_core import from_json

from api.wiring.catalogue import catalogue
from domain.kernel.event import ENVELOPE, DomainEvent, FirstEvent
from domain.kernel.mapper import EventMapper
from tests.golden.samples import EVENTS, STREAM_KEY, example, golden_file

MAPPER = EventMapper(catalogue())
CLASSES = list(MAPPER.catalogue.events.values())
FILES = sorted(EVENTS.iterdir())
_NAME = re.compile(r"(?P<topic>[a-z_0-9]+\.[a-z_0-9]+)\.v(?P<version>[1-9][0-9]*)\.json")


def read(path: Path) -> DomainEvent:
    topic = path.name.rsplit(".v", 1)[0]
    return MAPPER.read(topic, stream=f"{topic.partition('.')[0]}:{STREAM_KEY}", version=1, state=path.read_bytes())


every_kind = pytest.mark.parametrize("kind", sorted({event.aggregate_kind() for event in CLASSES}))


def events_of(kind: str) -> list[type[DomainEvent]]:
    return [event for event in CLASSES if event.aggregate_kind() == kind]


def files_of(kind: str) -> list[Path]:
    return [path for path in FILES if path.name.startswith(f"{kind}.")]


@every_kind
def test_every_version_of_every_event_has_a_golden_file(kind: str) -> None:
    """A missing one is written by `python -m tests.golden.samples`."""
    events = events_of(kind)
    versions = [EVENTS / f"{event.TOPIC}.v{version}.json" for event in events for version in range(1, event.class_version + 1)]
    assert [path.name for path in versions if not path.exists()] == []


def test_no_golden_file_is_without_its_event() -> None:
    for path in FILES:
        named = _NAME.fullmatch(path.name)
        assert named, f"{path.name}: golden files are named <topic>.v<class version>.json"
        assert int(named["version"]) <= MAPPER.catalogue.event(named["topic"]).class_version


@every_kind
def test_a_golden_file_decodes_to_what_it_says(kind: str) -> None:
    for path in files_of(kind):
        event = read(path)
        stored = from_json(path.read_bytes())
        assert stored.pop("class_version", 1) == int(path.name.rsplit(".v", 1)[1].removesuffix(".json")), path.name
        if path == golden_file(type(event)):
            expected = example(type(event))
            assert {name: getattr(event, name) for name in stored} == {name: getattr(expected, name) for name in stored}, path.name
            assert event.model_fields_set - ENVELOPE == stored.keys(), path.name


@every_kind
def test_a_golden_file_is_written_again_byte_for_byte(kind: str) -> None:
    for event in events_of(kind):
        stored = golden_file(event).read_bytes()
        assert MAPPER.state(read(golden_file(event))) == stored, event.TOPIC


@every_kind
def test_a_golden_file_can_be_applied(kind: str) -> None:
    """The aggregate of today takes an event of any age."""
    aggregate = MAPPER.catalogue.aggregate(kind)
    first = example(aggregate.EVENTS[0])
    for path in files_of(kind):
        event = read(path)
        root = first.mutate(None)
        if isinstance(event, FirstEvent):
            assert isinstance(event.mutate(None), aggregate), path.name
        else:
            second = event.model_copy(update={"originator_version": 2})
            assert second.mutate(root) is root, path.name
