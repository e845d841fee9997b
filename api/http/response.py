"""The response that an endpoint returns, its encoding, and how it is sent: 304, compressed, in one piece or as a stream."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from pydantic import BaseModel
from pydantic_core import to_json
from starlette import responses
from starlette.types import Receive, Scope, Send

from api.guards.application import REASON
from api.guards.unsent import PIECE
from api.http import content_coding as coding
from api.http.header_lists import entity_tags, is_any, whole
from api.http.request import IF_NONE_MATCH, SCOPE, Request
from api.http.streaming import close_stream

JSON_TYPE = "application/json"
HTML: Final = "text/html; charset=utf-8"
SCRIPT: Final = "text/javascript; charset=utf-8"
STYLE: Final = "text/css; charset=utf-8"
_JSON_HEADER = (b"content-type", b"application/json")
NO_STALE_COPY = (("cache-control", "no-cache"),)
"""The header of a copy that is used only after its server was asked whether it is still right, as If-None-Match does."""
_NO_STREAMS = (dict, bytes, list, type(None))
_RESERVED = ":/?#[]@!$&'()*+,;=%"
_BODYLESS: Final = (204, 304)
_READS: Final = ("GET", "HEAD")
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
    `settled`: `etag` alone identifies the body, which shows nothing that changes without it, such as the names of other records;
    the tag of another body that is read has its checksum after it. `reason` are the words of the status line where they are others
    than those of the status. `document` keeps the body in gzip, where it is the same for all requests."""

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
        self.body = b"" if is_stream(content) else encode(content)
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
        headers, status, stream = self.raw_headers, self.status_code, self.content if is_stream(self.content) else None
        payload: bytes | None = None if stream is not None else bytes(self.body)
        coded = (payload is None or len(payload) > coding.SMALLEST) and self._is_coded(request)
        method = scope["method"]
        read = status == 200 and method in _READS
        if self.etag is not None and payload is not None and (coded or (read and not self.settled)):
            tag = coding.tag_with_checksum(self.etag, payload, coded=coded)
            headers[:] = [(name, tag if name == b"etag" else value) for name, value in headers]
        if read and self.etag is not None and IF_NONE_MATCH in request.fields and self._is_current(request):
            status, payload = 304, b""
            headers = [pair for pair in headers if pair[0] in _OF_304]
        elif coded:
            headers.append(coding.GZIP)
            if payload is None:
                stream = coding.GzipStream(stream)
            else:
                payload = await self._gzipped(payload)
        large = None
        if payload is not None:
            if status not in _BODYLESS:
                headers.append((b"content-length", b"%d" % len(payload)))
            if len(payload) > PIECE and method != "HEAD":
                large = scope["app"].unsent.admit(payload, scope)
        if method == "HEAD" or status in _BODYLESS:
            payload = b""
        if payload is not None and stream is not None:
            await close_stream(stream)
        if self.reason is not None and (word := scope.get("extensions", {}).get(REASON)) is not None:
            word(self.reason)
        if stream is None:
            self.content, self.body = None, b""  # a client that does not read keeps what is sent, and nothing else
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if payload is None:
            await scope["app"].streams.send(stream, request, media_type=self.media_type, receive=receive, send=send)
        elif large is not None:
            await scope["app"].unsent.send(large, payload, send)
        else:
            await send({"type": "http.response.body", "body": payload})
        if self.background is not None:
            await self.background()

    async def _gzipped(self, payload: bytes) -> bytes:
        if self.document is None:
            return await coding.gzip_body(payload)
        if self.document.gzipped is None:
            self.document.gzipped = await coding.gzip_body(payload)
        return self.document.gzipped

    def _is_coded(self, request: Request) -> bool:
        """Return True if the body is compressed. Where that depends on the request, caches are told so. HEAD is answered as GET."""
        if self.status_code in _BODYLESS or not coding.is_compressible(self.media_type or "", self.raw_headers):
            return False
        self.raw_headers.append(coding.VARY)
        return coding.wants_gzip(request)

    def _is_current(self, request: Request) -> bool:
        """Return True if If-None-Match names what would be sent."""
        sent = whole(request.scope["headers"], IF_NONE_MATCH)
        tag = next(value for name, value in self.raw_headers if name == b"etag")
        return is_any(sent) or tag[1:-1] in entity_tags(sent)


def encode(body: Any) -> bytes:
    """Return JSON in one pass of the Rust serializer, with aliases as the wire spells them. Bytes are returned unchanged."""
    if body is None:
        return b""
    if type(body) is bytes:
        return body
    if isinstance(body, BaseModel):  # its own serializer takes half the time of finding it out
        return type(body).__pydantic_serializer__.to_json(body, by_alias=True, warnings=False)
    return to_json(body, by_alias=True, inf_nan_mode="null")


def is_stream(body: Any) -> bool:
    return type(body) not in _NO_STREAMS and isinstance(body, AsyncIterable)


def _pair(name: str, value: str) -> tuple[bytes, bytes]:
    """Refuses line breaks: a value that reached a header from a request must not start a header of its own."""
    if not value.isprintable():
        raise ValueError(f"the header {name} may hold printable characters only")
    return name.lower().encode("ascii"), value.encode("latin-1")
