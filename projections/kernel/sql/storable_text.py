"""Reduces the output of external programs to what PostgreSQL and its JSON can store."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import to_json

_NOT_STORABLE: Final = re.compile("[\0\ud800-\udfff]")
_LARGEST: Final = 2**63


def storable_text(text: str) -> str:
    """Return the text with NUL and unpaired surrogates replaced."""
    return _NOT_STORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def storable_json(document: Mapping[str, Any]) -> str | None:
    """Return JSON in which numbers that are not finite, or larger than a bigint, are null; None if the document cannot be written
    as JSON."""
    try:
        return to_json(_storable(document)).decode()
    except (ValueError, TypeError, RecursionError):
        return None


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable_text(value)
        case float():
            return value if math.isfinite(value) else None
        case int():
            return value if -_LARGEST <= value < _LARGEST else None
        case Mapping():
            return {storable_text(str(key)): _storable(member) for key, member in value.items()}
        case list() | tuple():
            return [_storable(member) for member in value]
    return value
