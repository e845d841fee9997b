"""Sanitizing of the messages of external programs: on one line, without addresses, paths and the secrets that the program was
given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from domain.channel.secrets import WRITE_ONLY
from domain.kernel.credentials import speaks_of_credential
from domain.kernel.token_patterns import without_tokens

_OUTSIDE: Final = re.compile(r"[a-z][a-z0-9+.-]*://\S+|(?<![\w.])/\S+", re.IGNORECASE)
_LONGEST: Final = 300
_ANYWHERE: Final = 6
"""The length in characters from which a secret is replaced anywhere. A shorter one is replaced only as a separate word."""
_SHORTEST: Final = 4
"""The minimum length of a key in characters, for values that are usually no keys."""
LEFT_OUT: Final = "…"


def without_addresses(text: str) -> str:
    """Return the text on one line, without URLs and paths. The time grows with the square of the length."""
    return without_tokens(_OUTSIDE.sub(LEFT_OUT, _printable(text)))


class Secrets:
    """The secrets that an external program was given, which must not be shown."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {spelling for secret in secrets for spelling in (secret, unquote(secret)) if secret.strip()}
        longest_first = sorted(spellings, key=len, reverse=True)
        patterns = (
            re.escape(secret) if len(secret) >= _ANYWHERE else rf"(?<!\w){re.escape(secret)}(?!\w)" for secret in longest_first
        )
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE) if longest_first else None

    def plain(self, text: str) -> str:
        """Return a text without the secrets and without addresses, cut to a readable length."""
        masked = text if self._pattern is None else self._pattern.sub(LEFT_OUT, text)
        return without_addresses(masked[: 4 * _LONGEST])[:_LONGEST]


def secrets_of_point(url: str, headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of a publishing point that may be keys: its URL, the last part of the path, the query, user info, and values
    of headers."""
    yield url
    values = [part for value in headers.values() for part in (value, *value.split())]
    try:
        parts = urlsplit(url)
        values += [parts.query, parts.fragment, *(value for _, value in parse_qsl(parts.query))]
        yield from (each for each in (parts.username, parts.password) if each)
        last = parts.path.rstrip("/").rpartition("/")[2]
        if parts.scheme.lower().startswith("rtmp") or len(last) >= _ANYWHERE:
            yield last
    except ValueError:
        pass
    yield from (value for value in values if len(value) >= _SHORTEST)


def secrets_of_settings(settings: object) -> Iterator[str]:
    """Yield the texts whose members have the name of a credential, at any depth."""
    if isinstance(settings, Mapping):
        for name, value in settings.items():
            if isinstance(value, str) and (name.casefold() in WRITE_ONLY or speaks_of_credential(name)):
                yield value
            yield from secrets_of_settings(value)
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from secrets_of_settings(value)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
