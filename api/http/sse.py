"""Server-sent events: their encoding, and a limit of subscribers.

A subscriber may need no key and may stay connected for ever, so there is a limit.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from pydantic_core import to_json

from api.http.response import Response
from api.http.seats import Seats
from api.http.streaming import EVENT_STREAM

SILENCE: Final = 15.0
"""Seconds between two comments: proxies close a silent connection, and a page notices a lost one."""

BEAT: Final = b"event: beat\ndata: {}\n\n"
FULL: Final = b"retry: 30000\nevent: full\ndata: {}\n\n"
AWAY: Final = b"event: away\ndata: {}\n\n"
END: Final = b"event: end\ndata: {}\n\n"
_HEADERS: Final = (("cache-control", "no-store"), ("x-accel-buffering", "no"))


class SubscriberLimit:
    """Limits the subscribers of one kind of stream."""

    def __init__(self, kind: str, seats: Seats, *, most: int = 200) -> None:
        self._kind = kind
        self._seats = seats
        self._most = most
        self.taken = 0

    async def limited(self, frames: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """The frames, or, at the limit, one that asks the client to come back later."""
        if not await self._seats.take(self._kind, self._most):
            yield FULL
            return
        self.taken += 1
        try:
            async with aclosing(frames):
                async for one in frames:
                    yield one
        finally:
            self.taken -= 1
            self._seats.leave(self._kind)


def frame(data: Any, *, id: str | None = None) -> bytes:
    """One message. JSON has no line breaks of its own."""
    return (b"" if id is None else b"id: %s\n" % id.encode()) + b"data: %s\n\n" % to_json(data)


def event_stream(frames: AsyncGenerator[bytes, None]) -> Response:
    return Response(200, frames, media_type=EVENT_STREAM, headers=_HEADERS)
