"""Names that may denote a credential: one list of words for headers, parameters and settings."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile(
    r"auth|bearer|connection[ _-]?string|cookie|credential|hmac|jwt|key|pass ?(?:code|phrase|w)|passord|pswd|pwd|secret|session"
    r"|signature|token|adgangskode|contrasena|kennwort|losenord|mot[ _-]?de[ _-]?passe|salasana|wachtwoord"
    r"|\b(?:creds?|dsn|mdp|otp|pass|pin|psk|pw|sas|senha|sig|tok)\b",
)
_MAYBE: Final = re.compile(r"\b(?:licen[cs]e|login|sk)\b")
"""Words that denote a credential in one place and something ordinary in another: a user's name, the terms of a film, Slovak."""
_HARMLESS: Final = re.compile(
    r"\b(?:key ?(?:art|board|frame|note|point|stone|word)s?|(?:chroma|luma) ?key|(?:don|hoc|joc|mon|tur|turn|whis)keys?"
    r"|author(?:s|ed|ing|ship)?|authorit(?:y|ies)|secretar(?:y|ies|iat)|(?:first|multi|one|second|single|two|\d+) ?pass)\b"
)
"""Ordinary words that only resemble a word of `_WORD`."""

_LONGEST_CACHED: Final = 64
"""The limit in characters for cached results. Names in requests recur; a longer text is unlikely to be such a name."""

_SEAMS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])|[^A-Za-z0-9]+")


def hints_at_credential(name: str) -> bool:
    """Return True if a name may denote a credential. Use this for names in which harmless words are rare, such as headers: it masks
    too much rather than too little."""
    return _hints(name) if len(name) <= _LONGEST_CACHED else _hints.__wrapped__(name)


def speaks_of_credential(name: str) -> bool:
    """Return True if a name that a person chose denotes a credential: `srvaApiKey`, `client_secret` and `PASSWORD` do,
    `keyFrameInterval` and `hockey` do not."""
    return _speaks(name) if len(name) <= _LONGEST_CACHED else _speaks.__wrapped__(name)


def may_be_credential(name: str) -> bool:
    """Return True if a name may denote a credential, including names that are ordinary elsewhere. Use this for output that anybody
    may read."""
    return speaks_of_credential(name) or _MAYBE.search(_words(name)) is not None


@lru_cache(1024)
def _hints(name: str) -> bool:
    return _WORD.search(_plain(name).lower()) is not None


@lru_cache(1024)
def _speaks(name: str) -> bool:
    return _WORD.search(_HARMLESS.sub(" ", _words(name))) is not None


def _words(name: str) -> str:
    """Split a name into lower-case words: `srvaApiKey` becomes `srva api key`."""
    return _SEAMS.sub(" ", _plain(name)).lower()


def _plain(name: str) -> str:
    """Replace letters that look alike, such as the kelvin sign for K, by one spelling, and remove accents."""
    if name.isascii():
        return name
    return "".join(char for char in unicodedata.normalize("NFKD", name) if not unicodedata.combining(char)).lower()
