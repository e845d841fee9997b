"""Protection of aiohttp against answers of untrusted servers: a limit for everything that is not the body, and an exact end of the
answer.

aiohttp skips informational responses (1xx), however many a server sends, puts every response in the received bytes into a queue
without a limit, and reads sizes and extensions of chunks of any length. A server that sends nothing else occupies a whole processor
for the time of a request, blocks the event loop, and fills the memory.

It also parses what follows an answer as the next answer. If that is not one, the answer is lost if both came in one packet; if it
is, it could answer the next request on the connection. Here an answer ends where RFC 9112, 6.3, lets it end: the bytes after it are
not read, and its connection is not used again.
"""

from __future__ import annotations

from re import compile as regex
from typing import Any, Final

from aiohttp import http_exceptions
from aiohttp.client_proto import ResponseHandler

_RESPONSES: Final = 10
"""The limit of responses to a request, including informational ones."""
_FRAMING: Final = 262_144
"""The limit of bytes outside of the body. Beyond it, a body may come with 16 times its size, as in chunks of one byte."""
_CHUNKS: Final = 16
_PARSED: Final = 8_192
"""The number of bytes that are parsed between two checks."""
_BLANK: Final = regex(rb"(?<![^\n])\r?\n")
"""An empty line, or the rest of a line at the start of the data: the head ends in one of them."""
_ENDS: Final = (b"\n\r\n", b"\n\n")
"""The bytes that end a head, and a body in chunks."""
_BODILESS: Final = frozenset({204, *range(100, 200)})
"""Statuses without a body, whose headers must not announce one. A 304 is not one: it announces the body of another status."""


class BoundedResponses(ResponseHandler):
    """Closes the connection of a server that sends more than one response to a request. The response itself is accepted."""

    _responses = 0
    _received = 0
    _body: Any = None
    """The body of the response to the request, once its head has come. `_length` is the length that the head announces, or None."""
    _length: int | None = None

    def set_response_params(self, **given: Any) -> None:
        """Reset the state at the beginning of a request."""
        self._responses = self._received = 0
        self._payload = self._body = None
        super().set_response_params(**given)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Process the head of a response."""
        message, body = data
        if self._body is not None:
            self._surplus()
            return
        self._responses += 1
        length = message.headers.get("Content-Length", "")
        if message.code >= 200 or message.code == 101:
            self._body = body
            self._length = int(length) if length.isdigit() and not message.chunked else None
        if message.code in _BODILESS and (message.chunked or length.strip("0")):
            self._should_close = True  # a body may come nevertheless, and would be taken for the answer to the next request
        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        start = 0
        while True:
            if self._over and start < len(data):
                self._surplus()
                return
            end = self._next(data, start)
            super().data_received(data[start:end])
            self._received += end - start
            if self.transport is None or self.transport.is_closing():
                return
            if self._excessive():
                self._refuse(http_exceptions.BadHttpMessage("more than one response to a request"))
                return
            if self._over and self._length is None and not data.endswith(_ENDS, start, end):
                self._surplus()
                return
            start = end
            if start >= len(data):
                return

    @property
    def _over(self) -> bool:
        return self._body is not None and self._body.is_eof()

    def _next(self, data: bytes, start: int) -> int:
        """Return the end of the bytes to parse next: the end of a head, or of a body whose length is known."""
        end = min(start + _PARSED, len(data))
        if self._body is None:
            blank = _BLANK.search(data, start, end)
            return end if blank is None else blank.end()
        return end if self._length is None else min(end, start + max(self._length - self._body.total_bytes, 1))

    def _surplus(self) -> None:
        """Handle bytes after the end of the response. If the response was not taken yet, the connection is closed when it is."""
        self._should_close = True
        if not self._buffer and self.transport is not None:
            self.transport.abort()

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """Pass an error within the body of a response to the reader of that body."""
        super().set_exception(exc, *cause)
        if self._body is not None and not self._body.is_eof():
            self._body.set_exception(exc)

    def _excessive(self) -> bool:
        body = self._payload.total_bytes if self._payload is not None else 0
        return self._responses > _RESPONSES or self._received - body > _FRAMING + _CHUNKS * body

    def _refuse(self, reason: Exception) -> None:
        if self.transport is not None:
            self.transport.abort()
        self._buffer.clear()
        self.set_exception(reason)
