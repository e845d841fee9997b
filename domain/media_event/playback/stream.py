"""What a stream is called and how its URL is written: protocols, sources, and the query a streaming server understands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final
from urllib.parse import quote

from domain.kernel.errors import Malformed


class StreamProtocol(IntEnum):
    """Document 2 (Video object) and document 3 (Flow) give names and numbers."""

    HLS = 0
    HSS = 1
    DASH = 2
    HDS = 3
    HLSe = 4

    @classmethod
    def read(cls, value: object) -> StreamProtocol | None:
        """By name in any case or by number; None for anything else, so that one bad entry does not hide its neighbours."""
        text = str(value).casefold()
        return next((protocol for protocol in cls if text in (protocol.name.casefold(), str(protocol.value))), None)


class StreamPlace(IntEnum):
    """The addresses that one stream can have (document 3, "Flow"; decisions.md, "Channel")."""

    CDN_PRIMARY = 0
    CDN_SECONDARY = 1
    ORIGIN_PRIMARY = 2
    ORIGIN_SECONDARY = 3
    PRIVATE = 4


@dataclass(frozen=True, slots=True)
class StreamSource:
    """Where a stream URL leads: a place, and the index of the encoder in its channel (always 0 for the streams of a flow).

    Document 2 shows only `CDN_PRIMARY_INDEX_0`. The whole list is `<place>_INDEX_<n>`, numbered `10 * n + place`:
    CDN_PRIMARY_INDEX_0 = 0, CDN_SECONDARY_INDEX_0 = 1, ORIGIN_PRIMARY_INDEX_0 = 2, ORIGIN_SECONDARY_INDEX_0 = 3,
    PRIVATE_INDEX_0 = 4, CDN_PRIMARY_INDEX_1 = 10, CDN_SECONDARY_INDEX_1 = 11, … A value rather than an Enum, as a channel may
    have any number of encoders.
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
        """A source by its name, in any case, or its number."""
        if re.fullmatch(r"[0-9]{1,4}[0-4]|[0-4]", text):
            return cls(StreamPlace(int(text) % 10), int(text) // 10)
        named = re.fullmatch(r"([A-Z_]+)_INDEX_([0-9]{1,4})", text.upper())
        if named and named[1] in StreamPlace.__members__:
            return cls(StreamPlace[named[1]], int(named[2]))
        raise Malformed.at(field, "is no stream source; they are named like CDN_PRIMARY_INDEX_0")


@dataclass(frozen=True, slots=True)
class StreamUrl:
    """A stream URL object of document 2's Video object."""

    protocol: StreamProtocol
    url: str
    source: StreamSource

    @property
    def absolute_url_with_path_no_query(self) -> str:
        """The address alone: what logs, caches and allow-lists compare."""
        return split_url(self.url)[0]


def split_url(url: str) -> tuple[str, str, str]:
    """Address, query and fragment, by their marks alone: a configured text that is no URL passes through and never raises
    (`urllib.parse.urlsplit` does, on `http://[`)."""
    rest, _, fragment = url.partition("#")
    address, _, query = rest.partition("?")
    return address, query, fragment


def join_url(address: str, *, query: str, fragment: str) -> str:
    return address + (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")


def url_below(base: str, path: str) -> str:
    """`path` under a base that may end in `/` or carry a query of its own; "" without a base."""
    address, query, fragment = split_url(base)
    return join_url(f"{address.rstrip('/')}/{path}", query=query, fragment=fragment) if address else ""


def with_parameters(url: str, parameters: Mapping[str, str]) -> str:
    """Append `parameters` to the query. What is there stays as it is written, except parameters of the same names: two of a
    name mean different things to different servers, so the later wish replaces the earlier."""
    if not parameters:
        return url
    address, query, fragment = split_url(url)
    kept = [part for part in query.split("&") if part and part.partition("=")[0] not in parameters]
    added = [f"{name}={encoded(value, safe=':/')}" for name, value in parameters.items()]
    return join_url(address, query="&".join(kept + added), fragment=fragment)


def encoded(text: str, *, safe: str = "") -> str:
    """Percent-encoded UTF-8, whatever the text: half a surrogate pair becomes `?` rather than an error."""
    return quote(text, safe=safe, errors="replace")


AUDIO_ONLY: Final = {"filter": 'type=="audio"'}
