"""What players and health checks get of the built-in origin: docs/reference/api/origin.md."""

from __future__ import annotations

from collections.abc import Awaitable
from re import compile as regex
from typing import Final

from api.http.auth import OPEN
from api.http.request import Request
from api.http.response import JSON_TYPE, Response
from api.http.router import Router
from api.origin.access import Admission, OriginAccess, ViewerNeeded, missing
from api.origin.surface import ORIGIN
from api.published.file_response import SAFE, file_response
from api.published.media_types import UNKNOWN
from workers.origin import state_pages
from workers.origin.live_origin import LiveOrigin
from workers.origin.playback import View

routes = Router(surface=ORIGIN, tag="Origin")

_HLS: Final = "application/vnd.apple.mpegurl"
_DASH: Final = "application/dash+xml"
_SMIL: Final = "application/smil+xml"
_SHORT: Final = "max-age=1"
_LONG: Final = "max-age=86400"
_ARCHIVE: Final = "archive"
_INIT: Final = "init.mp4"
_PLAYLIST: Final = regex(r"tracks/([A-Za-z0-9._-]{1,96})\.m3u8")
_FILE: Final = regex(r"([0-9]{1,19})/([A-Za-z0-9._-]{1,96})/(init\.mp4|[0-9]{1,20}\.(?:m4s|ts))")


@routes.get(
    "/live/{name}/{+file}",
    OPEN,
    media_type=UNKNOWN,
    if_match=True,
    errors={
        401: "The stream is not published, or the whole recording is asked for, and nothing sent permits that",
        206: "The response is the range of the file",
        304: "The caller has this version",
        412: "The file is another version than If-Match or If-Unmodified-Since asks for",
        416: "No byte of the range is in the file",
        503: "Too many segments are read; see Retry-After",
    },
)
async def read_live_file(request: Request, name: str, file: str, access: OriginAccess) -> Response:
    """A playlist, a manifest, a segment or a state page of a live stream.

    Served where MEDIALEDGER_ORIGIN is on: to everybody while the Event of the publishing point is LIVE_PUBLISHED, else with the key
    of a client that may read. `master.m3u8` (HLS) and `manifest.mpd` (DASH) hold the DVR window, `archive/master.m3u8` and
    `archive/manifest.mpd` the whole recording, which needs a token. `state`, `archive` and `status.php` tell whether data come."""
    origin = access.origin(name)
    admission = await access.reader(origin, name, request, whole=file.startswith(f"{_ARCHIVE}/"))
    response = await _page(origin, name, file, admission) or await _playlist(origin, name, file, admission)
    response = response or await _segment(request, name, file, access=access, admission=admission)
    if response is None:
        raise missing(name)
    return response


async def _page(origin: LiveOrigin, name: str, file: str, admission: Admission) -> Response | None:
    if file not in ("state", _ARCHIVE, "status.php"):
        return None
    found = await origin.playback.state(name)
    if found is None:
        raise missing(name)
    if file == "status.php":
        return _text(state_pages.status(found), JSON_TYPE, admission)
    return _text(state_pages.smil(found, archive=file == _ARCHIVE), _SMIL, admission)


async def _playlist(origin: LiveOrigin, name: str, file: str, admission: Admission) -> Response | None:
    archive = file.startswith(f"{_ARCHIVE}/")
    file = file.removeprefix(f"{_ARCHIVE}/")
    up, playback, query = "../" if archive else "", origin.playback, admission.query
    found: Awaitable[str | None]
    if file == "master.m3u8":
        found, kind = playback.master(name, View(archive, up, query)), _HLS
    elif file == "manifest.mpd":
        found, kind = playback.manifest(name, View(archive, up, query)), _DASH
    elif (track := _PLAYLIST.fullmatch(file)) is not None:
        found, kind = playback.media(name, View(archive, f"../{up}", query), track=track[1]), _HLS
    else:
        return None
    text = await found
    if text is None:
        raise missing(name)
    return _text(text, kind, admission)


async def _segment(request: Request, name: str, file: str, *, access: OriginAccess, admission: Admission) -> Response | None:
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


def _text(text: str, kind: str, admission: Admission) -> Response:
    return Response(200, text.encode(), headers=(("cache-control", admission.caching(_SHORT)), *SAFE), media_type=kind)
