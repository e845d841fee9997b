"""Reading of HLS playlists (RFC 8216). ffmpeg would follow any address in them; here each address passes the outbound client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from workers.media.errors import Unreadable
from workers.media.hls import HlsPlaylist, read
from workers.ports.outbound import OutboundConnections

SECONDS: Final = 15.0
"""The time limit for a playlist or another short file, in seconds."""
_LONGEST: Final = 2_097_152
_MOST_ENTRIES: Final = 50_000


class NotRead(Exception):
    """Raised when a playlist cannot be read. The message is the rest of a sentence whose subject is the source."""


@dataclass(frozen=True, slots=True)
class ReadSegment:
    """A segment. `header` is the URL of its initialization section, empty if it needs none."""

    number: int
    url: str = field(repr=False)
    header: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ReadPlaylist:
    """A media playlist. `target` is the length of a segment in seconds."""

    segments: Sequence[ReadSegment]
    target: float
    ended: bool


@dataclass(frozen=True, slots=True)
class FetchedVariant:
    """A rendition of the picture. `group` is the group of its sounds, empty if its own segments contain the sound."""

    url: str = field(repr=False)
    group: str = ""


@dataclass(frozen=True, slots=True)
class ReadSound:
    """A sound. `url` is empty if the sound is in the segments of the picture."""

    group: str
    name: str
    language: str
    url: str = field(repr=False)


async def read_playlist(client: OutboundConnections, url: str) -> HlsPlaylist:
    """Fetch and parse a playlist. Raises `NotRead`, `OutboundRefused` and `OutboundFailed`."""
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


def playlist_of(text: str) -> HlsPlaylist:
    """Parse a playlist. Raises `NotRead`."""
    try:
        return read(text.removeprefix("\ufeff"), most=_MOST_ENTRIES)
    except Unreadable as fault:
        raise NotRead(f"{fault}.") from None


def best_variant(playlist: HlsPlaylist, url: str) -> FetchedVariant | None:
    """Return the variant with the highest bitrate; None if the playlist lists no variants. Raises `NotRead`."""
    best = max(playlist.variants, key=lambda variant: variant.bandwidth, default=None)
    return None if best is None else FetchedVariant(_joined(url, best.uri), best.audio)


def sounds_in(playlist: HlsPlaylist, url: str) -> Sequence[ReadSound]:
    """Return the sounds of a multivariant playlist. Raises `NotRead`."""
    return [
        ReadSound(rendition.group, rendition.name, rendition.language, _joined(url, rendition.uri) if rendition.uri else "")
        for rendition in playlist.renditions
        if rendition.type == "AUDIO"
    ]


def media_playlist(playlist: HlsPlaylist, url: str) -> ReadPlaylist:
    """Return the segments of a media playlist. Raises `NotRead`."""
    if playlist.encrypted:
        raise NotRead("it is encrypted, which cannot be read.")
    segments = [
        ReadSegment(entry.sequence, _joined(url, entry.uri), "" if entry.init is None else _joined(url, entry.init.uri))
        for entry in playlist.entries
        if not entry.absent
    ]
    return ReadPlaylist(segments, min(max(playlist.target or 2.0, 1.0), 30.0), playlist.ended)


def _joined(base: str, url: str) -> str:
    try:
        return str(urljoin(base, url))
    except ValueError:
        raise NotRead("an address of its playlist cannot be read.") from None
