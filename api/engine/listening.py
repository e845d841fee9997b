"""Server-sent events: how they are spelled, and how many may listen at a time. Issue 7, "Operators".

Whoever listens asks the database again and again, needs no key, and may stay for ever: so there is a limit.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from pydantic_core import to_json

from api.kernel.answer import Answer
from api.kernel.streaming import EVENT_STREAM

SILENCE: Final = 15.0
"""So many seconds, and something is sent: proxies close a connection that is still, and a page learns of one that is lost."""

BEAT: Final = b"event: beat\ndata: {}\n\n"
FULL: Final = b"retry: 30000\nevent: full\ndata: {}\n\n"
AWAY: Final = b"event: away\ndata: {}\n\n"
END: Final = b"event: end\ndata: {}\n\n"
_HEADERS: Final = (("cache-control", "no-store"), ("x-accel-buffering", "no"))


class Seats:
    """Who listens to one stream of this process."""

    def __init__(self, most: int = 200) -> None:
        self._most = most
        self.taken = 0

    async def seated(self, frames: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """The frames, if there is a seat; else the request to come back later."""
        if self.taken >= self._most:
            yield FULL
            return
        self.taken += 1
        try:
            async with aclosing(frames):
                async for one in frames:
                    yield one
        finally:
            self.taken -= 1


def frame(data: Any, *, id: str | None = None) -> bytes:
    """One message. JSON has no line breaks of its own."""
    return (b"" if id is None else b"id: %s\n" % id.encode()) + b"data: %s\n\n" % to_json(data)


def event_stream(frames: AsyncGenerator[bytes, None]) -> Answer:
    return Answer(200, frames, media_type=EVENT_STREAM, headers=_HEADERS)
