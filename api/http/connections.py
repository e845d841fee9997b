"""HTTP/1.1 connections with limits: on the size of a head, on the time of each phase, and on the number of connections. The host is
checked here too.

uvicorn has no limit before an application is called, so a client without a key could use all memory or all connections.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import httptools
import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from api.http.connection_limits import Connections
from api.http.incoming import LINGER, LONG_BODY, REST
from api.http.proxies import forwarded_scheme
from api.http.status_line import REASON, WithReason
from api.http.unsent import EXTENSION

_TURNS: Final = 10
"""Ticks of uvicorn's main loop, which are 0.1 s apart, in which each connection is looked at once."""
_LINGER: Final = 2.0
"""Seconds in which what a refused client still sends is read and dropped. Without it the client would see a reset connection
instead of the answer."""
_WRONG_HOST: Final = {
    400: "The header Host must be a host name or an address, with or without a port.",
    421: "This server does not answer to the name in the header Host; MEDIALEDGER_PUBLIC_URL sets its name.",
}


class LimitedConfig(uvicorn.Config):
    """What uvicorn is told, with the limits of its connections."""

    def __init__(self, app: Any, connections: Connections, **options: Any) -> None:
        idle = connections.limits.idle_seconds
        super().__init__(app, http=LimitedConnection, proxy_headers=False, timeout_keep_alive=idle, **options)
        self.connections = connections
        self.open: list[set[LimitedConnection]] = [set() for _ in range(_TURNS)]
        """The connections, by the tick in which they are looked at. Those that were opened at once are not closed at once: most
        come back then."""
        self.turns = itertools.cycle(self.open)
        self.answers_last = False
        """Whether each connection is closed after its next response."""


class LimitedServer(uvicorn.Server):
    """uvicorn, which looks at each of its connections once a second."""

    def answer_last(self) -> None:
        """Close each connection after its next response, which says so: then its client sends nothing more on it."""
        if isinstance(self.config, LimitedConfig):
            self.config.answers_last = True
            for connection in (each for part in self.config.open for each in part):
                connection.answer_last()

    async def on_tick(self, counter: int) -> bool:
        if isinstance(self.config, LimitedConfig):
            now, turn = asyncio.get_running_loop().time(), counter % _TURNS
            for connection in tuple(self.config.open[turn]):
                connection.check(now)
            if turn == 0:
                drop_unsent([each for part in self.config.open for each in part], now=now)
        return await super().on_tick(counter)


def drop_unsent(connections: Sequence[LimitedConnection], *, now: float) -> None:
    """Where more is unsent than all connections may hold, give up those whose clients have taken nothing for the longest time."""
    total = sum(each.unsent for each in connections)
    stalled = [each for each in connections if each.taken_at(now) < now]
    for each in sorted(stalled, key=lambda one: one.taken_at(now)):
        if total <= each.limits.unsent:
            return
        total -= each.unsent
        each.give_up()


class _Refusal(Exception):
    """Ends the parsing of a request. The parser passes it on as the context of its own error."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class LimitedConnection(HttpToolsProtocol):
    """One connection. `check` is called about once a second: a timer for each request would cost every request."""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        if not isinstance(config, LimitedConfig):
            raise TypeError("a limited connection needs a LimitedConfig")
        self._config = config
        self._connections = config.connections
        self._beside = next(config.turns)
        """Those that are looked at with it."""
        self.limits = config.connections.limits
        self._address = ""
        self._head_since: float | None = self.loop.time()
        """When the head that is awaited began; `None` while none is."""
        self._head_bytes = 0
        self._in_body = False
        self._long_body = False
        self._streams = False
        self._under_way: list[RequestResponseCycle] = []
        self._body_since = 0.0
        self._data_at = 0.0
        self._unsent = 0
        self._unsent_since: float | None = None
        self._refused_at: float | None = None
        self._host: bytes | None = None
        self._forwarded: deque[str] = deque()
        """The clients of the requests under way that a trusted proxy has passed on."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._beside.add(self)
        self._address = self.client[0] if self.client else ""
        if not self._connections.add(self._address):
            if self._connections.crowded:
                self._connections.refused("dropped")
                transport.abort()
            else:
                self._refuse(503, "Too many connections are open.")

    def eof_received(self) -> None:
        """The transport closes now, but says so only in the next turn of the event loop."""
        self._client_gone()

    def connection_lost(self, exc: Exception | None) -> None:
        self._client_gone()
        self._beside.discard(self)
        self._connections.remove(self._address)
        while self._forwarded:
            self._connections.leave(self._forwarded.popleft())
        super().connection_lost(exc)

    def _client_gone(self) -> None:
        """Where bodies are streamed, a request that has come to its end is carried out though nobody waits for the answer, also one
        that waits behind another: encoders leave so."""
        for cycle in self._under_way:
            if not cycle.response_complete and not cycle.disconnected:
                if not cycle.more_body:
                    cycle.scope[REST] = bytes(cycle.body)  # type: ignore[typeddict-unknown-key]
                cycle.disconnected = True
                cycle.message_event.set()
        while self.pipeline and self._streams:
            cycle, app = self.pipeline.pop()
            if REST in cycle.scope:
                self._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        while data and self._refused_at is None and not self.transport.is_closing():
            if self._in_body:
                piece, data = data, b""
            else:  # a body may come along with its head, and is not counted with it
                room = self.limits.head + 1 - self._head_bytes
                piece, data = data[:room], data[room:]
                self._head_bytes += len(piece)
                if self._head_since is None:
                    self._head_since = self.loop.time()
            self._feed(piece)

    def _feed(self, data: bytes) -> None:
        try:
            while data:
                data = self._parse(data)
        except httptools.HttpParserError as error:
            reason = error.__context__
            if isinstance(reason, _Refusal):
                self._refuse(reason.status, reason.detail)
            else:
                self._refuse(400, "This is not an HTTP/1.1 request.")
        else:
            if not self._in_body and self._head_bytes > self.limits.head:
                self._refuse(431, self._too_large())

    def _parse(self, data: bytes) -> bytes:
        """What is left to parse. The parser stops after a request that offers another protocol. The offer is not taken up, so the
        request is answered as any other one (RFC 9110, 7.8)."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            return data[offer.args[0] :]
        return b""

    def resume_writing(self) -> None:
        """The client has taken most of what waited for it."""
        super().resume_writing()
        self._unsent_since = None

    def on_message_begin(self) -> None:
        """The first byte of a head may come with the end of the request before."""
        super().on_message_begin()
        self._long_body = False
        self.scope["extensions"] = {
            EXTENSION: self.give_up,  # type: ignore[dict-item]
            LONG_BODY: self._allow_long,  # type: ignore[dict-item]
            LINGER: self._linger,  # type: ignore[dict-item]
            REASON: self._word,  # type: ignore[dict-item]
        }
        if self._head_since is None:
            self._head_since = self.loop.time()
        self._head_bytes = max(self._head_bytes, 1)
        self._host = None

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self.limits.url:
            raise _Refusal(414, f"The address of a request has at most {self.limits.url} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """As uvicorn's, which is not called: each request has several headers. Trailers, which come after a chunked body, are
        dropped: they are not headers (RFC 9110, section 6.5.1)."""
        if self._in_body:
            self._head_bytes += len(name) + len(value)
            if self._head_bytes > self.limits.head:
                raise _Refusal(431, self._too_large())
            return
        name = name.lower()
        self.headers.append((name, value))
        if len(self.headers) > self.limits.headers:
            raise _Refusal(431, f"A request has at most {self.limits.headers} headers.")
        if name == b"host":
            if self._host is not None:
                raise _Refusal(400, "The header Host came twice.")
            self._host = value
            status = self._connections.hosts.status(value)
            if status != 200:
                raise _Refusal(status, _WRONG_HOST[status])
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True

    def on_headers_complete(self) -> None:
        if self._host is None and self.parser.get_http_version() == "1.1":
            raise _Refusal(400, "A request needs the header Host.")
        if self.parser.should_upgrade() and self._has_body():
            raise _Refusal(400, "A request with a body must come without the header Upgrade.")
        if self._connections.proxies.trusted(self._address):
            self._pass_on()
        super().on_headers_complete()  # raises for an address that is no path, such as that of CONNECT
        if self._config.answers_last:
            self.cycle.keep_alive = False
        self._in_body = True
        self._head_since = None
        self._head_bytes = 0
        self._body_since = self._data_at = self.loop.time()
        self._under_way = [cycle for cycle in self._under_way if not cycle.response_complete]
        self._under_way.append(self.cycle)

    def _has_body(self) -> bool:
        """The parser takes what follows an offer of another protocol for the next request, also where it is a body."""
        return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in self.headers)

    def _pass_on(self) -> None:
        """A trusted proxy tells whose request it is: the application and the limit see that client."""
        client = self._connections.proxies.client(self._address, self.headers)
        self._forwarded.append(client)
        if not self._connections.enter(client):
            raise _Refusal(503, "Too many requests from this address are under way.")
        self.scope["client"] = (client, 0)
        scheme = forwarded_scheme(self.headers)
        if scheme is not None:
            self.scope["scheme"] = scheme

    def on_response_complete(self) -> None:
        if self._forwarded:
            self._connections.leave(self._forwarded.popleft())
        super().on_response_complete()

    def on_body(self, body: bytes) -> None:
        self._data_at = self.loop.time()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self._head_bytes = 0
        super().on_message_complete()

    def check(self, now: float) -> None:
        """Close the connection when its client is too slow."""
        limits = self.limits
        if self._stopped_taking(now):
            self.give_up()
        elif self.transport.is_closing():
            pass
        elif self._refused_at is not None:
            if now - self._refused_at > _LINGER:
                self.transport.close()
        elif self._head_since is not None and self._idle and now - self._head_since > limits.head_seconds:
            self._refuse(408, f"The head of the request was not complete within {limits.head_seconds:g} s.")
        elif self._in_body and self._body_is_late(now):
            self._refuse(408, "The body of the request came too slowly.")
        elif self._connections.filling and self._idle_since(now) < now - limits.crowded_idle_seconds:
            self.transport.close()

    def _idle_since(self, now: float) -> float:
        """When the last response was complete, where no request has begun since."""
        timer = self.timeout_keep_alive_task
        return now if timer is None else timer.when() - self.limits.idle_seconds

    def answer_last(self) -> None:
        if not self._idle:
            self.cycle.keep_alive = False

    def give_up(self) -> None:
        """What was written and not taken is dropped."""
        if not self.transport.is_closing() or self.unsent:
            self._connections.refused("unread")
            self.transport.abort()

    @property
    def unsent(self) -> int:
        """Bytes that were written and not taken."""
        size: int = self.transport.get_write_buffer_size()
        return size

    def taken_at(self, now: float) -> float:
        """When the client last took enough of what was written for it."""
        return now if self._unsent_since is None else self._unsent_since

    def _body_is_late(self, now: float) -> bool:
        if self.flow.read_paused:  # the application takes its time
            self._data_at = now
            return False
        if now - self._data_at > self.limits.pause_seconds:
            return True
        return not self._long_body and now - self._body_since > self.limits.body_seconds

    def _allow_long(self) -> None:
        self._long_body = self._streams = True

    def _word(self, scope: Any, reason: bytes) -> None:
        """Give the status line of the response to a request these words."""
        cycle = next((one for one in self._under_way if one.scope is scope), None)
        if cycle is not None:
            cycle.transport = WithReason(cycle, reason)  # type: ignore[assignment]

    def _linger(self) -> None:
        """The answer was written before the end of the body: close, and drop for a moment what still comes."""
        self._long_body = False
        if self._in_body and self._refused_at is None and not self.transport.is_closing():
            self._refused_at = self.loop.time()
            if self.transport.can_write_eof():
                self.transport.write_eof()

    def _stopped_taking(self, now: float) -> bool:
        unsent = self.transport.get_write_buffer_size()
        if not unsent:
            self._unsent_since = None
        elif self._unsent_since is None or self._unsent - unsent >= self.limits.taken:
            self._unsent, self._unsent_since = unsent, now
        elif unsent > self._unsent:  # the application has written more
            self._unsent = unsent
        return self._unsent_since is not None and now - self._unsent_since > self.limits.pause_seconds

    def _too_large(self) -> str:
        return f"The head of a request has at most {self.limits.head} bytes."

    @property
    def _idle(self) -> bool:
        """Every request whose head was read has its response."""
        return not self.pipeline and (self.cycle is None or self.cycle.response_complete)

    def _refuse(self, status: int, detail: str) -> None:
        """Answer and close. There is no answer where the client would take it for that to an earlier request, and none to a
        connection on which nothing was sent."""
        self._connections.refused(str(status))
        awaited = self._in_body and not self.pipeline and not self.cycle.response_started
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not awaited and not (self._idle and (self._head_bytes or status == 503)):
            self.transport.close()
            return
        self._refused_at = self.loop.time()
        self.transport.write(_response(status, detail))
        if self.transport.can_write_eof():
            self.transport.write_eof()


def _response(status: int, detail: str) -> bytes:
    title = "URI Too Long" if status == 414 else HTTPStatus(status).phrase  # Python 3.11 has the name of an older RFC
    body = json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail}).encode()
    head = [
        f"HTTP/1.1 {status} {title}",
        "content-type: application/problem+json",
        f"content-length: {len(body)}",
        "connection: close",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
    ]
    if status == 503:
        head.append("retry-after: 1")
    return "\r\n".join([*head, "", ""]).encode() + body
