"""What a program outside says, as it is shown: on one line, without addresses, paths and the secrets that it was given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from domain.configuration.secrets import WRITE_ONLY
from domain.kernel.credentials import speaks_of_credential
from domain.kernel.known_tokens import without_tokens

_OUTSIDE: Final = re.compile(r"[a-z][a-z0-9+.-]*://\S+|(?<![\w.])/\S+", re.IGNORECASE)
_LONGEST: Final = 300
_ANYWHERE: Final = 6
"""Characters. A secret that is shorter is replaced as a word of its own only."""
_SHORTEST: Final = 4
"""Characters of what counts as a key where most values are none."""
LEFT_OUT: Final = "…"


def without_addresses(text: str) -> str:
    """On one line, without URLs and paths. The time that it takes grows with the square of the length."""
    return without_tokens(_OUTSIDE.sub(LEFT_OUT, _printable(text)))


class Secrets:
    """What a program outside was given and nobody may see."""

    def __init__(self, known: Iterable[str]) -> None:
        spellings = {spelling for one in known for spelling in (one, unquote(one)) if one.strip()}
        found = sorted(spellings, key=len, reverse=True)
        patterns = (re.escape(one) if len(one) >= _ANYWHERE else rf"(?<!\w){re.escape(one)}(?!\w)" for one in found)
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE) if found else None

    def plain(self, text: str) -> str:
        """A text without them and without addresses, cut to what people read."""
        kept = text if self._pattern is None else self._pattern.sub(LEFT_OUT, text)
        return without_addresses(kept[: 4 * _LONGEST])[:_LONGEST]


def secrets_of_point(url: str, headers: Mapping[str, str]) -> Iterator[str]:
    """What of a publishing point may be a key: its URL, the last part of the path, the query, user info, and values of headers."""
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
    """The texts whose members are named as credentials, at any depth."""
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
