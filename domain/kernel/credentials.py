"""Names that may mean a credential: one list of words for headers, parameters and settings."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(
    r"auth|cookie|credential|jwt|key|pass ?(?:code|phrase|w)|\bpass\b|pwd|secret|session|signature|token",
)
_HARMLESS: Final = re.compile(
    r"\b(?:key ?(?:art|board|frame|note|point|stone|word)s?|(?:chroma|luma) ?key|(?:don|hoc|joc|mon|tur|turn|whis)keys?"
    r"|author(?:s|ed|ing|ship)?|authorit(?:y|ies)|secretar(?:y|ies|iat)|(?:first|multi|one|second|single|two|\d+) ?pass)\b"
)
"""Ordinary words that only look like one of the above."""

_SEAMS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])|[^A-Za-z0-9]+")


def hints_at_credential(name: str) -> bool:
    """For names in which a harmless word is rare, such as headers: rather mask too much than too little."""
    return _WORD.search(name.lower()) is not None


def speaks_of_credential(name: str) -> bool:
    """For names that people choose: `srvaApiKey`, `client_secret` and `PASSWORD` do, `keyFrameInterval` and `hockey` do not."""
    return _WORD.search(_HARMLESS.sub(" ", _SEAMS.sub(" ", name).lower())) is not None
