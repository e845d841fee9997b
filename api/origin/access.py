"""Access to the built-in origin: the tokens of writers, the permissions of readers, and the checks of their headers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from re import compile as regex
from typing import Final
from urllib.parse import parse_qs

from api.http.errors import BadRequest, HttpError
from api.http.request import Request
from api.published.readers import Readers
from api.published.viewers import Viewers
from domain.channel.point_token import PREFIX, PointToken
from domain.kernel.errors import NotFound
from workers.origin.limits import LONGEST_WINDOW, RefusalReason, UploadRefused
from workers.origin.live_origin import LiveOrigin
from workers.origin.names import is_point
from workers.ports.media import OpenMedia

_SECONDS: Final = regex(r"[0-9]{1,5}(?:\.[0-9]{1,6})?")


class TokenNeeded(HttpError):
    status = 401

    def __init__(self) -> None:
        super().__init__(
            "A write needs a token of this publishing point that has not expired: Authorization: Bearer …",
            headers=(("www-authenticate", 'Bearer realm="ingest"'),),
        )


class ViewerNeeded(HttpError):
    """Raised when a caller without permission reads an unpublished stream or a recording from before the live window."""

    status = 401

    def __init__(self, *, whole: bool) -> None:
        credential = (
            "a token of this publishing point"
            if whole
            else "the key of a client that may read, or a token of this publishing point"
        )
        subject = "the whole recording" if whole else "an unpublished stream"
        super().__init__(f"Reading {subject} needs {credential}.", headers=(("www-authenticate", 'Bearer realm="playback"'),))


class Refusal(HttpError):
    """Raised when the origin refuses an upload."""

    def __init__(self, refused: UploadRefused) -> None:
        retry = (("retry-after", "1"),) if refused.why in (RefusalReason.TOO_FAST, RefusalReason.BUSY, RefusalReason.FULL) else ()
        super().__init__(refused.sentence, status=_STATUSES[refused.why], headers=retry)


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
class PointWriter:
    """An admitted writer: its token and the DVR window that it requests, in seconds."""

    token: PointToken
    window: float | None


_ARRIVAL: Final = 15.0
"""Seconds after which the last segment of a part has arrived."""
MOST_READ: Final = 512
"""Number of segments that a process reads at the same time."""


@dataclass(frozen=True, slots=True)
class PointAccess:
    """The access of a reader to a publishing point. `public` means that everybody has it. `parts` are the Unix times of which the
    reader may play what arrived, besides the live window; None for the whole recording. `query` is the query string that addresses
    in playlists need as well."""

    public: bool = False
    parts: Sequence[tuple[float, float]] | None = ()
    query: str = ""

    @property
    def live(self) -> bool:
        """True if the reader may play what is on the air."""
        return self.parts is None or any(end == inf for _, end in self.parts)

    def includes(self, moment: float) -> bool:
        """Return True if the reader may play a segment that arrived at this time, because of the parts."""
        return self.parts is None or any(begin <= moment <= end + _ARRIVAL for begin, end in self.parts)

    def caching(self, value: str) -> str:
        """Return the Cache-Control header: `public` with this value for a public stream, else `private, no-store`."""
        return f"public, {value}" if self.public else "private, no-store"


class OriginAccess:
    """Access checks of the built-in origin. Without an `origin` its prefix is empty; without `viewers` no API key grants access."""

    def __init__(self, origin: LiveOrigin | None, readers: Readers, viewers: Viewers | None = None) -> None:
        self._origin = origin
        self._viewers = viewers
        self.readers = readers

    def origin(self, point: str) -> LiveOrigin:
        """Return the origin. Raise `NotFound` if it is off or `point` is not a valid name."""
        if self._origin is None or not is_point(point):
            raise missing(point)
        return self._origin

    def writer(self, origin: LiveOrigin, point: str, request: Request) -> PointWriter:
        """Return the writer of a request. Raise `TokenNeeded` without a valid token, and `BadRequest` for headers that contradict
        it."""
        scheme, _, text = (_only(request, "authorization") or "").partition(" ")
        token = origin.token(point, text.strip()) if scheme.lower() == "bearer" else None
        if token is None or not token.writes:
            raise TokenNeeded
        if _only(request, "x-session") not in (None, str(token.session)):
            raise BadRequest.at("X-Session", "must be the session of the token")
        window = _only(request, "x-dvr-window")
        if window is not None and not (_SECONDS.fullmatch(window) and 1 <= float(window) <= LONGEST_WINDOW):
            raise BadRequest.at("X-Dvr-Window", f"must be seconds, from 1 to {LONGEST_WINDOW}")
        return PointWriter(token, None if window is None else float(window))

    async def reader(self, origin: LiveOrigin, point: str, request: Request, *, whole: bool, bounded: bool = False) -> PointAccess:
        """Return the access of a reader. Raise `ViewerNeeded` if it has none. `bounded` says that a part is requested, which need
        not be on the air any more."""
        query = request.scope["query_string"]
        sent = parse_qs(query.decode("latin-1")).get("token", [""])[0] if b"token=" in query else ""
        authorization = request.fields.get(b"authorization", b"").decode("latin-1")
        for text, suffix in ((sent, f"?token={sent}"), (authorization.partition(" ")[2].strip(), "")):
            token = origin.token(point, text) if text.startswith(PREFIX) else None
            if token is not None and token.issued > await origin.playback.revoked(point):
                return PointAccess(parts=None, query=suffix)
        if whole:
            raise ViewerNeeded(whole=True)
        parts = await origin.directory.public_parts(point)
        if parts and (bounded or parts[-1][1] == inf):
            return PointAccess(public=True, parts=parts)
        if self._viewers is None or not await self._viewers.has(request):
            raise ViewerNeeded(whole=False)
        return PointAccess(parts=((await origin.playback.live_since(point), inf),))

    async def open(self, origin: LiveOrigin, path: str, *, request: Request) -> OpenMedia | None:
        """Open a file for reading; None if it does not exist. The caller closes it. Raises `Unavailable`."""
        return await self.readers.open(origin.files, path, request=request)


def missing(point: str) -> NotFound:
    return NotFound("live stream", point if is_point(point) else "of this name")


def _only(request: Request, name: str) -> str | None:
    """Return the value of a header, None if it is absent. Raise `BadRequest` if it is repeated: a proxy may have added the second
    value."""
    values = [value for key, value in request.scope["headers"] if key == name.encode("ascii")]
    if len(values) > 1:
        raise BadRequest.at(name, "must come once")
    return values[0].decode("latin-1") if values else None
