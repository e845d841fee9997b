"""Published media for players: docs/reference/api/published-media.md.

Events in a public state need no key. A file that the caller may not read is answered like a file that does not exist.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from api.http.request import Request
from api.http.response import Response
from api.http.routing import OPEN, Service, rules
from api.published.file_response import file_response
from api.published.files import PublishedFiles
from api.published.media_types import UNKNOWN
from api.published.surface import PublishedMediaRoute

routes = APIRouter(prefix="/media", tags=["Published media"], route_class=PublishedMediaRoute)


@routes.get("/{contentId}/{file:path}", dependencies=[OPEN])
@rules(
    media_type=UNKNOWN,
    if_match=True,
    errors={
        206: "The response is the range of the file",
        304: "The caller has this version",
        412: "The version of the file differs from If-Match or If-Unmodified-Since",
        416: "No byte of the range is in the file",
        503: "The store does not answer, or too many files are being read; see Retry-After",
    },
)
async def read_media_file(
    request: Request, content_id: Annotated[str, Path(alias="contentId")], file: str, files: Service[PublishedFiles]
) -> Response:
    """A published file, or one byte range of it.

    Served if MEDIALEDGER_MEDIA_SERVE is on: without a key for Events in a public on-demand state, for others with the key of a
    client that may read. For Events with `vodDrm` only encrypted packages, pictures and their index are served.
    """
    published = await files.open(content_id, file, request=request)
    try:
        caching = "no-cache" if published.public else "private, no-store"
        return file_response(request, published.opened, close=published.opened.close, caching=caching)
    except BaseException:
        await published.opened.close()
        raise
