"""Receivers of webhooks, healthy or with one of several faults. They record every complete request."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import cast
from uuid import UUID

from tests.support.link import Link
from workers.webhook.sender.attempt import signatures

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_ERROR = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\noops"
_BUSY = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"
_ELSEWHERE = b"HTTP/1.1 302 Found\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n"
_HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 10"
_ENDLESS = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"
_BYTE_SECONDS = 0.5
_SLOW = 0.1


class Behaviour(StrEnum):
    """The behaviour of a receiver."""

    HEALTHY = "healthy"
    SLOW = "slow"  # healthy, after a delay
    FAILS = "fails"  # 500 to three of ten requests
    HANGS = "hangs"
    DRIPS = "drips"
    BUSY = "429"
    REDIRECTS = "redirects"
    CLOSES = "closes"
    VANISHES = "vanishes"  # healthy, behind a link that swallows packets


class Receiver:
    """A receiver at one address. Times are from the system clock, as in the log."""

    def __init__(self, name: str, *, behaviour: Behaviour = Behaviour.HEALTHY, elsewhere: str = "", dice: random.Random) -> None:
        self.name = name
        self.behaviour = behaviour
        self.faulty = behaviour not in (Behaviour.HEALTHY, Behaviour.SLOW)
        self.as_json = True
        self.webhook = UUID(int=0)
        self.secret = b""
        self.url = ""
        self.arrivals: dict[UUID, tuple[float, bytes]] = {}
        """Time and body of the first arrival, by webhook-id, in the order of arrival."""
        self.accepted: dict[UUID, float] = {}
        """The time of the first complete 200 response, by webhook-id."""
        self.requests = 0
        self.altered = 0
        self.unsigned = 0
        self.behaviours: Counter[str] = Counter()
        self.elsewhere = elsewhere
        self._port = 0
        self.dice = dice
        self._open: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self.link = Link.to_port(lambda: self._port)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self, self._open), "127.0.0.1", 0)
        self._port = port = int(self._server.sockets[0].getsockname()[1])
        if self.behaviour is Behaviour.VANISHES:
            await self.link.open()
            port = self.link.port
        self.url = f"http://127.0.0.1:{port}/{self.name}"

    def recover(self) -> None:
        """Be healthy from now on. Open connections are closed, as by a restart."""
        self.behaviour = Behaviour.HEALTHY
        self.link.replace()
        for connection in list(self._open):
            connection.close()

    async def stop(self) -> None:
        for connection in list(self._open):
            connection.close()
        await self.link.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def record(self, headers: Mapping[str, str], body: bytes) -> UUID:
        """Record a complete request, and return its id."""
        now = time.time()
        self.requests += 1
        message, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "0")
        expected = signatures([self.secret], body, message=message, timestamp=int(stamp))
        self.unsigned += expected not in headers.get("webhook-signature", "").split(" ")
        delivery = UUID(message)
        first = self.arrivals.setdefault(delivery, (now, body))
        self.altered += first[1] != body
        return delivery


class _Connection(asyncio.Protocol):
    """A keep-alive connection."""

    def __init__(self, receiver: Receiver, others: set[_Connection]) -> None:
        self._receiver = receiver
        self._others = others
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is no subclass of it
        self._others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n") + 4) > 3:
            length = _LENGTH.search(self._buffer, 0, end)
            whole = end + (int(length[1]) if length else 0)
            if self._receiver.behaviour is Behaviour.CLOSES and self._receiver.dice.random() < 0.5:
                self._receiver.behaviours["closed before the request was read"] += 1
                self._transport.abort()
                return
            if len(self._buffer) < whole:
                return
            request, self._buffer = self._buffer[:whole], self._buffer[whole:]
            self._answer(request[:end].decode("latin-1"), request[end:])

    def _answer(self, head: str, body: bytes) -> None:
        lines = (line.partition(":") for line in head.split("\r\n")[1:])
        delivery = self._receiver.record({name.lower(): value.strip() for name, _, value in lines}, body)
        self._receiver.behaviours[self._receiver.behaviour] += 1
        _ANSWERS[self._receiver.behaviour](self, delivery)

    def accept(self, delivery: UUID) -> None:
        self._transport.write(_OK)
        self._receiver.accepted.setdefault(delivery, time.time())

    def accept_late(self, delivery: UUID) -> None:
        """Accept after a delay, so that requests are always in progress when a fault is injected."""
        asyncio.get_running_loop().call_later(_SLOW, self._accept_now, delivery)

    def _accept_now(self, delivery: UUID) -> None:
        if not self._transport.is_closing():
            self.accept(delivery)

    def fail(self, delivery: UUID) -> None:
        if self._receiver.dice.random() < 0.3:
            self._transport.write(_ERROR)
        else:
            self.accept(delivery)

    def hang(self, _: UUID) -> None:
        """Send no response."""

    def busy(self, _: UUID) -> None:
        self._transport.write(_BUSY)

    def redirect(self, _: UUID) -> None:
        self._transport.write(_ELSEWHERE % self._receiver.elsewhere.encode())

    def break_off(self, _: UUID) -> None:
        """Close the connection in the middle of the head."""
        self._transport.write(_HALF)
        self._transport.close()

    def drip(self, delivery: UUID) -> None:
        """Send a response byte by byte, in half of the cases including the head. A whole head accepts the delivery."""
        if self._receiver.dice.random() < 0.5:
            self._transport.write(_ENDLESS)
            self._receiver.accepted.setdefault(delivery, time.time())
            self._send_byte(b"." * 1000)
        else:
            self._send_byte(_ENDLESS + b"." * 1000)

    def _send_byte(self, rest: bytes) -> None:
        if rest and not self._transport.is_closing():
            self._transport.write(rest[:1])
            self._timer = asyncio.get_running_loop().call_later(_BYTE_SECONDS, self._send_byte, rest[1:])


_ANSWERS: Mapping[Behaviour, Callable[[_Connection, UUID], None]] = {
    Behaviour.HEALTHY: _Connection.accept,
    Behaviour.SLOW: _Connection.accept_late,
    Behaviour.FAILS: _Connection.fail,
    Behaviour.HANGS: _Connection.hang,
    Behaviour.DRIPS: _Connection.drip,
    Behaviour.BUSY: _Connection.busy,
    Behaviour.REDIRECTS: _Connection.redirect,
    Behaviour.CLOSES: _Connection.break_off,
    Behaviour.VANISHES: _Connection.accept,
}
