"""Suggestions for mistyped words."""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = 0.7


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that is most similar to the word, or None if none is similar enough."""
    from difflib import get_close_matches  # a command that is typed right does not need it

    return next(iter(get_close_matches(word, list(candidates), n=1, cutoff=_ALIKE)), None)


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return the end of a sentence that suggests a similar word; empty if no word is similar enough."""
    suggestion = closest(word, candidates)
    return "" if suggestion is None else f"; did you mean {suggestion}?"
