"""Strict JSON, for bodies and for JSON texts inside them.

Strict means: no NaN or infinity (not even as 1e400), no NUL, no half of a surrogate pair, and nesting below 200 levels. Accepted
documents can be stored by PostgreSQL and sent on as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic_core import from_json

Step = int | str
"""A step down into a document: an index or a key."""

_BOM: Final = b"\xef\xbb\xbf"
_INFINITE: Final = (float("inf"), float("-inf"))


class NotStrict(ValueError):
    """Raised when a text is not strict JSON. `message` says what is wrong and never quotes the text; `steps` say where, and are
    empty if the text is not JSON at all."""

    def __init__(self, message: str, steps: tuple[Step, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.steps = steps


def strict_json(raw: bytes | str) -> Any:
    """Parse strict JSON. Raises `NotStrict`. Bytes may begin with a byte order mark; a text has none."""
    raw = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw.removeprefix(_BOM)
    try:
        data = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise NotStrict(f"is not JSON: {error}") from None
    if b"\\u0000" in raw or not _finite(data):
        fault = _fault(data)
        if fault is not None:
            raise NotStrict(fault[1], fault[0])
    return data


def path_inside(field: str, steps: Iterable[Step], *, longest: int = 200) -> str:
    """Return the path of a value inside a document, such as `configurationJson.flows[0].outputUrls[2].streamProtocol`. `field` is
    the path of the document itself, or empty."""
    for step in steps:
        named = f"{field}.{step}" if field else str(step)
        field = (f"{field}[{step}]" if isinstance(step, int) else named)[:longest]
    return field


def _finite(data: Any) -> bool:
    """Return True if all numbers are finite. The parser silently turns a number that is too large for a float into infinity."""
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


def _fault(node: object) -> tuple[tuple[Step, ...], str] | None:
    """Return the place and kind of a value that PostgreSQL cannot store or JSON cannot hold."""
    if isinstance(node, str):
        return ((), "may not have a NUL character") if "\0" in node else None
    if isinstance(node, float):
        return ((), "is too large a number") if node in _INFINITE else None
    entries: Iterable[tuple[Step, object]] = ()
    if isinstance(node, dict):
        if any("\0" in key for key in node):
            return (), "may not have a NUL character in a key"
        entries = node.items()
    elif isinstance(node, list):
        entries = enumerate(node)
    for step, value in entries:
        fault = _fault(value)
        if fault is not None:
            return (step, *fault[0]), fault[1]
    return None
