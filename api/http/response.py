"""The response that an endpoint returns, and how it is sent: as 304, compressed, in one piece or as a stream.

Compression and its entity tags: docs/explanation/http.md#compression."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from pydantic_core import to_json
from starlette import responses
from starlette.types import Receive, Scope, Send

from api.guards.application import REASON
from api.guards.unsent import PIECE
from api.http.headers import accepts_gzip, entity_tags, is_any, whole
from api.http.request import IF_NONE_MATCH, SCOPE, Request

EVENT_STREAM: Final = "text/event-stream"
_ACCEPT_ENCODING: Final = b"accept-encoding"
_SMALLEST: Final = 1024
"""The size in bytes up to which a body is not compressed, since it fits into one packet anyway."""
_LONG: Final = 32_768
"""The size in bytes from which a body is compressed in a thread, since it takes more than about a millisecond."""
_GZIP: Final = 31
"""zlib's code of the gzip format."""
_LEVEL: Final = 5
_COMPRESSIBLE: Final = frozenset(
    {
        *("application/json", "application/x-ndjson", "application/xml", "application/javascript", "application/dash+xml"),
        *("application/problem+json", "application/smil+xml", "application/vnd.apple.mpegurl", "image/svg+xml"),
    }
)
_logger = logging.getLogger("medialedger.http")
JSON_TYPE = "application/json"
HTML: Final = "text/html; charset=utf-8"
SCRIPT: Final = "text/javascript; charset=utf-8"
STYLE: Final = "text/css; charset=utf-8"
_JSON_HEADER = (b"content-type", b"application/json")
NO_STALE_COPY = (("cache-control", "no-cache"),)
"""The header of a response whose copies are used only after a check by If-None-Match."""
_RESERVED = ":/?#[]@!$&'()*+,;=%"
_BODYLESS: Final = (204, 304)
_READS: Final = ("GET", "HEAD")
_OF_FILES: Final = frozenset((b"content-encoding", b"accept-ranges", b"content-range"))
_OF_304: Final = (b"cache-control", b"content-security-policy", b"etag", b"link", b"vary")
Pairs = tuple[tuple[str, str], ...]


class Document:
    """A body that is the same for every request: it is compressed once, and its entity tag is a digest of it."""

    __slots__ = ("body", "etag", "gzipped")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.etag = sha256(body).hexdigest()[:32]
        self.gzipped: bytes | None = None

    def response(self, media_type: str = JSON_TYPE, *, headers: Pairs = NO_STALE_COPY) -> Response:
        return Response(self.body, etag=self.etag, headers=headers, media_type=media_type, settled=True, document=self)


class Response(responses.Response):
    """A response of JSON, of bytes, or of a stream.

    `content` is any object that JSON can hold, finished bytes, a stream of bytes, or `None` for no body (`b"null"` is JSON's null).
    `settled` says that `etag` alone identifies the body, which shows nothing that changes without it, such as the names of other
    records; the tag of another body that is read has its checksum after it. `reason` replaces the words of the status line.
    `document` has the body in gzip, where it is the same for all requests."""

    def __init__(
        self,
        content: Any = None,
        status_code: int = 200,
        headers: Pairs | Mapping[str, str] = (),
        media_type: str = JSON_TYPE,
        *,
        etag: int | str | None = None,
        location: str | None = None,
        settled: bool = False,
        reason: bytes | None = None,
        document: Document | None = None,
    ) -> None:
        self.content = content
        self.status_code = status_code
        self.media_type = media_type
        self.etag = etag
        self.settled = settled
        self.reason = reason
        self.document = document
        self.background = None
        self._is_stream = is_stream(content)
        self.body = b"" if self._is_stream else encode(content)
        self.raw_headers = pairs = []
        if status_code != 204 and content is not None:
            pairs.append(_JSON_HEADER if media_type is JSON_TYPE else _pair("content-type", media_type))
        if etag is not None:
            pairs.append((b"etag", b'"%s"' % str(etag).encode("ascii")))
        if location is not None:
            pairs.append((b"location", quote(location, safe=_RESERVED).encode("ascii")))
        for name, value in headers.items() if isinstance(headers, Mapping) else headers:
            pairs.append(_pair(name, value))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request: Request = scope[SCOPE]
        headers, status = self.raw_headers, self.status_code
        stream: Any = self.content if self._is_stream else None
        payload: bytes | None = None if stream is not None else bytes(self.body)
        coded = (payload is None or len(payload) > _SMALLEST) and self._is_coded(request)
        method = scope["method"]
        read = status == 200 and method in _READS
        if self.etag is not None and payload is not None and (coded or (read and not self.settled)):
            tag = str(self.etag).encode()
            coded_tag = b'"%s%s%08x"' % (tag, b"-" if coded else b".", zlib.crc32(payload))
            headers[headers.index((b"etag", b'"%s"' % tag))] = b"etag", coded_tag
        if read and self.etag is not None and IF_NONE_MATCH in request.fields and self._is_current(request):
            status, payload = 304, b""
            headers = [pair for pair in headers if pair[0] in _OF_304]
        elif coded:
            headers.append((b"content-encoding", b"gzip"))
            if payload is None:
                stream = _gzip_pieces(stream)
            else:
                payload = await _gzip(payload, self.document)
        large = None
        if payload is not None:
            if status not in _BODYLESS:
                headers.append((b"content-length", b"%d" % len(payload)))
            if len(payload) > PIECE and method != "HEAD":
                large = scope["app"].unsent.admit(payload, scope)
        if method == "HEAD" or status in _BODYLESS:
            payload = b""
        if self.reason is not None and (word := scope.get("extensions", {}).get(REASON)) is not None:
            word(self.reason)
        if stream is None:
            self.content, self.body = None, b""  # nothing but the bytes themselves stays in memory for a client that does not read
        await send({"type": "http.response.start", "status": status, "headers": headers})
        try:
            if payload is None:
                await scope["app"].streams.send(stream, request, media_type=self.media_type, receive=receive, send=send)
            elif large is not None:
                await scope["app"].unsent.send(large, payload, send)
            else:
                await send({"type": "http.response.body", "body": payload})
        finally:
            if stream is not None and hasattr(self.content, "aclose"):
                await self.content.aclose()  # a generator that has begun has ended with its task already
        if self.background is not None:
            await self.background()

    def _is_coded(self, request: Request) -> bool:
        """Return True if the body is compressed, and add Vary where that depends on the request. HEAD is answered as GET.

        A response that may not be stored is not compressed: it holds secrets, and the size of a compressed body depends on its
        content. Neither are files with byte ranges: their entity tags and ranges mean the plain file."""
        if self.status_code in _BODYLESS or not _is_text(self.media_type) or (b"cache-control", b"no-store") in self.raw_headers:
            return False
        for name, _ in self.raw_headers:
            if name in _OF_FILES:
                return False
        self.raw_headers.append((b"vary", _ACCEPT_ENCODING))
        return _ACCEPT_ENCODING in request.fields and accepts_gzip(whole(request.scope["headers"], _ACCEPT_ENCODING))

    def _is_current(self, request: Request) -> bool:
        """Return True if If-None-Match names what would be sent."""
        sent = whole(request.scope["headers"], IF_NONE_MATCH)
        tag = next(value for name, value in self.raw_headers if name == b"etag")
        return is_any(sent) or tag[1:-1] in entity_tags(sent)


@lru_cache(256)
def _is_text(media_type: str | None) -> bool:
    """Return True for a media type whose bodies are worth compressing."""
    media_type = (media_type or "").partition(";")[0]
    return media_type in _COMPRESSIBLE or (media_type.startswith("text/") and media_type != EVENT_STREAM)


async def _gzip_pieces(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Compress a stream piece by piece. Each piece is sent when it is there."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)

    def pack(piece: bytes) -> bytes:
        return packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)

    async for piece in pieces:
        yield await asyncio.to_thread(pack, piece) if len(piece) > _LONG else pack(piece)
    yield packer.flush()


class OpenStreams:
    """All streams of one application. A client that disconnects closes its stream at once, which frees its cursor or seat.

    Event streams end when the process stops, so that no open page delays a shutdown; browsers connect again. Other streams are
    waited for, as every response is: a half of one must not be taken for the whole."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        """Set when the process stops."""
        self.open = 0

    def end(self) -> None:
        """End the event streams."""
        self.ended.set()

    async def send(self, pieces: Any, request: Request, *, media_type: str, receive: Receive, send: Send) -> None:
        """Send a stream. An error in it cannot be answered any more: it closes the connection."""

        async def send_pieces() -> None:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})

        async def disconnect() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass  # the rest of the request is dropped

        self.open += 1
        sending = asyncio.create_task(send_pieces(), name="stream")
        tasks: list[asyncio.Task[Any]] = [sending, asyncio.create_task(disconnect(), name="disconnect of a client")]
        if media_type == EVENT_STREAM:
            tasks.append(asyncio.create_task(self.ended.wait(), name="end of the streams"))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.open -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        error = None if sending.cancelled() else sending.exception()
        if error is not None:
            extra = {"transactionId": request.transaction_id, "route": request.path}
            _logger.error("a stream broke off", exc_info=error, extra=extra)
            raise error
        await send({"type": "http.response.body", "body": b""})


async def array(parts: AsyncIterator[Sequence[Any]], *, headers: Pairs = ()) -> Response:
    """Return a JSON array. If it has several parts, it is sent while it is read.

    An error in the first two parts is an error response. A later one closes the connection."""
    first = await anext(parts, None) or []
    second = await anext(parts, None)

    async def pieces() -> AsyncIterator[bytes]:
        before = b"["
        part: Sequence[Any] | None = [*first, *(second or ())]
        while part is not None:
            if part:
                yield before + b",".join(map(encode, part))
                before = b","
            part = await anext(parts, None)
        yield b"]" if before == b"," else b"[]"

    return Response(first if second is None else pieces(), headers=headers)


async def _gzip(payload: bytes, document: Document | None) -> bytes:
    """Compress a body; off the event loop where that takes longer than a request. A document remembers the result."""
    if document is not None and document.gzipped is not None:
        return document.gzipped
    compress = partial(zlib.compress, payload, _LEVEL, _GZIP)
    gzipped = await asyncio.to_thread(compress) if len(payload) > _LONG else compress()
    if document is not None:
        document.gzipped = gzipped
    return gzipped


def encode(body: Any) -> bytes:
    """Return JSON with the documented names of fields. Bytes are returned unchanged."""
    if body is None:
        return b""
    if type(body) is bytes:
        return body
    serializer = getattr(type(body), "__pydantic_serializer__", None)
    if serializer is not None:  # twice as fast as `to_json`, which looks for it
        json: bytes = serializer.to_json(body, by_alias=True, warnings=False)
        return json
    return to_json(body, by_alias=True, inf_nan_mode="null")


def is_stream(body: Any) -> bool:
    return hasattr(type(body), "__aiter__")


def _pair(name: str, value: str) -> tuple[bytes, bytes]:
    """Return a header. Line breaks are refused: a value from a request must not start a header of its own."""
    if not value.isprintable():
        raise ValueError(f"the header {name} may hold printable characters only")
    return name.lower().encode("ascii"), value.encode("latin-1")
