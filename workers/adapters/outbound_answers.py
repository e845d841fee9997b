"""Adds to aiohttp what answers of strangers need: a bound on what is not the body, and an end of the answer where it ends.

aiohttp skips informational responses (1xx), however many a server sends, puts every response that it finds in the bytes that have
come into a queue without a limit, and reads sizes and extensions of chunks of any length. A server that sends nothing else takes a
whole processor for the time of a request, blocks the event loop, and fills the memory.

It also parses what stands behind an answer as the next one. Where that is none, the answer is lost if both came in one packet;
where it is one, it could answer the next request on the connection. Here an answer ends where RFC 9112, 6.3, lets it end: what
comes after that is not read, and its connection is not used again.
"""

from __future__ import annotations

from re import compile as regex
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
_BLANK: Final = regex(rb"(?<![^\n])\r?\n")
"""An empty line, or the rest of a line at the start of what came: the head ends in one of them."""
_ENDS: Final = (b"\n\r\n", b"\n\n")
"""The bytes that end a head, and a body in chunks."""
_BODILESS: Final = frozenset({204, *range(100, 200)})
"""Statuses whose answers have no body, and none that could be told of. That of 304 would come with another status."""


class BoundedResponses(ResponseHandler):
    """Closes the connection of a server that sends more than a response to a request. The response itself counts."""

    _responses = 0
    _received = 0
    _body: Any = None
    """The body of the response to the request, once its head has come. `_length` is the length that the head gives, or None."""
    _length: int | None = None

    def set_response_params(self, **given: Any) -> None:
        """A request begins."""
        self._responses = self._received = 0
        self._payload = self._body = None
        super().set_response_params(**given)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """The head of a response."""
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
                self._refuse(http_exceptions.BadHttpMessage("more than a response to a request"))
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
        """Return the end of what is parsed next, which is that of a head, or of a body whose length is known."""
        end = min(start + _PARSED, len(data))
        if self._body is None:
            blank = _BLANK.search(data, start, end)
            return end if blank is None else blank.end()
        return end if self._length is None else min(end, start + max(self._length - self._body.total_bytes, 1))

    def _surplus(self) -> None:
        """Bytes behind the end of the response. Where nobody has taken the response yet, whoever does closes the connection."""
        self._should_close = True
        if not self._buffer and self.transport is not None:
            self.transport.abort()

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """Pass on an error within the body of a response to whoever reads that body."""
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
