"""From an endpoint's response to what is sent: not modified (304), compressed, and the headers of the exchange."""

from __future__ import annotations

from typing import Any, Final

from api.http.caching import NOSNIFF, Caching
from api.http.content_coding import GZIP, SMALLEST, VARY, GzipStream, gzip_body, is_compressible, tag_with_checksum, wants_gzip
from api.http.cross_origin import CrossOrigin
from api.http.header_lists import entity_tags, is_any, whole
from api.http.request import IF_NONE_MATCH, Request
from api.http.response import Document, Response, encode, is_stream

Message = dict[str, Any]

NO_BODY: Final = {"type": "http.response.body", "body": b""}
_BODYLESS: Final = (204, 304)
_READS: Final = ("GET", "HEAD")
_OF_304: Final = (b"cache-control", b"content-security-policy", b"etag", b"link", b"vary", b"warning", b"preference-applied")


async def reply(
    response: Response, request: Request, *, caching: Caching, cross_origin: CrossOrigin | None
) -> tuple[Message, bytes | None]:
    """The head of the response and its body; `None` for a body that is streamed, which is then `response.body`."""
    streamed = is_stream(response.body)
    payload = None if streamed else encode(response.body)
    headers, status = response.header_pairs(), response.status
    caching.add(headers, status=status)
    headers.extend(request.notes)
    coded = (streamed or (payload is not None and len(payload) > SMALLEST)) and _is_coded(response, request, headers)
    read = status == 200 and request.method in _READS
    if response.etag is not None and payload is not None and (coded or (read and not response.settled)):
        _replace(headers, b"etag", tag_with_checksum(response.etag, payload, coded=coded))
    if read and IF_NONE_MATCH in request.headers and response.etag is not None and _is_known(request, headers):
        status, payload = 304, b""
        headers = [pair for pair in headers if pair[0] in _OF_304]
    elif coded:
        headers.append(GZIP)
        if payload is None:
            response.body = GzipStream(response.body)
        else:
            payload = await _gzipped(payload, response.document)
    if cross_origin is not None:
        headers.extend(cross_origin.response_headers(request))
    headers.append(NOSNIFF)
    headers.append((b"x-transaction-id", request.transaction_id.encode("ascii")))
    if payload is not None and status not in _BODYLESS:
        headers.append((b"content-length", b"%d" % len(payload)))
    if request.method == "HEAD" or status in _BODYLESS:
        payload = b""
    if b"expect" in request.headers and not request.body:
        # No "100 Continue" was sent, so the client may or may not send the body: only a new connection is safe.
        headers.append((b"connection", b"close"))
    return {"type": "http.response.start", "status": status, "headers": headers}, payload


async def _gzipped(payload: bytes, document: Document | None) -> bytes:
    if document is None:
        return await gzip_body(payload)
    if document.gzipped is None:
        document.gzipped = await gzip_body(payload)
    return document.gzipped


def _is_coded(response: Response, request: Request, headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether the body is compressed. Where that depends on the request, caches are told so. HEAD is answered as GET."""
    if response.status in _BODYLESS or not is_compressible(response):
        return False
    headers.append(VARY)
    return wants_gzip(request)


def _is_known(request: Request, headers: list[tuple[bytes, bytes]]) -> bool:
    """True if If-None-Match names what would be sent."""
    sent = whole(request.scope["headers"], IF_NONE_MATCH)
    return is_any(sent) or next(value for name, value in headers if name == b"etag")[1:-1] in entity_tags(sent)


def _replace(headers: list[tuple[bytes, bytes]], name: bytes, value: bytes) -> None:
    headers[:] = [(key, value if key == name else old) for key, old in headers]
