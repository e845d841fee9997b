"""Playlists, segments and state pages of the built-in origin: docs/reference/api/origin.md."""

from __future__ import annotations

from collections.abc import Awaitable
from re import compile as regex
from typing import Final

from fastapi import APIRouter

from api.http.request import Request
from api.http.response import JSON_TYPE, Response
from api.http.routing import OPEN, Service, rules
from api.origin.access import OriginAccess, PointAccess, ViewerNeeded, missing
from api.origin.surface import OriginRoute
from api.published.file_response import SAFE, file_response
from api.published.media_types import UNKNOWN
from workers.origin import state_pages
from workers.origin.live_origin import LiveOrigin
from workers.origin.playback import PlaybackView

routes = APIRouter(prefix="/origin", tags=["Origin"], route_class=OriginRoute)

_HLS: Final = "application/vnd.apple.mpegurl"
_DASH: Final = "application/dash+xml"
_SMIL: Final = "application/smil+xml"
_SHORT: Final = "max-age=1"
_LONG: Final = "max-age=86400"
_ARCHIVE: Final = "archive"
_INIT: Final = "init.mp4"
_PLAYLIST: Final = regex(r"tracks/([A-Za-z0-9._-]{1,96})\.m3u8")
_FILE: Final = regex(r"([0-9]{1,19})/([A-Za-z0-9._-]{1,96})/(init\.mp4|[0-9]{1,20}\.(?:m4s|ts))")


@routes.get("/live/{name}/{file:path}", dependencies=[OPEN])
@rules(
    media_type=UNKNOWN,
    if_match=True,
    errors={
        401: "The stream is not published or the whole recording is requested, and the request has no key or token that permits it",
        206: "The response is the range of the file",
        304: "The caller has this version",
        412: "The version of the file differs from If-Match or If-Unmodified-Since",
        416: "No byte of the range is in the file",
        503: "Too many segments are being read; see Retry-After",
    },
)
async def read_live_file(request: Request, name: str, file: str, access: Service[OriginAccess]) -> Response:
    """A playlist, a manifest, a segment or a state page of a live stream.

    Served if MEDIALEDGER_ORIGIN is on: to everybody while the Event of the publishing point is LIVE_PUBLISHED, otherwise with the
    key of a client that may read. `master.m3u8` (HLS) and `manifest.mpd` (DASH) hold the DVR window, `archive/master.m3u8` and
    `archive/manifest.mpd` the whole recording, which needs a token. `state`, `archive` and `status.php` show whether the encoder is
    sending data.
    """
    origin = access.origin(name)
    admission = await access.reader(origin, name, request, whole=file.startswith(f"{_ARCHIVE}/"))
    response = await _page(origin, name, file, admission) or await _playlist(origin, name, file, admission)
    response = response or await _segment(request, name, file, access=access, admission=admission)
    if response is None:
        raise missing(name)
    return response


async def _page(origin: LiveOrigin, name: str, file: str, admission: PointAccess) -> Response | None:
    if file not in ("state", _ARCHIVE, "status.php"):
        return None
    state = await origin.playback.state(name)
    if state is None:
        raise missing(name)
    if file == "status.php":
        return _text(state_pages.status(state), JSON_TYPE, admission)
    return _text(state_pages.smil(state, archive=file == _ARCHIVE), _SMIL, admission)


async def _playlist(origin: LiveOrigin, name: str, file: str, admission: PointAccess) -> Response | None:
    archive = file.startswith(f"{_ARCHIVE}/")
    file = file.removeprefix(f"{_ARCHIVE}/")
    up, playback, query = "../" if archive else "", origin.playback, admission.query
    playlist: Awaitable[str | None]
    if file == "master.m3u8":
        playlist, kind = playback.master(name, PlaybackView(archive, up, query)), _HLS
    elif file == "manifest.mpd":
        playlist, kind = playback.manifest(name, PlaybackView(archive, up, query)), _DASH
    elif (track := _PLAYLIST.fullmatch(file)) is not None:
        playlist, kind = playback.media(name, PlaybackView(archive, f"../{up}", query), track=track[1]), _HLS
    else:
        return None
    text = await playlist
    if text is None:
        raise missing(name)
    return _text(text, kind, admission)


async def _segment(request: Request, name: str, file: str, *, access: OriginAccess, admission: PointAccess) -> Response | None:
    named, origin = _FILE.fullmatch(file), access.origin(name)
    if named is None:
        return None
    opened = await access.open(origin, f"{name}/{int(named[1])}/t-{named[2]}/{named[3]}", request=request)
    if opened is None:
        return None
    try:
        came = opened.file.modified.timestamp()
        if not (admission.whole or named[3] == _INIT or came >= await origin.playback.live_since(name)):
            raise ViewerNeeded(whole=True)
        return file_response(request, opened, close=opened.close, caching=admission.caching(_LONG))
    except BaseException:
        await opened.close()
        raise


def _text(text: str, kind: str, admission: PointAccess) -> Response:
    return Response(text.encode(), headers=(("cache-control", admission.caching(_SHORT)), *SAFE), media_type=kind)
