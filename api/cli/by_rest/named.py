"""The one document of a list that a person names by its id or its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.wiring.startup import StartError


def named(found: Sequence[dict[str, Any]], wanted: str, *, kind: str) -> dict[str, Any]:
    """Raises `StartError` unless it is one."""
    by_id = [one for one in found if one.get("id") == wanted.lower()]
    chosen = by_id or [one for one in found if one.get("name") == wanted]
    if not chosen:
        raise StartError(f"there is no {kind} {wanted!r}")
    if len(chosen) > 1:
        raise StartError(f"{len(chosen)} {kind}s have this name; by id: {', '.join(str(one.get('id')) for one in chosen)}")
    return chosen[0]
