"""Playlists of HLS that are read (RFC 8216). ffmpeg would follow any address in them; here each passes the outbound client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from workers.adapters.outbound_http import GuardedClient
from workers.media.hls_text import LongLine, attributes, whole, within

SECONDS: Final = 15.0
"""For a playlist, or another short file."""
_LONGEST: Final = 2_097_152
_MOST_LINES: Final = 100_000
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
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS), aclosing(client.stream(url)) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > _LONGEST:
                    raise NotRead("its playlist is too long.")
    except TimeoutError:
        raise NotRead(f"its playlist did not come within {SECONDS:g} s.") from None
    return split_lines(body.decode(errors="replace"))


def split_lines(text: str) -> list[str]:
    """Those that are not empty. Raises `NotRead`."""
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        raise NotRead(f"its playlist has more than {_MOST_LINES} lines.")
    return [line.strip() for line in lines if line.strip()]


def best_variant(lines: Sequence[str], url: str) -> Variant | None:
    """The one with the highest bitrate; None where the playlist names none. Raises `NotRead`."""
    best, chosen = -1, None
    for place, line in enumerate(lines[:-1]):
        if line.startswith(_VARIANT):
            said = _attributes(line)
            rate = whole(said.get("BANDWIDTH", "")) or 0
            if rate > best:
                best, chosen = rate, Variant(_joined(url, lines[place + 1]), said.get("AUDIO", ""))
    return chosen


def sounds_in(lines: Sequence[str], url: str) -> Sequence[ReadSound]:
    """Raises `NotRead`."""
    return list(_sounds(lines, url))


def _sounds(lines: Sequence[str], url: str) -> Iterator[ReadSound]:
    for line in lines:
        if line.startswith(_MEDIA) and (said := _attributes(line)).get("TYPE") == "AUDIO":
            where = _joined(url, said["URI"]) if "URI" in said else ""
            yield ReadSound(said.get("GROUP-ID", ""), said.get("NAME", ""), said.get("LANGUAGE", ""), where)


def media_playlist(lines: Sequence[str], url: str) -> ReadPlaylist:
    """Raises `NotRead`."""
    target, number, header, ended = 2.0, 0, "", False
    found: list[ReadSegment] = []
    for line in lines:
        name, _, value = line.partition(":")
        match name:
            case "#EXT-X-TARGETDURATION" if (seconds := whole(value)) is not None:
                target = min(max(float(seconds), 1.0), 30.0)
            case "#EXT-X-MEDIA-SEQUENCE":
                number = _number(value)
            case "#EXT-X-KEY" if "METHOD=NONE" not in value:
                raise NotRead("it is encrypted, which cannot be read.")
            case "#EXT-X-MAP":
                header = _joined(url, _attributes(line).get("URI", ""))
            case "#EXT-X-ENDLIST":
                ended = True
            case _ if not line.startswith("#"):
                found.append(ReadSegment(number, _joined(url, line), header))
                number += 1
    return ReadPlaylist(found, target, ended)


def _attributes(line: str) -> Mapping[str, str]:
    try:
        return attributes(line)
    except LongLine as fault:
        raise NotRead(f"{fault}.") from None


def _number(text: str) -> int:
    found = whole(text)
    if found is None:
        raise NotRead("a number of its playlist cannot be read.")
    return found


def _joined(base: str, url: str) -> str:
    try:
        return str(urljoin(base, within(url)))
    except LongLine as fault:
        raise NotRead(f"{fault}.") from None
    except ValueError:
        raise NotRead("an address of its playlist cannot be read.") from None
