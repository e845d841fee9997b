"""Playlists of HLS that are read (RFC 8216). ffmpeg would follow any address in them; here each passes the outbound client."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from workers.adapters.outbound_http import GuardedClient

_LONGEST: Final = 2_097_152
_ATTRIBUTE: Final = re.compile(r'([A-Z0-9-]+)=("[^"]*"|[^,]*)')
_VARIANT: Final = "#EXT-X-STREAM-INF:"
_MEDIA: Final = "#EXT-X-MEDIA:"


class NotRead(Exception):
    """A playlist cannot be read. The rest of a sentence that begins with what it is."""


@dataclass(frozen=True, slots=True)
class ReadSegment:
    """`header` is the URL of what comes before it; empty where it needs none."""

    number: int
    url: str = field(repr=False)
    header: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ReadPlaylist:
    """`target` is the length of a segment in seconds."""

    segments: Sequence[ReadSegment]
    target: float
    ended: bool


@dataclass(frozen=True, slots=True)
class Variant:
    """A rendition of the picture. `group` is that of its sounds; empty where it has them itself."""

    url: str = field(repr=False)
    group: str = ""


@dataclass(frozen=True, slots=True)
class ReadSound:
    """`url` is empty where it is in the same segments as the picture."""

    group: str
    name: str
    language: str
    url: str = field(repr=False)


async def lines_of(client: GuardedClient, url: str) -> list[str]:
    """Raises `NotRead`, `OutboundRefused` and `OutboundFailed`."""
    text = b""
    async for piece in client.stream(url):
        text += piece
        if len(text) > _LONGEST:
            raise NotRead("its playlist is too long.")
    return [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip()]


def best_variant(lines: Sequence[str], url: str) -> Variant | None:
    """The one with the highest bitrate; None where the playlist names none."""
    best, chosen = -1, None
    for place, line in enumerate(lines[:-1]):
        if line.startswith(_VARIANT):
            said = _attributes(line)
            rate = int(said["BANDWIDTH"]) if said.get("BANDWIDTH", "").isdigit() else 0
            if rate > best:
                best, chosen = rate, Variant(urljoin(url, lines[place + 1]), said.get("AUDIO", ""))
    return chosen


def sounds_in(lines: Sequence[str], url: str) -> Sequence[ReadSound]:
    return list(_sounds(lines, url))


def _sounds(lines: Sequence[str], url: str) -> Iterator[ReadSound]:
    for line in lines:
        if line.startswith(_MEDIA) and (said := _attributes(line)).get("TYPE") == "AUDIO":
            where = urljoin(url, said["URI"]) if "URI" in said else ""
            yield ReadSound(said.get("GROUP-ID", ""), said.get("NAME", ""), said.get("LANGUAGE", ""), where)


def media_playlist(lines: Sequence[str], url: str) -> ReadPlaylist:
    """Raises `NotRead`."""
    target, number, header, ended = 2.0, 0, "", False
    found: list[ReadSegment] = []
    for line in lines:
        name, _, value = line.partition(":")
        match name:
            case "#EXT-X-TARGETDURATION" if value.isdigit():
                target = min(max(float(value), 1.0), 30.0)
            case "#EXT-X-MEDIA-SEQUENCE" if value.isdigit():
                number = int(value)
            case "#EXT-X-KEY" if "METHOD=NONE" not in value:
                raise NotRead("it is encrypted, which cannot be read.")
            case "#EXT-X-MAP":
                header = urljoin(url, _attributes(line).get("URI", ""))
            case "#EXT-X-ENDLIST":
                ended = True
            case _ if not line.startswith("#"):
                found.append(ReadSegment(number, urljoin(url, line), header))
                number += 1
    return ReadPlaylist(found, target, ended)


def _attributes(line: str) -> Mapping[str, str]:
    return {name: value.strip('"') for name, value in _ATTRIBUTE.findall(line.partition(":")[2])}
