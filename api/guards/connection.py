"""HTTP/1.1 connections behind limits: on the size of a head, on the time of each phase, and on what a client leaves unread.

uvicorn has no limits before an application is called, so a client without a key could use all memory or all connections. A
`GuardedConnection` stands between the transport and uvicorn's protocol. It parses the same data with a parser of its own, passes on
only what is permitted, and answers anything else itself.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar, Final

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.guards.application import CLOSE, CONNECTION, LINGER, LONG_BODY, REASON, Asgi, GuardedApplication, Message, Receive, Scope
from api.guards.limits import Connections
from api.guards.proxies import forwarded_scheme

_LINGER: Final = 2.0
"""The seconds for which data of a refused client is read and dropped. Without it the client would see a reset connection instead of
the response."""
_WRONG_HOST: Final = {
    400: "The header Host must be a host name or an address, with or without a port.",
    421: "This server does not answer to the name in the header Host; MEDIALEDGER_PUBLIC_URL sets its name.",
}
_LENGTHS: Final = frozenset(map(len, (b"host", b"content-length", b"transfer-encoding")))
"""The lengths of the names of headers that are looked at."""
_PLAIN_HEAD: Final = re.compile(
    rb"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/[A-Za-z0-9/?&=%._~:@!$'()*+,;-]*+) HTTP/1\.1"
    rb"((?:\r\n[A-Za-z0-9_-]++:[\t -~]*+)++)\r\n\r\n"
)
"""A head of the most usual form: the path and the headers. Every parser of HTTP reads it in the same way."""
_UNUSUAL: Final = re.compile(rb"\r\n(?:transfer-encoding|upgrade):")
_HOST_LINE: Final = re.compile(rb"\r\nhost:[\t ]*([!-~]*)[\t ]*(?=\r\n|$)")
_LENGTH_LINE: Final = re.compile(rb"\r\ncontent-length:[\t ]*([0-9]{1,9})[\t ]*(?=\r\n|$)")
_NOT_HTTP: Final = (400, "This is not an HTTP/1.1 request.")
_TOO_MANY: Final = (503, "Too many requests from this address are under way.")


class GuardedConfig(uvicorn.Config):
    """Settings of uvicorn for an application behind the guards."""

    def __init__(self, app: Asgi, connections: Connections, **options: Any) -> None:
        guard = type("GuardedHttp", (GuardedConnection,), {"connections": connections})
        idle = connections.limits.idle_seconds
        super().__init__(GuardedApplication(app), http=guard, proxy_headers=False, timeout_keep_alive=idle, **options)
        self.connections = connections


class GuardedTransport(asyncio.Transport):
    """The transport that the server's protocol gets. It tells when a response begins, and ignores what comes too late."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self.is_reading_paused = False
        self.has_begun = False
        """True if the response to the current request has begun."""
        self.reason: bytes | None = None
        """The reason phrase of the next response."""
        self.is_detached = False
        """True if nothing more of the server's protocol is sent."""
        self._is_closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.has_begun and data[:10] != b"HTTP/1.1 1":  # 100 Continue
            self.has_begun = True
            if self.reason is not None:
                version, status, rest = bytes(data).split(b" ", 2)
                data = b" ".join((version, status, self.reason + rest[rest.index(b"\r\n") :]))
                self.reason = None
        if not self.is_detached and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        self._is_closed = True
        if not self.is_detached:
            self._transport.close()

    def abort(self) -> None:
        self._is_closed = True
        if not self.is_detached:
            self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether the server's protocol has closed the connection. `connection_lost` tells it about the client."""
        return self._is_closed or self.is_detached

    def pause_reading(self) -> None:
        self.is_reading_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self.is_reading_paused = False
        self._transport.resume_reading()

    def is_reading(self) -> bool:
        return not self.is_reading_paused

    def get_write_buffer_size(self) -> int:
        size: int = self._transport.get_write_buffer_size()
        return size


class GuardedConnection(asyncio.Protocol):
    """One connection. `check` is called about once a second: a timer for each request would cost every request."""

    connections: ClassVar[Connections]
    server_protocol: ClassVar[Callable[..., asyncio.Protocol]] = HttpToolsProtocol

    def __init__(self, *, app_state: dict[str, Any], **options: Any) -> None:
        """Take the arguments that uvicorn gives to the class in its setting `http`."""
        self.limits = self.connections.limits
        self._options = {"app_state": {**app_state, CONNECTION: self}, **options}
        self._server: Any = None
        """uvicorn's protocol, while it has the connection."""
        self._loop = asyncio.get_running_loop()
        self._parser: Any = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's
        self._address = ""
        self._is_proxy = False
        """True if the address is that of a trusted proxy."""
        self._client: str | None = None
        """The client of the request that runs, if a trusted proxy names it."""
        self._refusal: tuple[int, str] | None = None
        """The status and the detail of the refusal that ended the parsing."""
        self._refused_at: float | None = None
        self.has_ended = False
        """True if the client sends nothing more, or has disconnected."""
        self._head_since: float | None = self._loop.time()
        """When the head that is awaited began; `None` while none is."""
        self._head_bytes = 0
        self._url = b""
        self._headers = 0
        self._host: bytes | None = None
        self._has_body = False
        self._in_body = False
        self._long_body = False
        self._body_since = self._data_at = 0.0
        self._waiting: deque[tuple[int, bool]] = deque()
        """The requests that have not begun: the number of headers, and whether there is a body."""
        self._under_way = 0
        """The number of requests whose head was read and which have not ended."""
        self._is_streaming = False
        """True if the request that runs, or that was the last to run, reads its body as it arrives."""
        self._is_running = False
        self._is_unread = False
        """True if the request that runs has a body that the application has not read to its end."""
        self._idle_since: float | None = None
        self._unsent = 0
        self._unsent_since: float | None = None

    # The connection

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport
        self._output = GuardedTransport(transport)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._is_proxy = self.connections.proxies.trusted(self._address)
        if self.connections.add(self, self._address):
            self._server = self.server_protocol(**self._options)
            self._server.connection_made(self._output)
        elif self.connections.is_crowded:
            self.connections.refused("dropped")
            transport.abort()
        else:
            self._refuse(503, "Too many connections are open.")

    def eof_received(self) -> bool:
        """Keep the connection for the response to a request with a body. Encoders disconnect at the end of a body."""
        self.has_ended = True
        return self._carries_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_ended = True
        self.connections.remove(self, self._address)
        if self._carries_on():
            self._server.resume_writing()
        else:
            self._leave()
            self._detach()

    def _carries_on(self) -> bool:
        """Return whether the server goes on without the client, because it has received a whole body that was not read yet."""
        if self._server is None or self._under_way <= self._in_body:
            return False
        return self._is_streaming or (self._is_unread if self._is_running else self._waiting[0][1])

    def _detach(self) -> None:
        """Take the connection from the server's protocol."""
        server, self._server, self._parser = self._server, None, None
        self._options.clear()
        if server is not None:
            self._output.is_detached = True
            server.connection_lost(None)

    def pause_writing(self) -> None:
        if self._server is not None:
            self._server.pause_writing()

    def resume_writing(self) -> None:
        """The client has taken most of what waited for it."""
        self._unsent_since = None
        if self._server is not None:
            self._server.resume_writing()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    # Data of the client

    def data_received(self, data: bytes) -> None:
        now = self._loop.time()
        if not self._in_body and not self._head_bytes and self._server is not None and self._refused_at is None:
            head = _PLAIN_HEAD.match(data)
            if head is not None and not self._transport.is_closing() and self._is_whole(data, head):
                self._head_since = None
                self._long_body = False
                self._body_since = self._data_at = now
                self._server.data_received(data)
                return
        while data and self._server is not None and self._refused_at is None and not self._transport.is_closing():
            if self._in_body:
                piece, data = data, b""
                self._data_at = now
            else:  # a body may arrive together with its head, and does not count as head
                room = self.limits.head + 1 - self._head_bytes
                piece, data = data[:room], data[room:]
                self._head_bytes += len(piece)
                if self._head_since is None:
                    self._head_since = now
            self._pass_on(piece)

    def _is_whole(self, data: bytes, head: re.Match[bytes]) -> bool:
        """Return whether the data are one whole request within all limits, which needs no parser, and count it. Anything else is
        parsed."""
        url, fields = head.groups()
        count, fields = fields.count(b"\r\n"), fields.lower()
        host, limits = _HOST_LINE.search(fields), self.limits
        if host is None or fields.count(b"\r\nhost:") > 1 or self.connections.hosts.status(host[1]) != 200:
            return False
        if len(url) > limits.url or count > limits.headers or head.end() > limits.head or _UNUSUAL.search(fields):
            return False
        size, lengths = len(data) - head.end(), fields.count(b"\r\ncontent-length:")
        if lengths:
            length = _LENGTH_LINE.search(fields)
            if lengths > 1 or length is None or int(length[1]) != size:
                return False
        elif size:
            return False
        self._waiting.append((count, size > 0))
        self._under_way += 1
        return True

    def _pass_on(self, data: bytes) -> None:
        """Pass data on that the parser permits. The parser stops after a request that offers another protocol. The server does not
        take up the offer, and answers the request like any other (RFC 9110, 7.8)."""
        while data and self._server is not None:
            rest = b""
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                data, rest = data[: offer.args[0]], data[offer.args[0] :]
            except httptools.HttpParserError:
                self._refuse(*(self._refusal or _NOT_HTTP))
                return
            if not self._in_body and self._head_bytes > self.limits.head:
                self._refuse(431, self._too_large())
                return
            self._server.data_received(data)
            data = rest

    def on_message_begin(self) -> None:
        """Note the begin of a head. Its first byte may arrive together with the end of the request before."""
        self._url, self._host, self._headers, self._has_body, self._long_body = b"", None, 0, False, False
        self._head_bytes = max(self._head_bytes, 1)
        if self._head_since is None:
            self._head_since = self._loop.time()

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > self.limits.url:
            self._stop(414, f"The address of a request has at most {self.limits.url} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:  # a trailer
            self._head_bytes += len(name) + len(value)
            if self._head_bytes > self.limits.head:
                self._stop(431, self._too_large())
            return
        self._headers += 1
        if self._headers > self.limits.headers:
            self._stop(431, f"A request has at most {self.limits.headers} headers.")
        if len(name) not in _LENGTHS:
            return
        name = name.lower()
        if name == b"host":
            if self._host is not None:
                self._stop(400, "The header Host came twice.")
            self._host = value
            status = self.connections.hosts.status(value)
            if status != 200:
                self._stop(status, _WRONG_HOST[status])
        elif name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            self._has_body = True

    def on_headers_complete(self) -> None:
        if self._host is None and self._parser.get_http_version() == "1.1":
            self._stop(400, "A request needs the header Host.")
        if self._has_body and self._parser.should_upgrade():  # the parser would take the body for the next request
            self._stop(400, "A request with a body must come without the header Upgrade.")
        if not _is_path(self._url):
            self._stop(*_NOT_HTTP)
        self._in_body = True
        self._head_since = None
        self._head_bytes = 0
        self._body_since = self._data_at = self._loop.time()
        self._waiting.append((self._headers, self._has_body))
        self._under_way += 1

    def on_message_complete(self) -> None:
        self._in_body = False
        self._head_bytes = 0

    def _stop(self, status: int, detail: str) -> None:
        """End the parsing with a refusal."""
        self._refusal = status, detail
        raise ValueError(detail)

    def _too_large(self) -> str:
        return f"The head of a request has at most {self.limits.head} bytes."

    # Requests

    def begin(self, scope: Scope, receive: Receive) -> Receive | None:
        """Begin a request, and complete its scope. Return the function that receives its messages, or None if a trusted proxy names
        a client that has too many requests. Trailers, which arrive after a chunked body, are dropped: they are not headers (RFC
        9110, section 6.5.1)."""
        count, self._is_unread = self._waiting.popleft()
        self._is_running, self._is_streaming = True, False
        headers = scope["headers"]
        if len(headers) > count:
            headers = scope["headers"] = headers[:count]
        scope["extensions"] = {
            CLOSE: self.give_up,
            LONG_BODY: self._allow_long,
            LINGER: self._linger,
            REASON: self._set_reason,
        }
        if self.connections.is_ending and self._server is not None:
            self._server.shutdown()
        if self._is_proxy:
            client = self._client = self.connections.proxies.client(self._address, headers)
            scope["client"] = (client, 0)
            scheme = forwarded_scheme(headers)
            if scheme is not None:
                scope["scheme"] = scheme
            if not self.connections.enter(client):
                return None
        return self._noted(receive) if self._is_unread or self.has_ended else receive

    def end(self) -> None:
        """End the request that runs."""
        if self._client is not None:
            self._leave()
        self._under_way -= 1
        self._is_running = False
        self._output.has_begun, self._output.reason = False, None
        if not self._under_way:
            self._idle_since = self._loop.time()
        if self.has_ended and self._under_way == self._in_body:
            self._transport.close()
            self._detach()

    def _noted(self, receive: Receive) -> Receive:
        """Return a function that receives the messages of a request, and notes the end of its body."""

        async def receive_noted() -> Message:
            if self.has_ended and not self._is_unread:
                return {"type": "http.disconnect"}
            message = await receive()
            if not message.get("more_body", False):
                self._is_unread = False
                if self.has_ended and not self._carries_on():
                    self._detach()
            return message

        return receive_noted

    def _leave(self) -> None:
        """Stop counting the request for its client."""
        if self._client is not None:
            self.connections.leave(self._client)
            self._client = None

    def refusal(self) -> tuple[Message, Message]:
        status, detail = _TOO_MANY
        self.connections.refused(str(status))
        headers, body = _problem(status, detail)
        pairs = [(name.encode(), value.encode()) for name, value in headers]
        return {"type": "http.response.start", "status": status, "headers": pairs}, {"type": "http.response.body", "body": body}

    def answer_last(self) -> None:
        """Close the connection after the response that is under way. A response that has begun did not announce the close, so the
        next request, which its client may be sending at this moment, is the last one instead."""
        if self._under_way and not self._output.has_begun and self._server is not None:
            self._server.shutdown()

    def give_up(self) -> None:
        """Drop what was written and not taken, and close the connection."""
        if not self._transport.is_closing() or self.unsent:
            self.connections.refused("unread")
            self._transport.abort()

    def _allow_long(self) -> None:
        self._long_body = self._is_streaming = True

    def _set_reason(self, reason: bytes) -> None:
        self._output.reason = reason

    def _linger(self) -> None:
        """Close the connection after a response that was written before the end of the body."""
        self._long_body = False
        if self._in_body and self._refused_at is None and not self._transport.is_closing():
            self._close_slowly()

    # Limits of time

    def check(self, now: float) -> None:
        """Close the connection if its client is too slow."""
        limits = self.limits
        if self._stopped_taking(now):
            self.give_up()
        elif self._transport.is_closing():
            pass
        elif self._refused_at is not None:
            if now - self._refused_at > _LINGER:
                self._transport.close()
        elif self._head_since is not None and not self._under_way and now - self._head_since > limits.head_seconds:
            self._refuse(408, f"The head of the request was not complete within {limits.head_seconds:g} s.")
        elif self._in_body and self._body_is_late(now):
            self._refuse(408, "The body of the request came too slowly.")
        elif self.connections.is_filling and self._is_idle_since(now - limits.crowded_idle_seconds):
            self._transport.close()

    def _is_idle_since(self, time: float) -> bool:
        """Return whether the last response was complete at that time, and no request has begun since."""
        is_idle = not self._under_way and self._head_since is None
        return is_idle and self._idle_since is not None and self._idle_since < time

    def _body_is_late(self, now: float) -> bool:
        if self._output.is_reading_paused:  # the application takes its time
            self._data_at = now
            return False
        if now - self._data_at > self.limits.pause_seconds:
            return True
        return not self._long_body and now - self._body_since > self.limits.body_seconds

    def _stopped_taking(self, now: float) -> bool:
        unsent = self.unsent
        if not unsent:
            self._unsent_since = None
        elif self._unsent_since is None or self._unsent - unsent >= self.limits.taken:
            self._unsent, self._unsent_since = unsent, now
        elif unsent > self._unsent:  # the application has written more
            self._unsent = unsent
        return self._unsent_since is not None and now - self._unsent_since > self.limits.pause_seconds

    @property
    def unsent(self) -> int:
        """The number of bytes that were written and not taken."""
        size: int = self._transport.get_write_buffer_size()
        return size

    def taken_at(self, now: float) -> float:
        """Return when the client last took enough of what was written for it."""
        return now if self._unsent_since is None else self._unsent_since

    # Refusals

    def _refuse(self, status: int, detail: str) -> None:
        """Answer and close. There is no answer if the client would take it for that to an earlier request, and none to a
        connection on which nothing was sent."""
        self.connections.refused(str(status))
        is_awaited = self._in_body and self._under_way == 1 and not self._output.has_begun
        is_idle = not self._under_way and (self._head_bytes or status == 503)
        self._detach()
        if not is_awaited and not is_idle:
            self._transport.close()
            return
        headers, body = _problem(status, detail)
        lines = [f"HTTP/1.1 {status} {_title(status)}", *(f"{name}: {value}" for name, value in headers), "", ""]
        self._transport.write("\r\n".join(lines).encode() + body)
        self._close_slowly()

    def _close_slowly(self) -> None:
        self._refused_at = self._loop.time()
        if self._transport.can_write_eof():
            self._transport.write_eof()


def _is_path(url: bytes) -> bool:
    """Return whether an address names a path, unlike that of CONNECT."""
    if not url.isascii():
        return False
    if url.startswith(b"/"):
        return True
    try:
        return httptools.parse_url(url).path is not None
    except httptools.HttpParserInvalidURLError:
        return False


def _title(status: int) -> str:
    return "URI Too Long" if status == 414 else HTTPStatus(status).phrase  # Python 3.11 has the name of an older RFC


def _problem(status: int, detail: str) -> tuple[list[tuple[str, str]], bytes]:
    """Return the headers and the body of a refusal."""
    body = json.dumps({"type": "about:blank", "title": _title(status), "status": status, "detail": detail}).encode()
    headers = [
        ("content-type", "application/problem+json"),
        ("content-length", str(len(body))),
        ("connection", "close"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
    ]
    if status == 503:
        headers.append(("retry-after", "1"))
    return headers, body
