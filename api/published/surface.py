"""The surface of published media. Pages of other origins read it, also its errors."""

from __future__ import annotations

from typing import Final

from api.http.errors import Failure
from api.http.request import Request
from api.http.response import Response
from api.http.surface import Surface, problem

CROSS_ORIGIN: Final = (
    ("access-control-allow-origin", "*"),
    ("access-control-expose-headers", "accept-ranges, content-length, content-range, etag, x-transaction-id"),
    ("cross-origin-resource-policy", "cross-origin"),
)
_REQUEST_HEADERS: Final = ("x-transaction-id", "range", "if-range", "if-none-match", "if-modified-since")


def render(failure: Failure, request: Request) -> Response:
    response = problem(failure, request)
    response.headers += CROSS_ORIGIN
    return response


PUBLISHED_MEDIA: Final = Surface("published media", prefix="/media", render=render)


def preflight(*request_headers: str) -> Response:
    """What a page of another origin may send."""
    return Response(
        204,
        headers=(
            ("access-control-allow-origin", "*"),
            ("access-control-allow-methods", "GET, HEAD, OPTIONS"),
            ("access-control-allow-headers", ", ".join((*_REQUEST_HEADERS, *request_headers))),
            ("access-control-max-age", "86400"),
        ),
    )
