"""A full example of every domain event: each field set, its value made from its name and type alone, always the same.

`python -m tests.golden.samples` writes the golden files that are missing. It never touches one that is there: a file holds what
some log out there holds, so a change that would need an edit is a new event or an upcast.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import BaseModel

from api.wiring.catalogue import catalogue
from domain.asset.values import AssetType
from domain.event.values import Trigger, VodWorkflow
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import ENVELOPE, DomainEvent, FirstEvent
from domain.kernel.mapper import EventMapper

EVENTS = Path(__file__).parent / "events"
STREAM_KEY = "22222222-2222-4222-8222-222222222222"
HAPPENED = datetime(2031, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def example(event: type[DomainEvent], *, version: int = 1) -> DomainEvent:
    values = {name: value_of(name, field.annotation) for name, field in event.model_fields.items() if name not in ENVELOPE}
    stream = f"{event.aggregate_kind()}:{STREAM_KEY}"
    return event(**{**values, "originator_id": stream, "originator_version": version, "timestamp": HAPPENED})


def history(aggregate: type[AggregateRoot]) -> list[DomainEvent]:
    """Everything that can happen to an aggregate, once each, in the order of its list: of the events that begin it only one."""
    first, *others = aggregate.EVENTS
    later = [event for event in others if not issubclass(event, FirstEvent)]
    return [example(event, version=version) for version, event in enumerate((first, *later), start=1)]


def value_of(name: str, annotation: Any) -> Any:
    choices = [choice for choice in get_args(annotation) if choice is not type(None)]
    if get_origin(annotation) is dict:
        return {f'{name}: "ä" \\': value_of(name, choices[1])}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation(**{inner: value_of(inner, field.annotation) for inner, field in annotation.model_fields.items()})
    if get_origin(annotation) is tuple:
        return tuple(value_of(f"{name} {number}", choices[0]) for number in (1, 2))
    if choices:
        return value_of(name, choices[0])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        choice = [member for member in annotation if not any(member is later for later in _ADDED_LATER)]
        return choice[len(name) % len(choice)]
    return _PLAIN[annotation](name)


def _text(name: str) -> str:
    return f'{{"{name}":["ä \\u2028 😀",1.50]}}' if name.endswith("_json") else f'{name}: "ä" \\ / \u2028 😀 '


def _number(name: str) -> int:
    return 1_000 + len(_NAMED_BY.get(name, name))


_NAMED_BY = {"task": "id"}
"""Members that have another name when events refer to them: events refer to a task by `task`."""

_ADDED_LATER = (AssetType.CAPTION, Trigger.SCHEDULE, Trigger.COMPOSE, VodWorkflow.COMPOSE)
"""Members of enumerations that older files do not know. They are not chosen, so that the choice stays that of the files."""

_PLAIN: dict[Any, Any] = {
    str: _text,
    bool: lambda name: True,
    int: _number,
    float: lambda name: len(name) + 0.5,
    Any: lambda name: {"a": ["ä \u2028 😀", 1.5, None, True]},
    UUID: lambda name: uuid5(NAMESPACE_URL, name),
    date: lambda name: HAPPENED.date() + timedelta(days=len(name)),
    datetime: lambda name: HAPPENED + timedelta(days=len(name), microseconds=0 if len(name) % 2 else 321),
}


def golden_file(event: type[DomainEvent]) -> Path:
    return EVENTS / f"{event.TOPIC}.v{event.class_version}.json"


def write_missing() -> list[Path]:
    mapper = EventMapper(catalogue())
    written = []
    for event in mapper.catalogue.events.values():
        path = golden_file(event)
        if not path.exists():
            path.write_bytes(mapper.state(example(event)))
            written.append(path)
    return written


if __name__ == "__main__":
    EVENTS.mkdir(exist_ok=True)
    write_missing()
