"""Validation of parsed data. Errors are a `BadRequest` that names the field; nothing else is raised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from api.http.error_texts import text
from api.http.errors import BadRequest, FieldError


class JsonParser(Protocol):
    """Raises `BadRequest`; `where` names the whole body."""

    def __call__(self, raw: bytes, *, where: str) -> Any: ...

    def __hash__(self) -> int: ...


_MOST_ERRORS: Final = 50
_LONGEST_FIELD: Final = 200


def parse_json(raw: bytes, *, where: str) -> Any:
    """An application may hand in a stricter parser."""
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise BadRequest.at(where, f"is not JSON: {error}") from None


class Validator:
    """A type's validation, looked up once, with errors in the API's own terms."""

    __slots__ = ("_validate", "_where")

    def __init__(self, annotation: Any, *, where: str) -> None:
        self._validate = TypeAdapter(annotation).validator.validate_python
        self._where = where

    def read(self, data: Any) -> Any:
        try:
            return self._validate(data)
        except ValidationError as error:
            raise _bad_request(error, data, self._where) from None


def invalid(error: RequestValidationError) -> BadRequest:
    """Return the error of values that FastAPI has bound: those of a query or a header too."""
    fields: dict[FieldError, None] = {}
    for entry in list(error.errors())[:_MOST_ERRORS]:
        source, *location = entry["loc"]
        field = _field_of(entry, location, error.body, "body") if source == "body" else ".".join(map(str, location))
        fields[FieldError((field or str(source))[:_LONGEST_FIELD], text(entry))] = None
    return BadRequest(*fields)


def _bad_request(error: ValidationError, data: Any, where: str) -> BadRequest:
    """Messages say what is expected, never the sent value: it may be a password."""
    fields: dict[FieldError, None] = {}
    for entry in error.errors(include_url=False, include_input=False)[:_MOST_ERRORS]:
        fields[FieldError(_field_of(entry, entry["loc"], data, where)[:_LONGEST_FIELD], text(entry))] = None
    return BadRequest(*fields)


def _field_of(entry: Any, location: Sequence[int | str], data: Any, where: str) -> str:
    steps = list(location)
    if entry["type"] == "twin":
        steps.append(entry["ctx"]["field"])
    return _field(steps, data, missing=entry["type"] in ("missing", "twin", "extra_forbidden")) or where


def _field(location: list[int | str], data: Any, *, missing: bool) -> str:
    """`tags[2].name`. Walks along the sent data, to leave out the steps that pydantic adds for unions and functions."""
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
    """Whether a sent key is the field `step` of the model."""
    return isinstance(key, str) and key.replace("_", "").lower() == step.replace("_", "").lower()
