"""Strict JSON, for bodies and for JSON texts inside them.

Strict: no NaN or infinity (not even as 1e400), no NUL, no half of a surrogate pair, nesting below 200 levels. What passes can be
stored by PostgreSQL and sent on as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic_core import from_json

Step = int | str
"""One step down into a document: an index or a key."""

_BOM: Final = b"\xef\xbb\xbf"
_INFINITE: Final = (float("inf"), float("-inf"))


class NotStrict(ValueError):
    """`message` says what is wrong, never the sent text; `steps` say where, and are empty when it is not JSON at all."""

    def __init__(self, message: str, steps: tuple[Step, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.steps = steps


def strict_json(raw: bytes | str) -> Any:
    """The document, or `NotStrict`. Bytes may begin with a byte order mark; a text has none."""
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
    """`configurationJson.flows[0].outputUrls[2].streamProtocol`; `field` is where the document itself stands, or empty."""
    for step in steps:
        named = f"{field}.{step}" if field else str(step)
        field = (f"{field}[{step}]" if isinstance(step, int) else named)[:longest]
    return field


def _finite(data: Any) -> bool:
    """One quick pass: the parser silently turns a number that is too large for a float into infinity."""
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
    """The place and kind of a value that PostgreSQL cannot store or JSON cannot hold."""
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
        found = _fault(value)
        if found is not None:
            return (step, *found[0]), found[1]
    return None
