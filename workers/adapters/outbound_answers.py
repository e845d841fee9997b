"""A bound on what a server sends beside the body of a response, which aiohttp does not have.

aiohttp skips informational responses (1xx), however many a server sends, puts every response that it finds in the bytes that have
come into a queue without a limit, and reads sizes and extensions of chunks of any length. A server that sends nothing else takes a
whole processor for the time of a request, blocks the event loop, and fills the memory.
"""

from __future__ import annotations

from typing import Any, Final

from aiohttp import http_exceptions
from aiohttp.client_proto import ResponseHandler

_RESPONSES: Final = 10
"""The response to a request, and the informational ones before it."""
_FRAMING: Final = 262_144
"""Bytes that are not of the body. Beyond them a body may come with 16 times its size, as in chunks of one byte."""
_CHUNKS: Final = 16
_PARSED: Final = 8_192
"""Bytes that are parsed before it is looked at what was in them."""


class BoundedResponses(ResponseHandler):
    """Closes the connection of a server that sends more than a response to a request."""

    _responses = 0
    _received = 0

    def set_response_params(self, **given: Any) -> None:
        """A request begins."""
        self._responses = self._received = 0
        self._payload = None
        super().set_response_params(**given)

    def feed_data(self, data: Any, size: int = 0) -> None:
        self._responses += 1
        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _PARSED) or (0,):
            super().data_received(data[start : start + _PARSED])
            self._received += min(len(data) - start, _PARSED)
            if self.transport is None or self.transport.is_closing():
                return
            if self._excessive():
                self._refuse(http_exceptions.BadHttpMessage("more than a response to a request"))
                return

    def _excessive(self) -> bool:
        body = self._payload.total_bytes if self._payload is not None else 0
        return self._responses > _RESPONSES or self._received - body > _FRAMING + _CHUNKS * body

    def _refuse(self, reason: Exception) -> None:
        if self.transport is not None:
            self.transport.abort()
        self._buffer.clear()
        self.set_exception(reason)
        if self._payload is not None and not self._payload.is_eof():
            self._payload.set_exception(reason)
