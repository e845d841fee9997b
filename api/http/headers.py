"""Headers that hold a list (weighted choices, entity tags, preferences: RFC 9110, RFC 7240), and headers for caches.

An API key comes in headers that no cache knows to be a credential, so a shared cache without instructions keeps the response to one
caller and gives it to the next: docs/how-to/proxy.md#caches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from re import compile as regex
from typing import Final

_WEIGHT: Final = regex(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")
_TAG: Final = regex(rb'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_TOKEN: Final = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ELEMENT: Final = regex(r'(?:[^,"]++|"(?:\\.|[^"\\])*+"?)++')
"""An element of a list: a comma in quotes does not end it."""


def whole(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Return a header that may have been sent in several lines, which are one list."""
    return b",".join(value for key, value in headers if key == name)


def accepts_gzip(header: bytes) -> bool:
    """Return True if Accept-Encoding allows gzip, and does not rank the plain body higher. A weight that is invalid counts as 0."""
    if b";" not in header and (header == b"gzip" or header.startswith(b"gzip,")):  # what nearly all clients send
        return True
    weights: dict[str, float] = {}
    for part in header.decode("latin-1").lower().split(","):
        coding, *parameters = (piece.strip(" \t") for piece in part.split(";"))
        if coding:
            weights[coding] = _weight(parameters)
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def _weight(parameters: list[str]) -> float:
    if not parameters:
        return 1.0
    name, _, text = parameters[0].partition("=")
    return float(text) if len(parameters) == 1 and name.strip(" \t") == "q" and _WEIGHT.fullmatch(text) else 0.0


def entity_tags(header: bytes) -> Iterator[bytes]:
    """Yield what is between the quotes of each tag, weak ones too. A tag may hold a comma."""
    return (match[1] for match in _TAG.finditer(header))


def strong_tags(header: bytes) -> Iterator[bytes]:
    """Yield what is between the quotes of each tag that is not weak."""
    return (match[1] for match in _TAG.finditer(header) if not match[0].startswith(b"W/"))


def is_any(header: bytes) -> bool:
    return header.strip(b" \t") == b"*"


def preference(header: bytes, name: str) -> str | None:
    """Return the value of a preference in lower case, or None without it. The first of several counts (RFC 7240, 2)."""
    for part in _ELEMENT.findall(header.decode("latin-1")):
        key, _, value = part.partition(";")[0].partition("=")
        if key.strip(" \t").lower() == name:
            value = value.strip(" \t")
            if len(value) > 1 and value[0] == value[-1] == '"':
                value = value[1:-1]
            return value.lower() if _TOKEN.fullmatch(value) else ""
    return None


CREDENTIALS: Final = b"api-key, x-auth-key, authorization, cookie"
"""The request headers that decide who a caller is."""
NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
"""A header of every response: no browser guesses another type than the one that is sent."""


@dataclass(frozen=True, slots=True)
class Caching:
    """The rule of a route for caches."""

    value: bytes | None = None
    """The Cache-Control of responses that have none as strict themselves; `None`: the response decides."""
    varies: bool = False
    """True if the response depends on who asks."""

    def add(self, headers: list[tuple[bytes, bytes]], *, status: int) -> None:
        """Add the headers for caches. An error is never stored: it may be over in a moment."""
        value = b"no-store" if status >= 400 else self.value
        if value is not None:
            for index, (name, own) in enumerate(headers):
                if name == b"cache-control":
                    if self.value is not None and not (b"no-store" in own or b"private" in own):
                        headers[index] = name, value
                    break
            else:
                headers.append((b"cache-control", value))
        if self.varies:
            headers.insert(0, (b"vary", CREDENTIALS))


UP_TO_THE_RESPONSE: Final = Caching()
FOR_ITS_CALLER: Final = Caching(b"private, no-cache", varies=True)
NOT_STORED: Final = Caching(b"no-store")
