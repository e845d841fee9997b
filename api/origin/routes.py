"""Playlists, segments and state pages of the built-in origin: docs/reference/api/origin.md."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from re import compile as regex
from typing import Annotated, Final

from fastapi import APIRouter, Query

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
from workers.origin.selection import Selection, selection

routes = APIRouter(prefix="/origin", tags=["Origin"], route_class=OriginRoute)

_HLS: Final = "application/vnd.apple.mpegurl"
_DASH: Final = "application/dash+xml"
_SMIL: Final = "application/smil+xml"
_SHORT: Final = "max-age=1"
_LONG: Final = "max-age=86400"
_ARCHIVE: Final = "archive"
_INIT: Final = "init.mp4"
_BEGIN: Final = "The begin: an ISO 8601 date-time, or hh:mm:ss[.fff] from the start of the stream"
_END: Final = "The end, in the same forms"
_WINDOW: Final = "The length of the live window in seconds"
_FILTER: Final = 'The renditions: comparisons of type with "audio" or "video", and of systemBitrate, joined by && and ||'
_BITRATE: Final = "A limit of the bit rate of pictures, in bits a second"
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
async def read_live_file(
    request: Request,
    name: str,
    file: str,
    access: Service[OriginAccess],
    vbegin: Annotated[str | None, Query(description=_BEGIN)] = None,
    vend: Annotated[str | None, Query(description=_END)] = None,
    dvr_window_length: Annotated[str | None, Query(description=_WINDOW)] = None,
    filter: Annotated[str | None, Query(description=_FILTER)] = None,
    max_bitrate: Annotated[str | None, Query(description=_BITRATE)] = None,
    min_bitrate: Annotated[str | None, Query(description=_BITRATE)] = None,
) -> Response:
    """A playlist, a manifest, a segment or a state page of a live stream.

    Served if MEDIALEDGER_ORIGIN is on: to everybody while the Event of the publishing point is LIVE_PUBLISHED, otherwise with the
    key of a client that may read. `master.m3u8` (HLS) and `manifest.mpd` (DASH) hold the DVR window, or the part and the renditions
    that the parameters select. `archive/master.m3u8` and `archive/manifest.mpd` hold the whole recording, which needs a token.
    `state`, `archive` and `status.php` show whether the encoder is sending data.
    """
    origin = access.origin(name)
    sent = {"vbegin": vbegin, "vend": vend, "dvr_window_length": dvr_window_length, "filter": filter}
    sent |= {"max_bitrate": max_bitrate, "min_bitrate": min_bitrate}
    part = selection({parameter: value for parameter, value in sent.items() if value is not None})
    whole = file.startswith(f"{_ARCHIVE}/")
    # A file of a part has no parameters: the directory knows what is public.
    bounded = part.bounded or _FILE.fullmatch(file) is not None
    admission = await access.reader(origin, name, request, whole=whole, bounded=bounded)
    response = await _page(origin, name, file, admission) or await _playlist(origin, name, file, admission, part)
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


async def _playlist(origin: LiveOrigin, name: str, file: str, admission: PointAccess, part: Selection) -> Response | None:
    archive = file.startswith(f"{_ARCHIVE}/")
    file = file.removeprefix(f"{_ARCHIVE}/")
    up, playback = "../" if archive else "", origin.playback
    view = PlaybackView(archive, up, admission.query, part, admission.parts)
    playlist: Awaitable[str | None]
    if file == "master.m3u8":
        playlist, kind = playback.master(name, view), _HLS
    elif file == "manifest.mpd":
        playlist, kind = playback.manifest(name, view), _DASH
    elif (track := _PLAYLIST.fullmatch(file)) is not None:
        playlist, kind = playback.media(name, replace(view, up=f"../{up}"), track=track[1]), _HLS
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
        is_open = named[3] == _INIT or admission.includes(came)
        if not is_open and not (admission.live and came >= await origin.playback.live_since(name)):
            raise ViewerNeeded(whole=True)
        return file_response(request, opened, close=opened.close, caching=admission.caching(_LONG))
    except BaseException:
        await opened.close()
        raise


def _text(text: str, kind: str, admission: PointAccess) -> Response:
    return Response(text.encode(), headers=(("cache-control", admission.caching(_SHORT)), *SAFE), media_type=kind)
