"""JSON that services answer with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from workers.ports import Reply
from workers.target_ports import TargetFailed

MOST: Final = 1_048_576
"""Bytes of an answer. A page of a list has some hundred thousand at most."""
_NO_OBJECT: Final = "The service answers with what is no JSON object."


def document(reply: Reply) -> Mapping[str, Any]:
    """The object of an answer. Raises `TargetFailed` where it is none, or too large."""
    if len(reply.body) >= MOST:
        raise TargetFailed("retry", "The service answers with more than it should.")
    try:
        found = json.loads(reply.body or b"{}")
    except (ValueError, RecursionError):
        raise TargetFailed("retry", _NO_OBJECT) from None
    if not isinstance(found, dict):
        raise TargetFailed("retry", _NO_OBJECT)
    return found


def error_document(reply: Reply) -> Mapping[str, Any]:
    """The member `error` of a refusal; empty where there is none that can be read."""
    try:
        return member(document(reply), "error")
    except TargetFailed:
        return {}


def member(holder: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The object below these names; empty where there is none."""
    found: Any = holder
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def entries(holder: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """The objects in the list of this name."""
    found = holder.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def has(holder: Mapping[str, Any], name: str, *, text: str) -> bool:
    """Whether the list of this name has this text."""
    found = holder.get(name)
    return isinstance(found, list) and text in found


def identifier(holder: Mapping[str, Any], name: str = "id") -> str:
    """An id that the service gave. Raises `TargetFailed` where it could be more than a word in an address."""
    value = holder.get(name)
    if isinstance(value, str) and 0 < len(value) <= 200 and value.isascii() and value.replace("-", "").replace("_", "").isalnum():
        return value
    raise TargetFailed("retry", f"The service answers without an {name} that can be used.")


def same_origin(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc) == (second.scheme, second.netloc)
