"""A publishing point from the encoder's side: what was sent to it, whether it accepts data, and when it is tried again.

Each point has its own tasks and its own bounded queues, so a point that hangs, refuses or is gone does not delay the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from domain.channel.encoding import PointPlan
from workers.adapters.encoders.tracks import Listener, Segment, Track
from workers.media.cmaf import CmafFragment
from workers.origin.limits import LONGEST_WINDOW
from workers.ports.encoders import PointStatistics
from workers.ports.outbound import OutboundFailed, OutboundRefused

PIECE: Final = 64 * 1024
"""The number of bytes that are written between two calls of `may_send`."""
QUEUED: Final = 10.0
"""Seconds of media that wait for a point. Older media are dropped, and a playlist marks the gap."""
LONGEST_PAUSE: Final = 5.0
_FIRST_PAUSE: Final = 0.25
SESSION: Final = "X-Session"
WINDOW: Final = "X-Dvr-Window"


class NotSent(Exception):
    """Raised when a point did not accept data. The message is one sentence without secrets."""


@dataclass(frozen=True, slots=True)
class Sending:
    """The parameters that all points of a session share. `headers` returns the headers of a request to a URL: the token of the
    built-in origin; empty for other URLs."""

    session: int
    may_send: Callable[[], bool]
    headers: Callable[[str], Mapping[str, str]]
    segment: float
    window: float
    dvr_length: int | None = None
    delete_segments: bool = False

    def of(self, url: str, *, dvr_length: int | None = None, token: bool = True) -> dict[str, str]:
        """Return the headers of a request, with the token of the URL if `token` is True. The window is included only if the point
        or the Event has one."""
        window = min(dvr_length or self.dvr_length or 0, LONGEST_WINDOW)
        return {**(self.headers(url) if token else {}), SESSION: str(self.session)} | ({WINDOW: str(window)} if window else {})

    def built_in(self, url: str) -> bool:
        """Return True if the URL belongs to the built-in origin."""
        return bool(self.headers(url))


class PointRecord:
    """The statistics of a point."""

    def __init__(self, plan: PointPlan, sending: Sending) -> None:
        self.plan = plan
        self.sending = sending
        self.bytes = 0
        self.connected = False
        self.reconnects = 0
        self.dropped = 0
        self.last_error = ""
        self._was_connected = False

    def took(self) -> None:
        if not self.connected and self._was_connected:
            self.reconnects += 1
        self.connected = self._was_connected = True

    def refused(self, why: str) -> None:
        self.connected = False
        self.last_error = why

    def statistics(self) -> PointStatistics:
        return PointStatistics(
            self.plan.encoder,
            self.plan.index,
            shown(self.plan.url),
            self.bytes,
            self.connected,
            self.reconnects,
            self.dropped,
            self.last_error,
        )

    def headers(self, url: str) -> dict[str, str]:
        return self.sending.of(url, dvr_length=self.plan.dvr_length, token=not self.plan.provisioned)

    async def pieces(self, data: Iterable[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces of a body, as long as this worker may send. Raises `NotSent` when it no longer may."""
        for whole in data:
            for at in range(0, len(whole), PIECE):
                self.allowed()
                piece = whole[at : at + PIECE]
                yield piece
                self.bytes += len(piece)

    def allowed(self) -> None:
        """Raises `NotSent` if this worker may no longer send."""
        if not self.sending.may_send():
            raise NotSent("This worker may no longer send to it.")


class Point(Listener):
    """Sends tracks to one publishing point."""

    def __init__(self, plan: PointPlan, sending: Sending) -> None:
        self.record = PointRecord(plan, sending)

    def begin(self, tracks: Sequence[Track]) -> None:
        raise NotImplementedError

    def take_fragment(self, track: Track, fragment: CmafFragment) -> None:
        return None

    def take_segment(self, track: Track, segment: Segment) -> None:
        return None

    async def finish(self, *, final: bool) -> None:
        """Send the rest, after everything has come. It is cancelled if that takes too long."""
        raise NotImplementedError

    async def abort(self) -> None:
        """Stop sending. Nothing is sent after this returns."""
        raise NotImplementedError


class Pauses:
    """Backoff: each pause is twice as long as the one before, up to `LONGEST_PAUSE`."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE

    def reset(self) -> None:
        self._next = _FIRST_PAUSE

    async def wait(self) -> None:
        pause, self._next = self._next, min(self._next * 2, LONGEST_PAUSE)
        await asyncio.sleep(pause)


def sentence(fault: Exception) -> str:
    """Return why a request failed, without secrets: the message of the outbound client or of the point."""
    if isinstance(fault, NotSent | OutboundRefused | OutboundFailed):
        return str(fault)
    return f"It could not be sent: {type(fault).__name__}."


def refusal(status: int) -> str:
    """Return the meaning of a status for the operator."""
    match status:
        case 401 | 403:
            return f"It refuses our credentials (status {status})."
        case 409:
            return "It has taken a later session (status 409)."
        case 507:
            return "It has no space left (status 507)."
    return f"It answers with status {status}."


def shown(url: str) -> str:
    """Return the URL without user info, query and fragment. For RTMP the last part of the path is a key and is removed, too."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    path = parts.path
    if parts.scheme.lower().startswith("rtmp"):
        path = path.rstrip("/").rpartition("/")[0]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"
