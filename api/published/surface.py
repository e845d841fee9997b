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


def render(failure: Failure, request: Request) -> Response:
    response = problem(failure, request)
    response.headers += CROSS_ORIGIN
    return response


PUBLISHED_MEDIA: Final = Surface("published media", prefix="/media", render=render)
