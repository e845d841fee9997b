"""JSON answers of services."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from workers.ports.outbound import Reply
from workers.ports.targets import TargetFailed

MOST: Final = 1_048_576
"""The limit for an answer in bytes. A page of a list has a few hundred thousand at most."""
_NO_OBJECT: Final = "The answer of the service is not a JSON object."


def document(reply: Reply) -> Mapping[str, Any]:
    """Return the JSON object of an answer. Raises `TargetFailed` if it is not an object, or too large."""
    if len(reply.body) >= MOST:
        raise TargetFailed("retry", "The answer of the service is too large.")
    try:
        content = json.loads(reply.body or b"{}")
    except (ValueError, RecursionError):
        raise TargetFailed("retry", _NO_OBJECT) from None
    if not isinstance(content, dict):
        raise TargetFailed("retry", _NO_OBJECT)
    return content


def error_document(reply: Reply) -> Mapping[str, Any]:
    """Return the member `error` of a refusal; empty if it cannot be read."""
    try:
        return member(document(reply), "error")
    except TargetFailed:
        return {}


def member(holder: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the object at this path of names; empty if there is none."""
    value: Any = holder
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def entries(holder: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects in the list with this name."""
    values = holder.get(name)
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def has(holder: Mapping[str, Any], name: str, *, text: str) -> bool:
    """Return True if the list with this name contains this text."""
    values = holder.get(name)
    return isinstance(values, list) and text in values


def identifier(holder: Mapping[str, Any], name: str = "id") -> str:
    """Return an id that the service assigned. Raises `TargetFailed` if it could be more than one word in an address."""
    value = holder.get(name)
    if isinstance(value, str) and 0 < len(value) <= 200 and value.isascii() and value.replace("-", "").replace("_", "").isalnum():
        return value
    raise TargetFailed("retry", f"The answer of the service has no usable {name}.")


def same_origin(url: str, other_url: str) -> bool:
    first, second = urlsplit(url), urlsplit(other_url)
    return (first.scheme, first.netloc) == (second.scheme, second.netloc)
