"""From what was sent to what was meant, or to a `Malformed` that names the field. Nothing here may raise anything else."""

from __future__ import annotations

from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from api.kernel.wire import NOT_BLANK
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.strict_json import NotStrict, path_inside, strict_json

_MOST_ERRORS: Final = 50
_LONGEST_FIELD: Final = 200
_BLANK: Final = "may not be empty or blank"
_MESSAGES: Final = {
    "missing": "is required",
    "string_too_short": _BLANK,
    "string_type": "must be a string",
    "uuid_parsing": "must be a GUID",  # pydantic's own words quote what was sent
    "uuid_type": "must be a GUID",
}


def parse_json(raw: bytes | str, *, where: str = "body") -> Any:
    """Strict JSON; `Malformed` names the member, or `where` for the whole."""
    try:
        return strict_json(raw)
    except NotStrict as fault:
        raise Malformed.at(path_inside("", fault.steps) or where, fault.message) from None


class Validator:
    """A type's validation, looked up once, with errors in the wire's own terms."""

    __slots__ = ("_validate", "_where")

    def __init__(self, annotation: Any, *, where: str) -> None:
        self._validate = TypeAdapter(annotation).validator.validate_python
        self._where = where

    def read(self, data: Any) -> Any:
        try:
            return self._validate(data)
        except ValidationError as error:
            raise _malformed(error, data, self._where) from None


def _malformed(error: ValidationError, data: Any, where: str) -> Malformed:
    """Messages say what is expected, never what was sent: that may be a password."""
    found: dict[FieldError, None] = {}
    for entry in error.errors(include_url=False, include_input=False)[:_MOST_ERRORS]:
        location = list(entry["loc"])
        if entry["type"] == "twin":
            location.append(entry["ctx"]["field"])
        missing = entry["type"] in ("missing", "twin", "extra_forbidden")
        message = _worded(entry)
        field = _field(location, data, missing=missing) or where
        found[FieldError(field[:_LONGEST_FIELD], message)] = None
    return Malformed(*found)


def _worded(entry: ErrorDetails) -> str:
    if entry["type"] == "string_pattern_mismatch" and entry["ctx"]["pattern"] == NOT_BLANK:
        return _BLANK
    return _MESSAGES.get(entry["type"]) or entry["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _field(location: list[int | str], data: Any, *, missing: bool) -> str:
    """`tags[2].name`. Walks along what was sent, to leave out the steps that pydantic adds for unions and functions."""
    path = ""
    node = data
    for index, step in enumerate(location):
        last = missing and index == len(location) - 1
        if isinstance(step, int):
            if isinstance(node, list) and step < len(node):
                path += f"[{step}]"
                node = node[step]
        elif isinstance(node, dict):
            key = step if step in node else next((key for key in node if _same(key, step)), None)
            if key is not None or last:
                path = f"{path}.{step}" if path else step
                node = node[key] if key is not None else None
    return path


def _same(key: Any, step: str) -> bool:
    """Whether a key, as it was sent, is the one that the model knows as `step`."""
    return isinstance(key, str) and key.replace("_", "").lower() == step.replace("_", "").lower()
