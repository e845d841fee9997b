"""Playlists of HLS that are read (RFC 8216). ffmpeg would follow any address in them; here each passes the outbound client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from workers.adapters.outbound_http import GuardedClient
from workers.media.errors import Unreadable
from workers.media.hls import Playlist, read

SECONDS: Final = 15.0
"""For a playlist, or another short file."""
_LONGEST: Final = 2_097_152
_MOST_ENTRIES: Final = 50_000


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


async def read_playlist(client: GuardedClient, url: str) -> Playlist:
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
    return playlist_of(body.decode(errors="replace"))


def playlist_of(text: str) -> Playlist:
    """Raises `NotRead`."""
    try:
        return read(text.removeprefix("\ufeff"), most=_MOST_ENTRIES)
    except Unreadable as fault:
        raise NotRead(f"{fault}.") from None


def best_variant(found: Playlist, url: str) -> Variant | None:
    """The one with the highest bitrate; None where the playlist names none. Raises `NotRead`."""
    best = max(found.variants, key=lambda one: one.bandwidth, default=None)
    return None if best is None else Variant(_joined(url, best.uri), best.audio)


def sounds_in(found: Playlist, url: str) -> Sequence[ReadSound]:
    """Raises `NotRead`."""
    return [
        ReadSound(one.group, one.name, one.language, _joined(url, one.uri) if one.uri else "")
        for one in found.renditions
        if one.type == "AUDIO"
    ]


def media_playlist(found: Playlist, url: str) -> ReadPlaylist:
    """Raises `NotRead`."""
    if found.encrypted:
        raise NotRead("it is encrypted, which cannot be read.")
    segments = [
        ReadSegment(one.sequence, _joined(url, one.uri), "" if one.init is None else _joined(url, one.init.uri))
        for one in found.entries
        if not one.absent
    ]
    return ReadPlaylist(segments, min(max(found.target or 2.0, 1.0), 30.0), found.ended)


def _joined(base: str, url: str) -> str:
    try:
        return str(urljoin(base, url))
    except ValueError:
        raise NotRead("an address of its playlist cannot be read.") from None
