"""The surface of published media. Pages of every origin may read and embed it, and read its errors."""

from __future__ import annotations

from typing import Final

from api.http.cross_origin import CrossOrigin
from api.http.routing import Route
from api.http.surface import Surface

PLAYERS: Final = CrossOrigin(
    None,
    methods=frozenset({"GET", "HEAD"}),
    request_headers=("if-modified-since", "if-range", "if-unmodified-since", "range"),
    exposed=("accept-ranges", "content-length", "content-range", "etag", "retry-after", "x-transaction-id"),
    max_age=86_400,
    embedded=True,
)

PUBLISHED_MEDIA: Final = Surface("published media", prefix="/media", cross_origin=PLAYERS)


class PublishedMediaRoute(Route):
    """A route of published media."""

    surface = PUBLISHED_MEDIA
