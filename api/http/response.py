"""The response that an endpoint returns, and its encoding."""

from __future__ import annotations

from collections.abc import AsyncIterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel
from pydantic_core import to_json

JSON_TYPE = "application/json"
_JSON_HEADER = (b"content-type", b"application/json")
NO_STALE_COPY = (("cache-control", "no-cache"),)
"""A copy is used after it was asked whether it is still right, which If-None-Match does."""
_NO_STREAMS = (dict, bytes, list, type(None))
_RESERVED = ":/?#[]@!$&'()*+,;=%"


class Document:
    """A body that is the same for every request: it is compressed once, and its entity tag is a digest of it."""

    __slots__ = ("body", "etag", "gzipped")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.etag = sha256(body).hexdigest()[:32]
        self.gzipped: bytes | None = None

    def response(self, media_type: str = JSON_TYPE, *, headers: tuple[tuple[str, str], ...] = NO_STALE_COPY) -> Response:
        return Response(200, self.body, self.etag, headers=headers, media_type=media_type, settled=True, document=self)


@dataclass(slots=True, eq=False)
class Response:
    """`body` is any JSON-able object, finished bytes, a stream of bytes, or `None` for no body (`b"null"` is JSON's null)."""

    status: int = 200
    body: Any = None
    etag: int | str | None = None
    location: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str = JSON_TYPE
    settled: bool = False
    """True if `etag` alone identifies the body: it shows nothing that changes without it, such as the names of other records. The
    tag of another body that is read has its checksum behind it."""
    reason: bytes | None = None
    """The words of the status line, where they are others than those of the status."""
    document: Document | None = None
    """What keeps the body in gzip, where it is the same for all requests."""

    def payload(self) -> bytes:
        return encode(self.body)

    def header_pairs(self) -> list[tuple[bytes, bytes]]:
        """All headers that belong to the response itself: not those of the exchange, such as its length or transaction id."""
        pairs: list[tuple[bytes, bytes]] = []
        if self.status != 204 and self.body is not None:
            pairs.append(_JSON_HEADER if self.media_type is JSON_TYPE else _pair("content-type", self.media_type))
        if self.etag is not None:
            pairs.append((b"etag", b'"%s"' % str(self.etag).encode("ascii")))
        if self.location is not None:
            pairs.append((b"location", quote(self.location, safe=_RESERVED).encode("ascii")))
        for name, value in self.headers:
            pairs.append(_pair(name, value))
        return pairs


def encode(body: Any) -> bytes:
    """JSON in one pass of the Rust serializer, aliases as the wire spells them; bytes are sent unchanged."""
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
