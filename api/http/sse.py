"""Server-sent events: their encoding, and a limit of subscribers.

A subscriber may need no key and may stay connected for ever, so there are limits. Some seats are kept for callers with a key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from api.guards.seats import Seats
from api.http.response import Response
from api.http.streaming import EVENT_STREAM

SILENCE: Final = 15.0
"""Seconds between two comments: proxies close a silent connection, and a page notices a lost one."""

BEAT: Final = b"event: beat\ndata: {}\n\n"
FULL: Final = b"retry: 30000\nevent: full\ndata: {}\n\n"
AWAY: Final = b"event: away\ndata: {}\n\n"
END: Final = b"event: end\ndata: {}\n\n"
_HEADERS: Final = (("cache-control", "no-store"), ("x-accel-buffering", "no"))


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Who asks for a stream: its address, whether it has shown a valid key, and whose that was. `lasts` tells whether the key or
    the session still stands; the stream ends when it does not."""

    address: str
    has_key: bool
    client: str = ""
    lasts: Callable[[], Awaitable[bool]] | None = None


class SubscriberLimit:
    """Limits the subscribers of one kind of stream. Of those without a key at most three quarters are seated, and `each` of one
    address. Of those with a key a quarter, or
    `of_client`, of one client."""

    def __init__(self, kind: str, seats: Seats, *, most: int = 200, each: int = 40, of_client: int | None = None) -> None:
        self._kind = kind
        self._seats = seats
        self._most = most
        self._each = each
        self._of_client = of_client
        self.taken = 0

    async def limited(self, frames: AsyncGenerator[bytes, None], subscriber: Subscriber) -> AsyncGenerator[bytes, None]:
        """The frames, or, at the limit, one that asks the client to come back later."""
        taken = await take_all(self._seats, self._wanted(subscriber))
        if not taken:
            yield FULL
            return
        self.taken += 1
        try:
            async with aclosing(frames):
                async for one in frames:
                    if subscriber.lasts is not None and not await subscriber.lasts():
                        return
                    yield one
        finally:
            self.taken -= 1
            for kind in taken:
                self._seats.leave(kind)

    def _wanted(self, subscriber: Subscriber) -> Mapping[str, int]:
        if subscriber.has_key:
            most = max(1, self._most // 4) if self._of_client is None else self._of_client
            return {f"{self._kind}, client {subscriber.client}": most, self._kind: self._most}
        of_address, without_key = f"{self._kind}, {subscriber.address}", f"{self._kind}, without a key"
        return {of_address: self._each, without_key: self._most * 3 // 4, self._kind: self._most}


async def take_all(seats: Seats, wanted: Mapping[str, int]) -> Sequence[str]:
    """One seat of each kind, with its limit; none where one of them is full."""
    taken: list[str] = []
    try:
        for kind, most in wanted.items():
            if not await seats.take(kind, most):
                break
            taken.append(kind)
    finally:
        if len(taken) < len(wanted):
            for kind in taken:
                seats.leave(kind)
    return taken if len(taken) == len(wanted) else ()


def frame(data: Any, *, id: str | None = None) -> bytes:
    """One message. JSON has no line breaks of its own."""
    return (b"" if id is None else b"id: %s\n" % id.encode()) + b"data: %s\n\n" % to_json(data)


def event_stream(frames: AsyncGenerator[bytes, None]) -> Response:
    return Response(frames, media_type=EVENT_STREAM, headers=_HEADERS)
