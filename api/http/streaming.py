"""Answers that are sent piece by piece: an export, which ends, and server-sent events, which do not.

A caller that goes away, and a process that stops, close the stream at once: what it holds (a cursor, a place among those who follow
the log) is free again, and no shutdown waits for a page that somebody left open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Callable, MutableMapping
from typing import Any, Final

from api.http.body import Receive
from api.http.request import Request

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

EVENT_STREAM: Final = "text/event-stream"
_END: Final = {"type": "http.response.body", "body": b""}
_logger = logging.getLogger("medialedger.http")


class OpenStreams:
    """All streams of one application. Event streams end in order when the process stops: a browser then asks again. Any other is
    waited for, as every answer is: half of it must not be taken for all."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        """Set when the process stops."""
        self.open = 0

    def end(self) -> None:
        self.ended.set()

    async def send(self, chunks: Any, request: Request, *, media_type: str, receive: Receive, send: Send) -> None:
        """A fault within a stream cannot be answered any more: it closes the connection."""
        self.open += 1
        sending = asyncio.create_task(_pump(chunks, send), name="stream")
        others = [asyncio.create_task(_gone(receive), name="caller gone")]
        if media_type == EVENT_STREAM:
            others.append(asyncio.create_task(_wait(self.ended), name="stream ended"))
        try:
            await asyncio.wait((sending, *others), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.open -= 1
            await _cancelled(sending, *others)
            await close_stream(chunks)
        fault = None if sending.cancelled() else sending.exception()
        if fault is not None:
            extra = {"transactionId": request.transaction_id, "route": request.path}
            _logger.error("a stream broke off", exc_info=fault, extra=extra)
            raise fault
        await send(_END)


async def _pump(chunks: AsyncIterable[bytes], send: Send) -> None:
    async for chunk in chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _gone(receive: Receive) -> None:
    """Reads and drops the rest of the request."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def close_stream(chunks: Any) -> None:
    """Free what a stream holds. The cancelled wait has ended a generator already, unless it never began; any other iterator may
    have `aclose` too."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
