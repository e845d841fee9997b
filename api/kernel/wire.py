"""Field types that recur in request and response models."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import lru_cache
from typing import Annotated, Any

from annotated_types import Ge, GroupedMetadata, Le
from pydantic import BeforeValidator, PlainSerializer, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.http.model import NOT_BLANK
from api.http.model import DateTime as DateTime
from api.http.model import Wire as Wire
from api.http.model import wire_names as wire_names
from api.http.openapi import COMPONENT, reference
from domain.kernel.clock import iso, to_milliseconds

_AS_SHOWN = len("2031-01-02T03:04:05.000Z")


def _instant(value: Any) -> datetime:
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, str) and len(value) <= 64:
        if len(value) == _AS_SHOWN and value[10] == "T" and value[19] == "." and value[23] == "Z" and (shown := _as_shown(value)):
            return shown
        moment = _parse_instant(value)
    else:
        raise _no_instant()
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("instant", "must be in the years 1 to 9999, in UTC") from None
    return to_milliseconds(moment)


def _as_shown(text: str) -> datetime | None:
    """Parse the form of responses, which is the usual one: UTC, to the millisecond. Return None for another form."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _parse_instant(text: str) -> datetime:
    """Parse with Python's parser, but require T, t or a space between date and time, and accept ISO's hour 24."""
    if len(text) > 10 and not any(text[at : at + 1] in ("T", "t", " ") for at in (10, 8, 7)):
        raise _no_instant()
    text = text.replace("z", "Z")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return _end_of_day(text)


def _end_of_day(text: str) -> datetime:
    for mark in ("T24", "t24", " 24"):
        if mark in text:
            try:
                moment = datetime.fromisoformat(text.replace(mark, "T00", 1))
                if not any((moment.hour, moment.minute, moment.second, moment.microsecond)):
                    return moment + timedelta(days=1)
            except (ValueError, OverflowError):
                break
    raise _no_instant()


def _no_instant() -> PydanticCustomError:
    return PydanticCustomError("instant", "must be an ISO 8601 date-time, such as 2031-01-02T03:04:05.000Z")


_shown = lru_cache(8192)(iso)
"""Format an instant, with a cache: responses show the same instants repeatedly, and a look-up takes a third of the time of
formatting."""

Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    PlainSerializer(_shown, return_type=str, when_used="json-unless-none"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
    DateTime(),
]
"""A time: any ISO 8601 offset as input, UTC cut to milliseconds internally, `Z` and three decimals as output. No offset means
UTC, and a date means midnight."""

_FLAGS: dict[str, bool] = {"true": True, "1": True, "false": False, "0": False}


def _flag(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    if type(value) is str:
        flag = _FLAGS.get(value.lower())
        if flag is not None:
            return flag
    elif type(value) is int and value in (0, 1):
        return value == 1
    raise PydanticCustomError("flag", "must be true or false")


Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
"""A boolean; in a query or form `true`, `false`, `1` or `0`, ignoring case."""


def named_enum(name: str, values: list[str]) -> dict[str, Any]:
    """Return the schema of an enumeration of texts that has a name in the API description."""
    return {COMPONENT: {"name": name, "schemas": {name: {"type": "string", "enum": values}}}}


class NamedInt(GroupedMetadata):
    """An enumeration that accepts its number, a numeric string or its name in any case, and is shown as its number.

    The API description has a component for the numbers, one for the names, and one for either, which requests refer to. Written
    `Annotated[EventState, NamedInt(EventState)]`.
    """

    def __init__(self, kind: type[IntEnum]) -> None:
        self._kind = kind
        self._by_text: dict[str, IntEnum] = {member.name.lower(): member for member in kind}
        self._by_text.update({str(member.value): member for member in kind})
        self._by_number: dict[float, IntEnum] = {member.value: member for member in kind}
        self._choices = ", ".join(f"{member.value} {member.name}" for member in kind)

    def __iter__(self) -> Iterator[object]:
        yield BeforeValidator(self._find)
        yield PlainSerializer(int, return_type=int, when_used="json-unless-none")
        yield WithJsonSchema(self._component(f"{self._kind.__name__}Input"), mode="validation")
        yield WithJsonSchema(self._component(self._kind.__name__), mode="serialization")

    def _component(self, name: str) -> dict[str, Any]:
        number, text = self._kind.__name__, f"{self._kind.__name__}Name"
        names = [member.name for member in self._kind]
        numbers = {"type": "integer", "enum": [member.value for member in self._kind], "description": self._choices}
        either = {"anyOf": [reference(number), reference(text)], "description": f"The number or the name: {self._choices}"}
        schemas = {
            number: {**numbers, "x-enum-varnames": names, "x-enumNames": names},
            text: {"type": "string", "enum": names},
            f"{number}Input": either,
        }
        return {COMPONENT: {"name": name, "schemas": schemas}}

    def _find(self, value: Any) -> IntEnum:
        member: IntEnum | None = None
        if type(value) is str:
            member = self._by_text.get(value.strip().lower())
        elif type(value) in (int, float) or isinstance(value, IntEnum):
            member = self._by_number.get(value)
        if member is None:
            raise PydanticCustomError("named_int", f"must be one of {self._choices}")
        return member


Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
"""Text that PostgreSQL can store. The body, query and path parsers already refuse NUL; this type covers text from elsewhere."""

LONGEST_LABEL = 600
Label = Annotated[Text, StringConstraints(max_length=LONGEST_LABEL)]
"""Text that resources are found and ordered by: names, titles, references. It must fit an index entry of PostgreSQL, which holds
about 2,700 bytes, in any script; a longer text would fail in the append."""

Name = Annotated[Label, StringConstraints(min_length=1, pattern=NOT_BLANK)]
Words = Annotated[Text, StringConstraints(min_length=1, pattern=NOT_BLANK)]
"""Text that is neither empty nor blank."""


def _integer(value: Any) -> Any:
    plain = type(value) is int or type(value) is float
    if type(value) is str:
        digits = value.removeprefix("-")
        plain = digits.isascii() and digits.isdigit()
    if not plain:
        raise PydanticCustomError("integer", "must be a whole number")
    return value


_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Between(GroupedMetadata):
    """The bounds of an `Integer`, checked and documented: `Annotated[Integer, Between(1)]`."""

    def __init__(self, least: int = _SMALLEST, most: int = _LARGEST) -> None:
        self._least = least
        self._most = most

    def __iter__(self) -> Iterator[object]:
        yield Ge(self._least)
        yield Le(self._most)
        yield WithJsonSchema({"type": "integer", "format": "int64", "minimum": self._least, "maximum": self._most})


Integer = Annotated[int, BeforeValidator(_integer), Between()]
"""A whole number that fits a PostgreSQL bigint, or its digits; true and false are not numbers."""


def _parts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [part for item in value for part in _parts(item)] if isinstance(value, list) else value


Listed = BeforeValidator(_parts)
"""A comma-separated list, in one parameter or several."""
