"""Compressed responses (gzip): which bodies, when, and the entity tags that tell a compressed body from a plain one.

docs/explanation/http.md#compression."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from api.http.header_lists import accepts_gzip, whole
from api.http.request import Request
from api.http.streaming import EVENT_STREAM, close_stream

ACCEPT_ENCODING: Final = b"accept-encoding"
VARY: Final = (b"vary", b"accept-encoding")
GZIP: Final = (b"content-encoding", b"gzip")
SMALLEST: Final = 1024
"""Bytes. A smaller body fits into one packet anyway."""
_LONG: Final = 32_768
"""Bytes that take about a millisecond: more are compressed in a thread."""
_LEVEL: Final = 5
_FORMAT: Final = 31
"""zlib's code of the gzip format."""
_TEXTS: Final = frozenset(
    {
        *("application/json", "application/x-ndjson", "application/xml", "application/javascript", "application/dash+xml"),
        *("application/problem+json", "application/smil+xml", "application/vnd.apple.mpegurl", "image/svg+xml"),
    }
)
_NEVER_STORED: Final = (b"cache-control", b"no-store")


def is_compressible(media_type: str, headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return True for texts. What may not be stored is not compressed: it holds secrets, and the size of a compressed body tells
    something of its content. Neither are files with byte ranges: their entity tags and ranges mean the plain file."""
    media_type = media_type.partition(";")[0]
    if media_type not in _TEXTS and not (media_type.startswith("text/") and media_type != EVENT_STREAM):
        return False
    names = {name for name, _ in headers}
    return _NEVER_STORED not in headers and names.isdisjoint((b"content-encoding", b"accept-ranges", b"content-range"))


def wants_gzip(request: Request) -> bool:
    header = request.fields.get(ACCEPT_ENCODING)
    return header is not None and accepts_gzip(whole(request.scope["headers"], ACCEPT_ENCODING))


def gzip_now(payload: bytes) -> bytes:
    return zlib.compress(payload, _LEVEL, _FORMAT)


async def gzip_body(payload: bytes) -> bytes:
    """Off the event loop where it takes longer than a request."""
    return await asyncio.to_thread(gzip_now, payload) if len(payload) > _LONG else gzip_now(payload)


def tag_with_checksum(etag: int | str, payload: bytes, *, coded: bool) -> bytes:
    """The entity tag of a body that the version alone does not identify: a compressed one, or one that shows names of other records
    too. A compressed body has another tag than the plain one with the same content."""
    return b'"%s%s%08x"' % (str(etag).encode(), b"-" if coded else b".", zlib.crc32(payload))


class GzipStream:
    """A stream, compressed piece by piece. Nothing that was given is held back: a reader sees each piece when it is there."""

    def __init__(self, pieces: Any) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _FORMAT)
        async for piece in self._pieces:
            yield await asyncio.to_thread(_packed, packer, piece) if len(piece) > _LONG else _packed(packer, piece)
        yield packer.flush()

    async def aclose(self) -> None:
        await close_stream(self._pieces)


def _packed(packer: Any, piece: bytes) -> bytes:
    packed: bytes = packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
    return packed
