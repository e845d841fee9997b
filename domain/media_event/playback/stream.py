"""Stream sources, stream URLs and their query parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from domain.configuration.streams import StreamPlace, StreamProtocol
from domain.kernel.errors import Malformed


@dataclass(frozen=True, slots=True)
class StreamSource:
    """The source of a stream: a place, and the index of the encoder in its channel (always 0 for the streams of a flow).

    Its name is `<place>_INDEX_<n>` and its number `10 * n + place`: CDN_PRIMARY_INDEX_0 is 0, CDN_SECONDARY_INDEX_1 is 11. Not an
    Enum, because a channel can have any number of encoders.
    """

    place: StreamPlace
    index: int = 0

    @property
    def number(self) -> int:
        return 10 * self.index + self.place

    @property
    def name(self) -> str:
        return f"{self.place.name}_INDEX_{self.index}"

    @classmethod
    def read(cls, text: str, *, field: str = "streamSource") -> StreamSource:
        """Return the source with this name, in any case, or this number."""
        if re.fullmatch(r"[0-9]{1,4}[0-4]|[0-4]", text):
            return cls(StreamPlace(int(text) % 10), int(text) // 10)
        named = re.fullmatch(r"([A-Z_]+)_INDEX_([0-9]{1,4})", text.upper())
        if named and named[1] in StreamPlace.__members__:
            return cls(StreamPlace[named[1]], int(named[2]))
        raise Malformed.at(field, "is not a stream source; an example is CDN_PRIMARY_INDEX_0")


@dataclass(frozen=True, slots=True)
class StreamUrl:
    """A stream URL of the Video object."""

    protocol: StreamProtocol
    url: str
    source: StreamSource

    @property
    def absolute_url_with_path_no_query(self) -> str:
        """The URL without query and fragment, which logs, caches and allow-lists compare."""
        return split_url(self.url)[0]


def split_url(url: str) -> tuple[str, str, str]:
    """Split a URL into address, query and fragment, at `?` and `#` only.

    A configured text need not be a URL; `urllib.parse.urlsplit` raises for some, such as `http://[`.
    """
    rest, _, fragment = url.partition("#")
    address, _, query = rest.partition("?")
    return address, query, fragment


def join_url(address: str, *, query: str, fragment: str) -> str:
    return address + (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")


def url_below(base: str, path: str) -> str:
    """Return the URL of `path` below a base URL, whose query is kept; "" without a base."""
    address, query, fragment = split_url(base)
    return join_url(f"{address.rstrip('/')}/{path}", query=query, fragment=fragment) if address else ""


def with_parameters(url: str, parameters: Mapping[str, str]) -> str:
    """Return the URL with `parameters` added to its query.

    A parameter with the same name is replaced, because servers differ in which of two they use. Others stay as written.
    """
    if not parameters:
        return url
    address, query, fragment = split_url(url)
    retained = [part for part in query.split("&") if part and part.partition("=")[0] not in parameters]
    added = [f"{name}={encoded(value, safe=':/')}" for name, value in parameters.items()]
    return join_url(address, query="&".join(retained + added), fragment=fragment)


def encoded(text: str, *, safe: str = "") -> str:
    """Return the text percent-encoded as UTF-8. A lone surrogate becomes `?` instead of an error."""
    return quote(text, safe=safe, errors="replace")


AUDIO_ONLY: Final = {"filter": 'type=="audio"'}
