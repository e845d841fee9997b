"""Published media for players: docs/reference/api/published-media.md.

Needs no key for Events in a public state. Whatever a caller may not see is answered as what is not there.
"""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime
from typing import Final

from api.http.auth import OPEN
from api.http.errors import HttpError
from api.http.request import Request
from api.http.response import Response
from api.http.router import Router
from api.published.byte_range import ByteRange, NotSatisfiable, byte_range
from api.published.files import FileBody, Published, PublishedFiles
from api.published.media_types import UNKNOWN, media_type
from api.published.surface import CROSS_ORIGIN, PUBLISHED_MEDIA
from workers.kernel.http_dates import http_date

routes = Router(surface=PUBLISHED_MEDIA, tag="Published media")

_SAFE: Final = (
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; sandbox"),
)
"""What a job publishes is a stranger's: no browser takes it for a page of this origin."""
_PREFLIGHT: Final = (
    ("access-control-allow-origin", "*"),
    ("access-control-allow-methods", "GET, HEAD, OPTIONS"),
    ("access-control-allow-headers", "api-key, x-auth-key, x-transaction-id, range, if-range, if-none-match, if-modified-since"),
    ("access-control-max-age", "86400"),
)


class RangeNotSatisfiable(HttpError):
    """No byte of the range is in the file."""

    status = 416

    def __init__(self, total: int) -> None:
        super().__init__(f"The file has {total} bytes.", headers=(("content-range", f"bytes */{total}"),))


@routes.get(
    "/{contentId}/{+file}",
    OPEN,
    media_type=UNKNOWN,
    errors={
        206: "The response is the range of the file",
        304: "The caller has this version",
        416: "No byte of the range is in the file",
        503: "The store does not answer, or too many files are read; see Retry-After",
    },
)
async def read_media_file(request: Request, content_id: str, file: str, files: PublishedFiles) -> Response:
    """A published file, or one byte range of it.

    Served where MEDIALEDGER_MEDIA_SERVE is on: without a key for Events in a public on-demand state, for others with the key of a
    client that may read. Of Events with `vodDrm` only encrypted packages, pictures and their index are served."""
    published = await files.open(content_id, file, request=request)
    try:
        return _response(request, files, published)
    except BaseException:
        await files.close(published)
        raise


@routes.options("/{contentId}/{+file}", OPEN, absent=None, status=204, documented=False)
async def allow_media_file(request: Request, content_id: str, file: str) -> Response:
    """What a page of another origin may send."""
    return Response(204, headers=_PREFLIGHT)


def _response(request: Request, files: PublishedFiles, published: Published) -> Response:
    file = published.opened.file
    caching = "no-cache" if published.public else "private, no-store"
    headers: tuple[tuple[str, str], ...] = (
        ("etag", _etag(published)),
        ("last-modified", _modified(published)),
        ("accept-ranges", "bytes"),
        ("cache-control", caching),
        *CROSS_ORIGIN,
        *_SAFE,
    )
    if _is_known(request, published):
        return Response(304, FileBody(files, published, start=0, size=0), headers=headers, media_type=media_type(file.path))
    part = _part(request, published)
    start, size = (part.start, part.size) if part is not None else (0, file.size)
    headers += (("content-length", str(size)),)
    if part is not None:
        headers += (("content-range", part.content_range(file.size)),)
    body = FileBody(files, published, start=start, size=size)
    return Response(200 if part is None else 206, body, headers=headers, media_type=media_type(file.path))


def _is_known(request: Request, published: Published) -> bool:
    """Whether the caller has this version. An entity tag counts before a date."""
    tags = request.header("if-none-match")
    if tags is not None:
        return tags.strip() == "*" or _etag(published) in (tag.strip().removeprefix("W/") for tag in tags.split(","))
    since = http_date(request.header("if-modified-since") or "")
    return since is not None and published.opened.file.modified < since + timedelta(seconds=1)


def _part(request: Request, published: Published) -> ByteRange | None:
    """None: all of it. Also for a caller that has begun with another version."""
    wanted = request.header("range")
    if wanted is None or request.method != "GET":
        return None
    begun = request.header("if-range")
    if begun is not None and begun.strip() not in (_etag(published), _modified(published)):
        return None
    total = published.opened.file.size
    try:
        return byte_range(wanted, total)
    except NotSatisfiable:
        raise RangeNotSatisfiable(total) from None


def _etag(published: Published) -> str:
    return f'"{published.opened.etag}"'


def _modified(published: Published) -> str:
    return format_datetime(published.opened.file.modified, usegmt=True)
