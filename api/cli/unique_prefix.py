"""An id that a person gives by its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from api.wiring.startup import StartError


def unique(ids: Sequence[str], prefix: str, *, what: str) -> str:
    """Return the id that equals the text, else the only id that begins with it. Raise `StartError` if there is none, or several."""
    matches = [candidate for candidate in ids if candidate == prefix] or [
        candidate for candidate in ids if prefix and candidate.startswith(prefix)
    ]
    if len(matches) != 1:
        several = f"several ids begin with {prefix}: {', '.join(matches)}; give more of the {what}'s id"
        raise StartError(several if matches else f"no {what} has the id {prefix}")
    return matches[0]
