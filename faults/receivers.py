"""Receivers of webhooks, healthy or faulty in one of several ways. They note every request that came in whole."""

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

from workers.deliveries.signature import signatures

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_ERROR = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\noops"
_BUSY = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"
_ELSEWHERE = b"HTTP/1.1 302 Found\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n"
_HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf of it"
_ENDLESS = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"
_DRIP = 0.5
_SLOW = 0.1


class Mood(StrEnum):
    WELL = "well"
    SLOW = "slow"  # well, but it takes its time
    FAILS = "fails"  # 500, three times of ten
    HANGS = "hangs"
    DRIPS = "drips"
    BUSY = "429"
    REDIRECTS = "redirects"
    CLOSES = "closes"


class Receiver:
    """One address. Times are those of the wall: the log's are, too."""

    def __init__(self, name: str, *, mood: Mood = Mood.WELL, elsewhere: str = "", dice: random.Random) -> None:
        self.name = name
        self.mood = mood
        self.ill = mood not in (Mood.WELL, Mood.SLOW)
        self.as_json = True
        self.webhook = UUID(int=0)
        self.secret = b""
        self.url = ""
        self.arrivals: dict[UUID, tuple[float, bytes]] = {}
        """What came, by its webhook-id, in the order of its first coming."""
        self.accepted: dict[UUID, float] = {}
        """What was answered with 200, the whole of it."""
        self.requests = 0
        self.altered = 0
        self.unsigned = 0
        self.moods: Counter[str] = Counter()
        self.elsewhere = elsewhere
        self.dice = dice
        self._open: set[_Conversation] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Conversation(self, self._open), "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/{self.name}"

    def recover(self) -> None:
        """Well from now on. Who still waits for an answer is hung up on, as by a restart."""
        self.mood = Mood.WELL
        for conversation in list(self._open):
            conversation.close()

    async def stop(self) -> None:
        for conversation in list(self._open):
            conversation.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def note(self, headers: Mapping[str, str], body: bytes) -> UUID:
        """A whole request."""
        now = time.time()
        self.requests += 1
        message, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "0")
        wanted = signatures([self.secret], body, message=message, timestamp=int(stamp))
        self.unsigned += wanted not in headers.get("webhook-signature", "").split(" ")
        delivery = UUID(message)
        known = self.arrivals.setdefault(delivery, (now, body))
        self.altered += known[1] != body
        return delivery


class _Conversation(asyncio.Protocol):
    """One connection, kept alive."""

    def __init__(self, receiver: Receiver, others: set[_Conversation]) -> None:
        self._receiver = receiver
        self._others = others
        self._held = b""
        self._drops: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is none by its class
        self._others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
        if self._drops is not None:
            self._drops.cancel()

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n") + 4) > 3:
            found = _LENGTH.search(self._held, 0, end)
            whole = end + (int(found[1]) if found else 0)
            if self._receiver.mood is Mood.CLOSES and self._receiver.dice.random() < 0.5:
                self._receiver.moods["closed before the request was read"] += 1
                self._transport.abort()
                return
            if len(self._held) < whole:
                return
            request, self._held = self._held[:whole], self._held[whole:]
            self._answer(request[:end].decode("latin-1"), request[end:])

    def _answer(self, head: str, body: bytes) -> None:
        lines = (line.partition(":") for line in head.split("\r\n")[1:])
        delivery = self._receiver.note({name.lower(): value.strip() for name, _, value in lines}, body)
        self._receiver.moods[self._receiver.mood] += 1
        _ANSWERS[self._receiver.mood](self, delivery)

    def well(self, delivery: UUID) -> None:
        self._transport.write(_OK)
        self._receiver.accepted.setdefault(delivery, time.time())

    def dawdle(self, delivery: UUID) -> None:
        """Always something is under way and waiting when a fault comes."""
        asyncio.get_running_loop().call_later(_SLOW, self._late, delivery)

    def _late(self, delivery: UUID) -> None:
        if not self._transport.is_closing():
            self.well(delivery)

    def fail(self, delivery: UUID) -> None:
        if self._receiver.dice.random() < 0.3:
            self._transport.write(_ERROR)
        else:
            self.well(delivery)

    def hang(self, _: UUID) -> None:
        """Not a word."""

    def busy(self, _: UUID) -> None:
        self._transport.write(_BUSY)

    def redirect(self, _: UUID) -> None:
        self._transport.write(_ELSEWHERE % self._receiver.elsewhere.encode())

    def break_off(self, _: UUID) -> None:
        self._transport.write(_HALF)
        self._transport.close()

    def drip(self, _: UUID) -> None:
        """Half of the time already within the head."""
        whole = _ENDLESS if self._receiver.dice.random() < 0.5 else b""
        self._transport.write(whole)
        self._drop((_ENDLESS if not whole else b"") + b"." * 1000)

    def _drop(self, rest: bytes) -> None:
        if rest and not self._transport.is_closing():
            self._transport.write(rest[:1])
            self._drops = asyncio.get_running_loop().call_later(_DRIP, self._drop, rest[1:])


_ANSWERS: Mapping[Mood, Callable[[_Conversation, UUID], None]] = {
    Mood.WELL: _Conversation.well,
    Mood.SLOW: _Conversation.dawdle,
    Mood.FAILS: _Conversation.fail,
    Mood.HANGS: _Conversation.hang,
    Mood.DRIPS: _Conversation.drip,
    Mood.BUSY: _Conversation.busy,
    Mood.REDIRECTS: _Conversation.redirect,
    Mood.CLOSES: _Conversation.break_off,
}
