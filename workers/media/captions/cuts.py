"""Parts of captions: the cues that are shown between two times, on the time line of the part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from workers.media.captions.cues import Cue

_SHORTEST: Final = 40
"""The shortest remainder, in milliseconds, of a cue at the border of a cut that is visible."""


def cut(cues: Iterable[Cue], *, begin: float, end: float, to: float = 0.0) -> list[Cue]:
    """Return the cues from `begin` until before `end`, in seconds; `begin` is moved to the time `to`."""
    first, last, moved = round(begin * 1000), round(end * 1000), round((to - begin) * 1000)
    shown = ((max(cue.begin, first), min(cue.end, last), cue) for cue in cues)
    return [
        replace(cue, begin=since + moved, end=until + moved)
        for since, until, cue in shown
        if until - since >= min(_SHORTEST, cue.end - cue.begin)
    ]
