"""Validation of parsed data. Errors are a `BadRequest` that names the fields. No text repeats what was sent: it may be secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from re import compile as regex
from typing import Any, Final, Protocol

from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from api.http.errors import BadRequest, FieldError
from api.http.model import NOT_BLANK

_MOST_ERRORS: Final = 50
_LONGEST_FIELD: Final = 200
_TEXTS: Final[Mapping[str, str]] = {
    "missing": "is required",
    "extra_forbidden": "is unknown",
    "string_too_short": "may not be empty or blank",
    "string_type": "must be a string",
    "is_instance_of": "must be a file of a form",
    "string_too_long": "may have {max_length} characters at most",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be less than {lt}",
    "too_short": "must have {min_length} entries or more",
    "too_long": "may have {max_length} entries at most",
    "int_parsing_size": "must be a whole number of 64 bits",
    "none_required": "must be null",
    "finite_number": "must be a finite number",
    "union_tag_not_found": "is required, with its {discriminator}",
    "union_tag_invalid": "must have a {discriminator} of {expected_tags}",
    **dict.fromkeys(("uuid_parsing", "uuid_type"), "must be a GUID"),
    **dict.fromkeys(("literal_error", "enum"), "must be {expected}"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object"),
}
_PYDANTIC: Final = regex(r"[A-Z][a-z]+(?: [a-z]+)? should ")
"""The beginning of pydantic's own texts, such as "Input should be a valid date"."""


class JsonParser(Protocol):
    """Parses JSON, or raises `BadRequest`; `where` names the whole body."""

    def __call__(self, raw: bytes, *, where: str) -> Any: ...


def parse_json(raw: bytes, *, where: str) -> Any:
    """Parse JSON. An application may have a stricter parser."""
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise BadRequest.at(where, f"is not JSON: {error}") from None


class Validator:
    """The validation of a type, looked up once, with errors in the API's own terms."""

    __slots__ = ("_validate", "_where")

    def __init__(self, annotation: Any, *, where: str) -> None:
        self._validate = TypeAdapter(annotation).validator.validate_python
        self._where = where

    def read(self, data: Any) -> Any:
        """Return the data as the type. Raises `BadRequest`."""
        try:
            return self._validate(data)
        except ValidationError as error:
            entries = [(entry, entry["loc"]) for entry in error.errors(include_url=False, include_input=False)]
            raise _bad_request(entries, data, where=self._where) from None


def invalid(error: RequestValidationError) -> BadRequest:
    """Return the error of values that FastAPI has bound: those of the body, a query or a header."""
    others, of_body = dict[FieldError, None](), []
    for entry in error.errors():
        source, *location = entry["loc"]
        if source == "body":
            of_body.append((entry, location))
        else:
            others[FieldError(".".join(map(str, location)) or str(source), text(entry))] = None
    return BadRequest(*others, *_bad_request(of_body, error.body, where="body").errors)


def _bad_request(entries: Sequence[tuple[Any, Sequence[int | str]]], data: Any, *, where: str) -> BadRequest:
    fields = {
        FieldError((_field(entry, list(location), data) or where)[:_LONGEST_FIELD], text(entry)): None
        for entry, location in entries[:_MOST_ERRORS]
    }
    return BadRequest(*fields)


def _field(entry: Any, location: list[int | str], data: Any) -> str:
    """Return the place of an error, such as `tags[2].name`, without the steps that pydantic adds for unions and functions."""
    if entry["type"] == "twin":
        location.append(entry["ctx"]["field"])
    may_be_absent = entry["type"] in ("missing", "twin", "extra_forbidden")
    path, node = "", data
    for index, step in enumerate(location):
        if isinstance(step, int):
            if isinstance(node, list) and step < len(node):
                path += f"[{step}]"
                node = node[step]
        elif isinstance(node, dict):
            key = step if step in node else next((key for key in node if _same(key, step)), None)
            if key is not None or (may_be_absent and index == len(location) - 1):
                path = f"{path}.{step}" if path else step
                node = None if key is None else node[key]
    return path


def _same(key: Any, step: str) -> bool:
    """Return True if a key of the request means the field `step` of the model."""
    return isinstance(key, str) and key.replace("_", "").lower() == step.replace("_", "").lower()


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def text(error: Any) -> str:
    """Return the text of a validation error: what the field must be."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch" and context["pattern"] == NOT_BLANK:
        return _TEXTS["string_too_short"]
    if kind == "too_short" and context["min_length"] == 1:
        return "may not be empty"
    if kind in _TEXTS:
        return _TEXTS[kind].format_map({name: _plain(value) for name, value in context.items()})
    return _PYDANTIC.sub("must ", error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, "), count=1)
