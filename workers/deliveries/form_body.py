"""The form body of a delivery, converted from its stored JSON payload."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from pydantic_core import from_json


def form_body(payload: str) -> bytes:
    """Return the same fields as form parameters: names in PascalCase, null as empty, booleans as `true` and `false`."""
    members: dict[str, Any] = from_json(payload)
    return urlencode([(name[0].upper() + name[1:], _form_value(value)) for name, value in members.items()]).encode()


def _form_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
