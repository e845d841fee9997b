"""Headers that hold a list: of weighted choices, of entity tags, of preferences (RFC 9110, RFC 7240)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from re import compile as regex
from typing import Final

_WEIGHT: Final = regex(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")
_TAG: Final = regex(rb'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_TOKEN: Final = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ELEMENT: Final = regex(r'(?:[^,"]++|"(?:\\.|[^"\\])*+"?)++')
"""An element of a list: a comma in quotes does not end it."""


def whole(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """A header that was sent in several lines is one list."""
    return b",".join(value for key, value in headers if key == name)


def accepts_gzip(header: bytes) -> bool:
    """Whether Accept-Encoding allows gzip, and does not rank the plain body higher. A weight that cannot be read counts as 0."""
    if b";" not in header and (header == b"gzip" or header.startswith(b"gzip,")):  # what nearly all clients send
        return True
    return _weighted(header)


def _weighted(header: bytes) -> bool:
    weights: dict[str, float] = {}
    for part in header.decode("latin-1").lower().split(","):
        coding, *parameters = (piece.strip(" \t") for piece in part.split(";"))
        if coding:
            weights[coding] = _weight(parameters)
    any_other = weights.get("*", 0.0)
    gzip = weights.get("gzip", weights.get("x-gzip", any_other))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def _weight(parameters: list[str]) -> float:
    if not parameters:
        return 1.0
    name, _, text = parameters[0].partition("=")
    return float(text) if len(parameters) == 1 and name.strip(" \t") == "q" and _WEIGHT.fullmatch(text) else 0.0


def entity_tags(header: bytes) -> Iterator[bytes]:
    """What is between the quotes of each tag, weak ones too. What is no tag is left out. A tag may hold a comma."""
    return (found[1] for found in _TAG.finditer(header))


def strong_tags(header: bytes) -> Iterator[bytes]:
    """Yield what is between the quotes of each tag that is not weak."""
    return (found[1] for found in _TAG.finditer(header) if not found[0].startswith(b"W/"))


def is_any(header: bytes) -> bool:
    return header.strip(b" \t") == b"*"


def preference(header: bytes, name: str) -> str | None:
    """The value of a preference, in lower case; `None` where it is not there. The first of several counts (RFC 7240, 2)."""
    for part in _ELEMENT.findall(header.decode("latin-1")):
        key, _, value = part.partition(";")[0].partition("=")
        if key.strip(" \t").lower() == name:
            value = value.strip(" \t")
            if len(value) > 1 and value[0] == value[-1] == '"':
                value = value[1:-1]
            return value.lower() if _TOKEN.fullmatch(value) else ""
    return None
