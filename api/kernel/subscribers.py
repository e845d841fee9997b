"""Subscribers to server-sent events, and a limit on their number.

A subscriber may need no key and may stay connected for ever, so there are limits. Some seats are reserved for callers with a key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from fastapi.sse import format_sse_event
from pydantic_core import to_json

from api.guards.seats import Seats
from api.http.response import EVENT_STREAM, Response

SILENCE: Final = 15.0
"""Seconds between two events: proxies close a silent connection, and a page notices a lost one."""

BEAT: Final = format_sse_event(event="beat", data_str="{}")
FULL: Final = format_sse_event(event="full", data_str="{}", retry=30_000)
AWAY: Final = format_sse_event(event="away", data_str="{}")
END: Final = format_sse_event(event="end", data_str="{}")
_HEADERS: Final = (("cache-control", "no-store"), ("x-accel-buffering", "no"))


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A client that asks for a stream."""

    address: str
    has_key: bool
    """True if the request has a valid key."""
    client: str = ""
    lasts: Callable[[], Awaitable[bool]] | None = None
    """Returns False when the key or the session is no longer valid. The stream then ends."""


class SubscriberLimit:
    """Limits the subscribers of one kind of stream to `most`.

    Those without a key get at most three quarters of the seats, and `each` of one address; one client gets a quarter, or
    `of_client`."""

    def __init__(self, kind: str, seats: Seats, *, most: int = 200, each: int = 40, of_client: int | None = None) -> None:
        self._kind = kind
        self._seats = seats
        self._most = most
        self._each = each
        self._of_client = of_client
        self.taken = 0

    async def within_limit(self, frames: AsyncGenerator[bytes, None], subscriber: Subscriber) -> AsyncGenerator[bytes, None]:
        """Yield the frames, or, at the limit, one that asks the client to come back later."""
        taken = self._seats.take(self._wanted(subscriber))
        if not taken:
            yield FULL
            return
        self.taken += 1
        try:
            async with aclosing(frames):
                async for each in frames:
                    if subscriber.lasts is not None and not await subscriber.lasts():
                        return
                    yield each
        finally:
            self.taken -= 1
            self._seats.leave(taken)

    def _wanted(self, subscriber: Subscriber) -> Mapping[str, int]:
        if subscriber.has_key:
            most = max(1, self._most // 4) if self._of_client is None else self._of_client
            return {f"{self._kind}, client {subscriber.client}": most, self._kind: self._most}
        of_address, without_key = f"{self._kind}, {subscriber.address}", f"{self._kind}, without a key"
        return {of_address: self._each, without_key: self._most * 3 // 4, self._kind: self._most}


def frame(data: Any, *, id: str | None = None) -> bytes:
    """Return one event with its data as JSON."""
    return format_sse_event(data_str=to_json(data).decode(), id=id)


def event_stream(frames: AsyncGenerator[bytes, None]) -> Response:
    """Return a response of server-sent events."""
    return Response(frames, media_type=EVENT_STREAM, headers=_HEADERS)
