"""Who may write to a publishing point of the built-in origin, and what else a request must be."""

from __future__ import annotations

from dataclasses import dataclass
from re import compile as regex
from typing import Final
from urllib.parse import parse_qs

from api.http.errors import BadRequest, HttpError
from api.http.request import Request
from api.published.readers import Readers
from api.published.viewers import Viewers
from domain.configuration.point_token import PREFIX, PointToken
from domain.kernel.errors import NotFound
from workers.origin.limits import LONGEST_WINDOW
from workers.origin.live_origin import LiveOrigin
from workers.origin.names import is_point
from workers.origin.refusals import RefusalReason, UploadRefused
from workers.ports import OpenMedia

_SECONDS: Final = regex(r"[0-9]{1,5}(?:\.[0-9]{1,6})?")


class TokenNeeded(HttpError):
    status = 401

    def __init__(self) -> None:
        super().__init__(
            "A write needs a token of this publishing point that has not expired: Authorization: Bearer …",
            headers=(("www-authenticate", 'Bearer realm="ingest"'),),
        )


class ViewerNeeded(HttpError):
    """What is not published, and what there was before the live window, is not for everybody."""

    status = 401

    def __init__(self, *, whole: bool) -> None:
        who = (
            "a token of this publishing point"
            if whole
            else "the key of a client that may read, or a token of this publishing point"
        )
        what = "The whole recording" if whole else "What is not published"
        super().__init__(f"{what} needs {who}.", headers=(("www-authenticate", 'Bearer realm="playback"'),))


class Refusal(HttpError):
    """What the origin does not take."""

    def __init__(self, refused: UploadRefused) -> None:
        retry = (("retry-after", "1"),) if refused.why in (RefusalReason.TOO_FAST, RefusalReason.BUSY, RefusalReason.FULL) else ()
        super().__init__(refused.sentence, headers=retry)
        self.status = _STATUSES[refused.why]


_STATUSES: Final = {
    RefusalReason.MALFORMED: 400,
    RefusalReason.SLOW: 408,
    RefusalReason.FENCED: 409,
    RefusalReason.TOO_LARGE: 413,
    RefusalReason.NOT_MEDIA: 415,
    RefusalReason.TOO_FAST: 429,
    RefusalReason.BUSY: 503,
    RefusalReason.FULL: 507,
}


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, with the DVR window that is asked for, in seconds."""

    token: PointToken
    window: float | None


MOST_READ: Final = 512
"""Segments that a process reads at a time."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What a reader gets of a publishing point. `public`: so does everybody. `whole`: also what there was before the live window.
    `query` is what the addresses in playlists need too."""

    public: bool = False
    whole: bool = False
    query: str = ""

    def caching(self, value: str) -> str:
        """Cache-Control for what caches may keep so where everybody gets it."""
        return f"public, {value}" if self.public else "private, no-store"


class OriginAccess:
    """Without an `origin` there is nothing below its prefix; without `viewers` no key opens anything."""

    def __init__(self, origin: LiveOrigin | None, readers: Readers, viewers: Viewers | None = None) -> None:
        self._origin = origin
        self._viewers = viewers
        self.readers = readers

    def origin(self, point: str) -> LiveOrigin:
        """Raises `NotFound`."""
        if self._origin is None or not is_point(point):
            raise missing(point)
        return self._origin

    def writer(self, origin: LiveOrigin, point: str, request: Request) -> Writer:
        """Raises `TokenNeeded`, and `BadRequest` for headers that contradict it."""
        scheme, _, text = (_only(request, "authorization") or "").partition(" ")
        token = origin.token(point, text.strip()) if scheme.lower() == "bearer" else None
        if token is None or not token.writes:
            raise TokenNeeded
        if _only(request, "x-session") not in (None, str(token.session)):
            raise BadRequest.at("X-Session", "must be the session of the token")
        window = _only(request, "x-dvr-window")
        if window is not None and not (_SECONDS.fullmatch(window) and 1 <= float(window) <= LONGEST_WINDOW):
            raise BadRequest.at("X-Dvr-Window", f"must be seconds, from 1 to {LONGEST_WINDOW}")
        return Writer(token, None if window is None else float(window))

    async def reader(self, origin: LiveOrigin, point: str, request: Request, *, whole: bool) -> Admission:
        """Raises `ViewerNeeded`."""
        query = request.scope["query_string"]
        sent = parse_qs(query.decode("latin-1")).get("token", [""])[0] if b"token=" in query else ""
        authorization = request.headers.get(b"authorization", b"").decode("latin-1")
        for text, suffix in ((sent, f"?token={sent}"), (authorization.partition(" ")[2].strip(), "")):
            token = origin.token(point, text) if text.startswith(PREFIX) else None
            if token is not None and token.issued > await origin.playback.revoked(point):
                return Admission(whole=True, query=suffix)
        if whole:
            raise ViewerNeeded(whole=True)
        if await origin.directory.is_published(point):
            return Admission(public=True)
        if self._viewers is None or not await self._viewers.has(request):
            raise ViewerNeeded(whole=False)
        return Admission()

    async def open(self, origin: LiveOrigin, path: str, *, request: Request) -> OpenMedia | None:
        """Whoever gets it closes it. Raises `Unavailable`."""
        return await self.readers.open(origin.files, path, request=request)


def missing(point: str) -> NotFound:
    return NotFound("live stream", point if is_point(point) else "of this name")


def _only(request: Request, name: str) -> str | None:
    """A header that may come once: who sends two may have had one of them added by a proxy on the way."""
    found = [value for key, value in request.scope["headers"] if key == name.encode("ascii")]
    if len(found) > 1:
        raise BadRequest.at(name, "must come once")
    return found[0].decode("latin-1") if found else None
