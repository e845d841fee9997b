"""From the text of a `configurationJson` to a checked model, or to a `Malformed` that names the path inside the text.

Keys are matched in exact case: what is inside such a text stays as it was sent (decisions.md, "Everywhere"). An optional member may
be null only where its model says so. Messages say what is expected, never what was sent: that may be a key or a password.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

from domain.kernel.errors import FieldError, Malformed
from domain.kernel.strict_json import NotStrict, path_inside, strict_json

UNSEEN: Final = "\0"
"""Begins a step of an error's location that the text does not have, such as the branch of a union. No key can begin so."""

_MOST_ERRORS: Final = 50
_MOST_VALUES: Final = 20_000  # several times what the largest site has; a text of empty objects took seconds to refuse
_OBJECT: Final = "must be an object"
_ARRAY: Final = "must be an array"
_MESSAGES: Final = {
    "missing": "is required",
    "extra_forbidden": "may not have other keys",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "model_type": _OBJECT,
    "dict_type": _OBJECT,
    "tuple_type": _ARRAY,
    "greater_than_equal": "may not be negative",
}


class Section(BaseModel):
    """An object of a configuration. Other keys are allowed; they stay in the text and mean nothing here."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="ignore", hide_input_in_errors=True)


class ClosedSection(Section):
    """An object with "no other keys"."""

    model_config = ConfigDict(extra="forbid")


M = TypeVar("M", bound=BaseModel)


def checked(model: type[M], text: str, *, field: str = "configurationJson") -> M:
    """The text as `model`. `field` is where the text stands in the request."""
    data = json_object(text, field=field)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        entries = error.errors(include_url=False, include_input=False, include_context=False)[:_MOST_ERRORS]
    raise Malformed(*dict.fromkeys(_field_error(entry, field) for entry in entries))


def json_object(text: str, *, field: str = "configurationJson") -> dict[str, Any]:
    """Strict JSON that is an object, with not more values than any site has."""
    try:
        data = strict_json(text)
    except NotStrict as fault:
        raise Malformed.at(path_inside(field, fault.steps), fault.message) from None
    if not isinstance(data, dict):
        raise Malformed.at(field, "must be a JSON object")
    if _too_many(data):
        raise Malformed.at(field, f"may not hold more than {_MOST_VALUES} values")
    return data


def _too_many(data: object) -> bool:
    count, pending = 0, [data]
    while pending and count <= _MOST_VALUES:
        node = pending.pop()
        if isinstance(node, dict | list):
            count += len(node)
            pending.extend(node.values() if isinstance(node, dict) else node)
    return count > _MOST_VALUES


def _field_error(entry: ErrorDetails, field: str) -> FieldError:
    steps = (step for step in entry["loc"] if not (isinstance(step, str) and step.startswith(UNSEEN)))
    return FieldError(path_inside(field, steps), _MESSAGES.get(entry["type"], entry["msg"]))


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "must be a string")
    return value


OptionalText = Annotated[str | None, BeforeValidator(_text)]
"""A string that may be absent but not null."""


def _filled(value: object) -> object:
    """Before pydantic's own minimum, which counts valid entries alone and would call an array of broken ones empty."""
    if value == []:
        raise PydanticCustomError("filled", "may not be empty")
    return value


FILLED: Final = BeforeValidator(_filled)

WriteOnly = Annotated[StrictStr | None, Field(repr=False, exclude=True)]
"""A key or a password: null keeps what is stored (decisions.md, "Everywhere"). Whether it must be there is decided elsewhere."""


def one_of(*names: str) -> BeforeValidator:
    """One of the names in any case, read as it is documented. Before `str | None` it refuses null as well."""
    known = {name.casefold(): name for name in names}
    message = f"must be {'one of ' if len(names) > 1 else ''}{', '.join(names)}"

    def find(value: object) -> str:
        name = known.get(value.casefold()) if isinstance(value, str) else None
        if name is None:
            raise PydanticCustomError("one_of", "{expected}", {"expected": message})
        return name

    return BeforeValidator(find)


def named(kind: type[IntEnum]) -> BeforeValidator:
    """A member of an enumeration by its name in any case or by its number (contract.md)."""
    known: dict[object, IntEnum] = {member.name.casefold(): member for member in kind}
    known |= {spelling: member for member in kind for spelling in (member.value, str(member.value))}
    message = f"must be one of {', '.join(member.name for member in kind)}"

    def find(value: object) -> IntEnum:
        sought = value.casefold() if isinstance(value, str) else value
        member = known.get(sought) if type(value) in (str, int) else None
        if member is None:
            raise PydanticCustomError("named", "{expected}", {"expected": message})
        return member

    return BeforeValidator(find)
