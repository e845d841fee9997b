"""The response with a file, or with one byte range of it, for players of any origin."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import timedelta
from email.utils import format_datetime
from typing import Final

from api.http.errors import Failure, HttpError
from api.http.headers import entity_tags, is_any, strong_tags, whole
from api.http.request import IF_MATCH, IF_NONE_MATCH, Request
from api.http.response import Response
from api.published.byte_range import ByteRange, NotSatisfiable, byte_range
from api.published.media_types import media_type
from workers.kernel.http_dates import http_date
from workers.ports.media import OpenMedia

SAFE: Final = (("content-security-policy", "default-src 'none'; sandbox"),)
"""Headers of published files. Jobs and encoders publish untrusted content, which browsers must not run as a page of this origin."""


class RangeNotSatisfiable(HttpError):
    """Raised when no byte of the range is in the file."""

    status = 416

    def __init__(self, total: int) -> None:
        super().__init__(f"The file has {total} bytes.", headers=(("content-range", f"bytes */{total}"),))


class OtherVersion(HttpError):
    """Raised when the caller requires a version that the file does not have."""

    status = 412

    def __init__(self) -> None:
        super().__init__("The version of the file differs from If-Match or If-Unmodified-Since.")

    def failure(self) -> Failure:
        return Failure(self.status, self.detail, "stale-version")


class FileBody:
    """The body of a response: a part of a file, or no bytes. It calls `close` when it is closed."""

    def __init__(self, opened: OpenMedia, close: Callable[[], Awaitable[None]], *, start: int, size: int) -> None:
        self._close: Callable[[], Awaitable[None]] | None = close
        self._pieces = opened.read(start, size)

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        return self._pieces

    async def aclose(self) -> None:
        close, self._close = self._close, None
        if close is not None:
            await self._pieces.aclose()
            await close()


def file_response(request: Request, opened: OpenMedia, *, close: Callable[[], Awaitable[None]], caching: str) -> Response:
    """Return the response with a file. Raise `OtherVersion` and `RangeNotSatisfiable`, and leave the file open then."""
    file = opened.file
    headers: tuple[tuple[str, str], ...] = (
        ("etag", _etag(opened)),
        ("last-modified", _modified(opened)),
        ("accept-ranges", "bytes"),
        ("cache-control", caching),
        *SAFE,
    )
    if _is_other(request, opened):
        raise OtherVersion()
    if _is_known(request, opened):
        return Response(FileBody(opened, close, start=0, size=0), 304, headers=headers, media_type=media_type(file.path))
    part = _part(request, opened)
    start, size = (part.start, part.size) if part is not None else (0, file.size)
    headers += (("content-length", str(size)),)
    if part is not None:
        headers += (("content-range", part.content_range(file.size)),)
    body = FileBody(opened, close, start=start, size=size)
    return Response(body, 200 if part is None else 206, headers=headers, media_type=media_type(file.path))


def _is_other(request: Request, opened: OpenMedia) -> bool:
    """Return True if the caller requires another version. An entity tag takes precedence over a date: RFC 9110, 13.2.2."""
    if IF_MATCH in request.fields:
        tags = whole(request.scope["headers"], IF_MATCH)
        return not (is_any(tags) or opened.etag.encode() in strong_tags(tags))
    since = http_date(request.header("if-unmodified-since") or "")
    return since is not None and opened.file.modified - timedelta(seconds=1) >= since


def _is_known(request: Request, opened: OpenMedia) -> bool:
    """Return True if the caller already has this version. An entity tag takes precedence over a date."""
    if IF_NONE_MATCH in request.fields:
        tags = whole(request.scope["headers"], IF_NONE_MATCH)
        return is_any(tags) or opened.etag.encode() in entity_tags(tags)
    since = http_date(request.header("if-modified-since") or "")
    return since is not None and opened.file.modified - timedelta(seconds=1) < since


def _part(request: Request, opened: OpenMedia) -> ByteRange | None:
    """Return the requested range; None for the whole file, also if the caller began with another version."""
    wanted = request.header("range")
    if wanted is None or request.method != "GET":
        return None
    begun = request.header("if-range")
    if begun is not None and begun.strip() not in (_etag(opened), _modified(opened)):
        return None
    total = opened.file.size
    try:
        return byte_range(wanted, total)
    except NotSatisfiable:
        raise RangeNotSatisfiable(total) from None


def _etag(opened: OpenMedia) -> str:
    return f'"{opened.etag}"'


def _modified(opened: OpenMedia) -> str:
    return format_datetime(opened.file.modified, usegmt=True)
