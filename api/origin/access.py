"""Who may write to a publishing point of the built-in origin, and what else a request must be."""

from __future__ import annotations

from dataclasses import dataclass
from re import compile as regex
from typing import Final

from api.http.errors import BadRequest, HttpError
from api.http.request import Request
from api.published.readers import Readers
from domain.configuration.point_token import PointToken
from domain.kernel.errors import NotFound
from workers.origin.limits import LONGEST_WINDOW
from workers.origin.live_origin import LiveOrigin
from workers.origin.names import is_point
from workers.origin.refusals import UploadRefused, Why
from workers.ports import OpenMedia

_SECONDS: Final = regex(r"[0-9]{1,5}(?:\.[0-9]{1,6})?")


class TokenNeeded(HttpError):
    status = 401

    def __init__(self) -> None:
        super().__init__(
            "A write needs a token of this publishing point that has not expired: Authorization: Bearer …",
            headers=(("www-authenticate", 'Bearer realm="ingest"'),),
        )


class Refusal(HttpError):
    """What the origin does not take."""

    def __init__(self, refused: UploadRefused) -> None:
        retry = (("retry-after", "1"),) if refused.why in (Why.TOO_FAST, Why.BUSY, Why.FULL) else ()
        super().__init__(refused.sentence, headers=retry)
        self.status = _STATUSES[refused.why]


_STATUSES: Final = {
    Why.MALFORMED: 400,
    Why.SLOW: 408,
    Why.FENCED: 409,
    Why.TOO_LARGE: 413,
    Why.NOT_MEDIA: 415,
    Why.TOO_FAST: 429,
    Why.BUSY: 503,
    Why.FULL: 507,
}


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, with the DVR window that is asked for, in seconds."""

    token: PointToken
    window: float | None


MOST_READ: Final = 512
"""Segments that a process reads at a time."""


class OriginAccess:
    """Without an `origin` there is nothing below its prefix."""

    def __init__(self, origin: LiveOrigin | None, readers: Readers) -> None:
        self._origin = origin
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
