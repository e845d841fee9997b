"""An id that a person names by its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from api.wiring.startup import StartError


def unique(ids: Sequence[str], wanted: str, *, what: str) -> str:
    """The one that is it, or begins so. Raises `StartError` unless it is one."""
    found = [one for one in ids if one == wanted] or [one for one in ids if wanted and one.startswith(wanted)]
    if len(found) != 1:
        several = f"several ids of a {what} begin with {wanted}: {', '.join(found)}"
        raise StartError(several if found else f"there is no {what} {wanted}")
    return found[0]
