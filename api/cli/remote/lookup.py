"""The document in a list that a person refers to by its id or its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.wiring.startup import StartError


def named(documents: Sequence[dict[str, Any]], id_or_name: str, *, kind: str) -> dict[str, Any]:
    """Return the document with this id, or the only document with this name. Raise `StartError` if there is none, or several."""
    by_id = [document for document in documents if document.get("id") == id_or_name.lower()]
    chosen = by_id or [document for document in documents if document.get("name") == id_or_name]
    if not chosen:
        raise StartError(f"the {kind} {id_or_name!r} does not exist")
    if len(chosen) > 1:
        raise StartError(
            f"{len(chosen)} {kind}s have this name; give one of the ids {', '.join(str(document.get('id')) for document in chosen)}"
        )
    return chosen[0]


def unique(ids: Sequence[str], prefix: str, *, what: str) -> str:
    """Return the id that equals the text, else the only id that begins with it. Raise `StartError` if there is none, or several."""
    matches = [candidate for candidate in ids if candidate == prefix] or [
        candidate for candidate in ids if prefix and candidate.startswith(prefix)
    ]
    if len(matches) != 1:
        several = f"several ids begin with {prefix}: {', '.join(matches)}; give more of the {what}'s id"
        raise StartError(several if matches else f"no {what} has the id {prefix}")
    return matches[0]
