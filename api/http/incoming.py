"""Request bodies that are read piece by piece, of any length, such as the live stream of an encoder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import suppress
from typing import Any, Final

from starlette.requests import ClientDisconnect

from api.guards.application import LINGER, LONG_BODY
from api.http.body import Receive
from api.http.errors import HttpError

_SHORT: Final = 256 * 1024
_MOMENT: Final = 0.5


class Pieces:
    """The body of one request, to be read once. `complete`: to its end."""

    def __init__(self, receive: Receive, scope: MutableMapping[str, Any], *, stopping: asyncio.Event) -> None:
        self._receive = receive
        self._scope = scope
        self._stopping = stopping
        self.complete = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises `ClientDisconnect` when the client goes away, and 503 when the process ends, so that it connects anew."""
        allow_long = self._scope.get("extensions", {}).get(LONG_BODY)
        if allow_long is not None:
            allow_long()
        stop: asyncio.Future[Any] = asyncio.create_task(self._stopping.wait(), name="stopping")
        coming = stop
        try:
            while not self.complete:
                coming = asyncio.ensure_future(self._receive())
                await asyncio.wait((coming, stop), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    raise HttpError("The server is stopping.", status=503, headers=(("retry-after", "1"),))
                message = coming.result()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                self.complete = not message.get("more_body", False)
                if message.get("body"):
                    yield message["body"]
        finally:
            stop.cancel()
            coming.cancel()

    async def drop(self) -> None:
        """Read what is left of a short body that was refused: its connection stays of use then."""
        left = _SHORT
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOMENT):
                while not self.complete and left > 0:
                    message = await self._receive()
                    self.complete = not message.get("more_body", False)
                    left -= len(message.get("body", b""))

    def leave(self) -> None:
        """The response was written. Without the rest of the body the connection is of no more use."""
        close = self._scope.get("extensions", {}).get(LINGER)
        if close is not None and not self.complete:
            close()
