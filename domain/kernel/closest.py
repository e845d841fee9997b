"""The known word that is closest to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = 0.7


def closest(word: str, known: Iterable[str]) -> str | None:
    """None where none is alike."""
    from difflib import get_close_matches  # a command that is typed right does not need it

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=_ALIKE)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence; empty where no word is alike."""
    found = closest(word, known)
    return "" if found is None else f"; did you mean {found}?"
