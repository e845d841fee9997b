"""How data is spelled on the wire: models with camelCase names, any case in, and the field types that recur."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Annotated, Any, ClassVar, get_args, get_origin

from annotated_types import Ge, GroupedMetadata, Le
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from api.kernel.answer import iso


class Wire(BaseModel):
    """Base of every request and answer model. `None` in an optional field is null; `model_fields_set` tells it from absent.

    Keys match whatever their case, in one dictionary look-up each; a body that spells them as documented (the usual one)
    pays for a set comparison only. Undeclared keys are left as they are."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )

    _spellings: ClassVar[Mapping[str, str]] = {}
    _documented: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        spellings: dict[str, str] = {}
        for name in cls.model_fields:
            names = wire_names(cls, name)
            for spelling in (*names, name):
                other = spellings.setdefault(spelling.lower(), names[0])
                if other != names[0]:
                    raise TypeError(f"{cls.__qualname__}: {other} and {names[0]} differ only in case")
        cls._spellings = spellings
        cls._documented = frozenset(spellings.values())

    @classmethod
    def spellings(cls) -> Mapping[str, str]:
        """Every accepted name in lower case, and the one name that the model knows it by."""
        return cls._spellings

    @classmethod
    def lists(cls) -> frozenset[str]:
        """The names whose value may be sent several times, in a query or a form. Lists of objects are not among them: a form
        holds such a list as one JSON text."""
        return frozenset(wire_names(cls, name)[0] for name, field in cls.model_fields.items() if _holds_list(field.annotation))

    @model_validator(mode="before")
    @classmethod
    def _match_any_case(cls, data: Any) -> Any:
        if type(data) is not dict or data.keys() <= cls._documented:
            return data
        spellings = cls._spellings
        matched: dict[str, Any] = {}
        for key, value in data.items():
            name = spellings.get(key.lower(), key) if type(key) is str else key
            if name in matched:
                raise PydanticCustomError("twin", "is there twice, in two spellings", {"field": name})
            matched[name] = value
        return matched


def wire_names(model: type[BaseModel], name: str) -> tuple[str, ...]:
    """The names of a field in a request: its alias, or each of its `AliasChoices`, the documented one first."""
    alias = model.model_fields[name].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(choice for choice in alias.choices if isinstance(choice, str))
    return (alias if isinstance(alias, str) else to_camel(name),)


def _holds_list(annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    if origin in (list, tuple, set, frozenset):
        return not any(isinstance(item, type) and issubclass(item, BaseModel) for item in get_args(annotation))
    return any(_holds_list(argument) for argument in get_args(annotation))


_AS_SHOWN = len("2031-01-02T03:04:05.000Z")


def _instant(value: Any) -> datetime:
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, str) and len(value) <= 64:
        moment = _parse_instant(value)
        if moment.tzinfo is UTC and len(value) == _AS_SHOWN and moment.microsecond % 1000 == 0:
            return moment  # spelled as we spell it, to the millisecond: the usual case
    else:
        raise _no_instant()
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("instant", "must lie in the years 1 to 9999, in UTC") from None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _parse_instant(text: str) -> datetime:
    """Python's own parser, without its freedom to put any character between date and time, and with ISO's hour 24."""
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


Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    PlainSerializer(iso, return_type=str, when_used="json-unless-none"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""Any ISO 8601 offset in, UTC cut to milliseconds inside, `Z` and three decimals out. No offset is UTC, a date is midnight."""

_FLAGS: dict[str, bool] = {"true": True, "1": True, "false": False, "0": False}


def _flag(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    if type(value) is str:
        known = _FLAGS.get(value.lower())
        if known is not None:
            return known
    elif type(value) is int and value in (0, 1):
        return value == 1
    raise PydanticCustomError("flag", "must be true or false")


Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
"""A boolean; in a query or form `true`, `false`, `1` or `0`, any case."""


class NamedInt(GroupedMetadata):
    """An enumeration that is accepted as its number, a numeric string or its name in any case, and shown as its number.

    Written `Annotated[EventState, NamedInt(EventState)]`."""

    def __init__(self, kind: type[IntEnum]) -> None:
        self._by_text: dict[str, IntEnum] = {member.name.lower(): member for member in kind}
        self._by_text.update({str(member.value): member for member in kind})
        self._by_number: dict[float, IntEnum] = {member.value: member for member in kind}
        self._known = ", ".join(f"{member.value} {member.name}" for member in kind)

    def __iter__(self) -> Iterator[object]:
        members = self._by_number.values()
        shapes = [
            {"type": "integer", "enum": [member.value for member in members]},
            {"type": "string", "enum": [member.name for member in members]},
        ]
        yield BeforeValidator(self._find)
        yield PlainSerializer(int, return_type=int, when_used="json-unless-none")
        yield WithJsonSchema({"anyOf": shapes, "description": self._known}, mode="validation")

    def _find(self, value: Any) -> IntEnum:
        member: IntEnum | None = None
        if type(value) is str:
            member = self._by_text.get(value.strip().lower())
        elif type(value) in (int, float) or isinstance(value, IntEnum):
            member = self._by_number.get(value)
        if member is None:
            raise PydanticCustomError("named_int", f"must be one of {self._known}")
        return member


Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
"""Text that PostgreSQL can hold. The body, query and path parsers refuse NUL already; this holds for text from elsewhere."""

LONGEST_LABEL = 600
Label = Annotated[Text, StringConstraints(max_length=LONGEST_LABEL)]
"""Text that things are found and ordered by: names, titles, references. It must fit an index entry of PostgreSQL, which holds
some 2,700 bytes, in any script; what is longer would fail in the append."""

NOT_BLANK = r"\S"
Name = Annotated[Label, StringConstraints(min_length=1, pattern=NOT_BLANK)]
Words = Annotated[Text, StringConstraints(min_length=1, pattern=NOT_BLANK)]
"""A label, or any text, that says something: not empty, not blank."""


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
"""A whole number that fits a PostgreSQL bigint, or its digits; true and false are no numbers."""


def _parts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [part for item in value for part in _parts(item)] if isinstance(value, list) else value


Listed = BeforeValidator(_parts)
"""A comma separated list, in one parameter or several."""
