"""JSON documents inside a text member, such as `configurationJson`: parsed into a model, or reported as a `Malformed` that names
the path inside.

Keys are matched in exact case, because the content of such a text is stored as it was sent. An optional member may be null only if
its model allows it. Messages say what is expected, never what was sent, which may be a key or a password.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache
from typing import Annotated, Any, Final, TypeVar, cast, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

from domain.kernel.errors import FieldError, Malformed
from domain.kernel.strict_json import NotStrict, path_inside, strict_json
from domain.kernel.urls import LONGEST_URL

UNSEEN: Final = "\0"
"""The prefix of a step in an error's location that is not in the text, such as the branch of a union. No key can start with it."""

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
MEMBER: Final = re.compile(rf"(?P<key>{_STRING})(?P<colon>\s*+:\s*+)(?P<value>{_STRING}|null)?|{_STRING}", re.DOTALL)
"""Finds the members of every object in a checked text, in order, and skips all other strings. `value` is a string or null; it is
None for every other value."""

_IS_NEW: Final = "is_new"
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
    """An object of a configuration. Other keys are allowed; they stay in the text and are not interpreted."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True)


class ClosedSection(Section):
    """An object that may not have other keys."""

    model_config = ConfigDict(extra="forbid")


M = TypeVar("M", bound=BaseModel)
S = TypeVar("S", bound=Section)


def checked(model: type[M], text: str, *, field: str = "configurationJson", is_new: bool = False) -> M:
    """Parse the text as `model`. `field` is the path of the text in the request. `is_new` says that the text is to be stored;
    limits for new texts do not apply to stored ones."""
    data = json_object(text, field=field)
    try:
        return model.model_validate(data, context={_IS_NEW: is_new})
    except ValidationError as error:
        entries = error.errors(include_url=False, include_input=False, include_context=False)[:_MOST_ERRORS]
    raise Malformed(*dict.fromkeys(_field_error(entry, field) for entry in entries))


def readable(model: type[S], data: object) -> S:
    """Parse a stored document as its model, tolerantly: an error hides only the part that contains it. A hidden or absent member is
    None, even if the model requires it; an entry of an array keeps its index."""
    members = data if isinstance(data, dict) else {}
    parts: dict[str, Any] = {
        name: _part(model, name, members.get(field.alias or name)) for name, field in model.model_fields.items()
    }
    document: Any = model.model_construct(None, **parts)
    return cast("S", document)


def _part(model: type[Section], name: str, value: object) -> object:
    sections, is_array = _sections_of(model, name)
    if len(sections) != 1:
        try:
            return _adapter(model, name).validate_python(value)
        except ValidationError:
            return None
    if is_array:
        return tuple(readable(sections[0], entry) for entry in value) if isinstance(value, list) else None
    return readable(sections[0], value) if isinstance(value, dict) else None


@cache
def _adapter(model: type[Section], name: str) -> TypeAdapter[object]:
    field = model.model_fields[name]
    kind: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    return TypeAdapter(kind)


@cache
def _sections_of(model: type[Section], name: str) -> tuple[list[type[Section]], bool]:
    """Return the sections that a member may hold, and whether it holds an array of them."""
    sections: list[type[Section]] = []
    is_array = False
    pending: list[object] = [model.model_fields[name].annotation]
    while pending:
        kind = pending.pop()
        if isinstance(kind, type) and issubclass(kind, Section):
            sections.append(kind)
        is_array = is_array or get_origin(kind) is tuple
        pending.extend(get_args(kind))
    return sections, is_array


def json_object(text: str, *, field: str = "configurationJson") -> dict[str, Any]:
    """Parse strict JSON that is an object and has no more values than any real site needs."""
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
    return FieldError(path_inside(field, steps), _MESSAGES.get(entry["type"], entry["msg"].replace("Input should be", "must be")))


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "must be a string")
    return value


OptionalText = Annotated[str | None, BeforeValidator(_text)]
"""A string that may be absent but not null."""


def _filled(value: object) -> object:
    """Refuse an empty array before pydantic's own minimum, which counts only valid entries and would call an array of broken ones
    empty."""
    if value == []:
        raise PydanticCustomError("filled", "may not be empty")
    return value


FILLED: Final = BeforeValidator(_filled)

WriteOnly = Annotated[StrictStr | None, Field(repr=False, exclude=True)]
"""A key or a password. Null keeps the stored value. The model decides whether the member is required."""


def is_new(about: ValidationInfo) -> bool:
    """Return True if the document is to be stored. Limits that were introduced later do not apply to a stored one."""
    return bool(about.context and about.context[_IS_NEW])


def _short_if_new(value: str, about: ValidationInfo) -> str:
    if is_new(about) and len(value) > LONGEST_URL:
        raise PydanticCustomError("address_too_long", "must have at most {most} characters", {"most": LONGEST_URL})
    return value


Address = Annotated[StrictStr, AfterValidator(_short_if_new)]
"""A web address, or a template that becomes one when its placeholders are filled. A stored one may be longer than a new one."""


def one_of(*names: str) -> BeforeValidator:
    """Validate one of the names in any case and return the documented spelling. Before `str | None` it refuses null as well."""
    spellings = {name.casefold(): name for name in names}
    message = f"must be {'one of ' if len(names) > 1 else ''}{', '.join(names)}"

    def find(value: object) -> str:
        name = spellings.get(value.casefold()) if isinstance(value, str) else None
        if name is None:
            raise PydanticCustomError("one_of", "{expected}", {"expected": message})
        return name

    return BeforeValidator(find)


def named(kind: type[IntEnum]) -> BeforeValidator:
    """Validate a member of an enumeration by its name in any case or by its number."""
    members: dict[object, IntEnum] = {member.name.casefold(): member for member in kind}
    members |= {spelling: member for member in kind for spelling in (member.value, str(member.value))}
    message = f"must be one of {', '.join(member.name for member in kind)}"

    def find(value: object) -> IntEnum:
        sought = value.casefold() if isinstance(value, str) else value
        member = members.get(sought) if type(value) in (str, int) else None
        if member is None:
            raise PydanticCustomError("named", "{expected}", {"expected": message})
        return member

    return BeforeValidator(find)
