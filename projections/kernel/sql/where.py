"""A filter as SQL conditions, each with its parameter. Values are never part of the SQL text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Part = tuple[str, Any, str]
"""The parameter's name, its value and the condition. A value that is None, False or an empty list adds no condition."""


def where(parts: Iterable[Part]) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions, to be joined with AND, and their parameters."""
    used = [part for part in parts if part[1] is not None and part[1] is not False and part[1] != []]
    return [condition for _, _, condition in used], {name: value for name, value, condition in used if f"%({name})s" in condition}
