"""What PostgreSQL and its JSON can hold of what a program outside says."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import to_json

_NOT_STORABLE: Final = re.compile("[\0\ud800-\udfff]")
_LARGEST: Final = 2**63


def storable_text(text: str) -> str:
    """Without NUL and halves of surrogate pairs."""
    return _NOT_STORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def storable_json(document: Mapping[str, Any]) -> str | None:
    """As JSON in which each number that is not finite, or larger than a bigint, is null; None where it is no JSON at all."""
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
            return {storable_text(str(key)): _storable(one) for key, one in value.items()}
        case list() | tuple():
            return [_storable(one) for one in value]
    return value
