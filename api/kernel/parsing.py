"""From what was sent to what was meant, or to a `Malformed` that names the field. Nothing here may raise anything else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from domain.kernel.errors import FieldError, Malformed

_BOM: Final = b"\xef\xbb\xbf"
_MOST_ERRORS: Final = 50
_LONGEST_FIELD: Final = 200
_INFINITE: Final = (float("inf"), float("-inf"))


def parse_json(raw: bytes | str, *, where: str = "body") -> Any:
    """Strict JSON: no NaN or infinity (not even as 1e400), no NUL, no lone surrogate, nesting below 200 levels."""
    if isinstance(raw, str):
        raw = raw.encode("utf-8", "surrogatepass")
    if raw.startswith(_BOM):
        raw = raw[3:]
    try:
        data = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise Malformed.at(where, f"is not JSON: {error}") from None
    if b"\\u0000" in raw or not _finite(data):
        for path, message in _unstorable(data, ""):
            raise Malformed.at(path or where, message)
    return data


def _finite(data: Any) -> bool:
    """One quick pass; the parser turns a number that is too large for a float into infinity without a word."""
    pending = [data]
    while pending:
        node = pending.pop()
        kind = type(node)
        if kind is dict:
            pending.extend(node.values())
        elif kind is list:
            pending.extend(node)
        elif kind is float and node in _INFINITE:
            return False
    return True


def _unstorable(node: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for key, value in node.items():
            below = f"{path}.{key}" if path else key
            if "\0" in key:
                yield path, "may not have a NUL character in a key"
            yield from _unstorable(value, below[:_LONGEST_FIELD])
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _unstorable(value, f"{path}[{index}]")
    elif isinstance(node, str) and "\0" in node:
        yield path, "may not have a NUL character"
    elif isinstance(node, float) and node in _INFINITE:
        yield path, "is too large a number"


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
        message = entry["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        field = _field(location, data, missing=missing) or where
        found[FieldError(field[:_LONGEST_FIELD], message)] = None
    return Malformed(*found)


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
    return isinstance(key, str) and key.replace("_", "").lower() == step.lower()
