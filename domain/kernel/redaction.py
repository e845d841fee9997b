"""Domain events whose content was erased. The class remains, without content, so that a stream can still be folded."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from domain.kernel.event import ENVELOPE, DomainEvent, FirstEvent

_BEGINS: Final = b'{"timestamp":"'
_ENDS: Final = b'","redacted":true}'
_LENGTH: Final = len(_BEGINS) + len("2026-11-23T10:00:00.000000Z") + len(_ENDS)
_VERB: Final = ".redacted"
_LONGEST: Final = 64
_TEXTLESS: Final = (Enum, bool, int, float, datetime, date, timedelta, UUID, NoneType)


class NothingKnown(DomainEvent):
    """An event whose content was erased and whose topic alone does not tell what it did. It changes nothing."""

    def apply(self, aggregate: Any) -> None:
        """Do nothing, because the content of the event is not known."""


class Redacted(DomainEvent):
    """Content of earlier events of this aggregate was erased. `redaction` is the id of the stream `log:<id>`, which holds the
    reason."""

    redaction: UUID

    def apply(self, aggregate: Any) -> None:
        """Do nothing: the remaining events were folded without the erased content."""


@cache
def redacted_class(kind: str) -> type[Redacted]:
    """Return the class of the event `<kind>.redacted`. Each call returns the same class."""
    return type("Redacted", (Redacted,), {"TOPIC": f"{kind}{_VERB}", "__doc__": Redacted.__doc__, "__module__": __name__})


def records_redaction(topic: str) -> bool:
    """Return True if events of this topic record that a stream lost content."""
    return topic.endswith(_VERB)


def is_redacted(state: bytes) -> bool:
    """Return True if this state replaces erased content."""
    return len(state) == _LENGTH and state.startswith(_BEGINS) and state.endswith(_ENDS)


def without_content(event: type[DomainEvent], *, stream: str, version: int, timestamp: datetime) -> DomainEvent:
    """Return an event of this class whose content was erased. A first event, and one that ends something, gets placeholders in its
    required fields."""
    required = [name for name, field in event.model_fields.items() if field.is_required() and name not in {*ENVELOPE, "timestamp"}]
    envelope: dict[str, Any] = {"originator_id": stream, "originator_version": version, "timestamp": timestamp}
    if not required:
        return event.model_construct(_fields_set=set(envelope), **envelope)
    if not issubclass(event, FirstEvent) and not event.STANDS_EMPTY:
        return NothingKnown.model_construct(_fields_set=set(envelope), **envelope)
    hints, places = get_type_hints(event), _Placeholders(stream.partition(":")[2], timestamp)
    facts = {name: places.of_field(hints[name], event.model_fields[name]) for name in required}
    return event.model_construct(_fields_set={*envelope, *required}, **envelope, **facts)


def may_be_personal(event: type[DomainEvent]) -> bool:
    """Return True if a field of the event can hold a text. Numbers, times, choices and ids do not identify a person, and streams
    are folded by them."""
    hints = get_type_hints(event, include_extras=True)
    return any(_holds_text(hints[name]) for name in event.model_fields if name not in ENVELOPE)


def _holds_text(hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return False
    if origin is Annotated:
        return _holds_text(arguments[0])
    if origin is not None and arguments:
        return any(_holds_text(argument) for argument in arguments if argument is not Ellipsis)
    if not isinstance(hint, type):
        return True
    if issubclass(hint, _TEXTLESS):
        return False
    if issubclass(hint, BaseModel):
        hints = get_type_hints(hint, include_extras=True)
        return any(_holds_text(hints[name]) for name in hint.model_fields)
    if dataclasses.is_dataclass(hint):
        return any(map(_holds_text, get_type_hints(hint).values()))
    return True


class _Placeholders:
    """Values without information. A text contains the aggregate's id, so that unique values stay unique."""

    def __init__(self, key: str, at: datetime) -> None:
        self._text = f"redacted {key}"[:_LONGEST]
        self._plain = {
            str: self._text,
            int: 0,
            float: 0.0,
            bool: False,
            bytes: b"",
            UUID: UUID(int=0),
            datetime: at,
            date: at.date(),
            timedelta: timedelta(0),
        }

    def of_field(self, hint: Any, field: FieldInfo) -> Any:
        """Return a placeholder for a field. A sequence that must not be empty gets one element."""
        if get_origin(hint) is tuple and any(getattr(constraint, "min_length", None) for constraint in field.metadata):
            return (self.of(get_args(hint)[0]),)
        return self.of(hint)

    def of(self, hint: Any) -> Any:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self.of(arguments[0])
        if origin is Literal:
            return arguments[0]
        if origin in (Union, UnionType):
            return None if NoneType in arguments else self.of(arguments[0])
        if hint in self._plain:
            return self._plain[hint]
        return self._of_class(origin or hint)

    def _of_class(self, kind: Any) -> Any:
        if not isinstance(kind, type):
            return None
        if issubclass(kind, Enum):
            return next(iter(kind))
        if issubclass(kind, BaseModel):
            hints = get_type_hints(kind)
            facts = {name: self.of_field(hints[name], field) for name, field in kind.model_fields.items() if field.is_required()}
            return kind.model_construct(**facts)
        if dataclasses.is_dataclass(kind):
            hints = get_type_hints(kind)
            return kind(
                **{
                    attribute.name: self.of(hints[attribute.name])
                    for attribute in dataclasses.fields(kind)
                    if _is_required(attribute)
                }
            )
        if issubclass(kind, Mapping):
            return {}
        if issubclass(kind, tuple):
            return ()
        if issubclass(kind, frozenset):
            return frozenset()
        return [] if issubclass(kind, Collection) else None


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
