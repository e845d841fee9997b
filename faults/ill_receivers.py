"""Ill receivers: each answers in its own way, as no correct server would. They are the receivers of webhooks and the hosts of
downloads in the scenario `hostile`."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Final

Behaviour = Callable[[StreamReader, StreamWriter], Awaitable[None]]
_OK: Final = b"HTTP/1.1 200 OK\r\n"
_DONE: Final = b"content-length: 0\r\n\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n\r\n"
_NINES: Final = b"9" * 20
_PAUSE: Final = 0.2


async def _asked(reader: StreamReader) -> None:
    """Wait for the head of the request."""
    await reader.readuntil(b"\r\n\r\n")


def says(*pieces: bytes, status: bytes = _OK) -> Behaviour:
    """Return a behaviour that sends one answer and keeps the connection open until the client closes it."""

    async def behave(reader: StreamReader, writer: StreamWriter) -> None:
        await _asked(reader)
        writer.write(status + b"".join(pieces))
        await writer.drain()
        while await reader.read(65_536):
            pass

    return behave


def repeats(start: bytes, piece: bytes, *, pause: float = 0.0) -> Behaviour:
    """Return a behaviour that sends an endless answer, as fast as the client takes it, or a piece at a time."""

    async def behave(reader: StreamReader, writer: StreamWriter) -> None:
        await _asked(reader)
        writer.write(start)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return behave


def closes(start: bytes = b"", *, reset: bool = False, unasked: bool = False) -> Behaviour:
    """Return a behaviour that closes the connection in the middle."""

    async def behave(reader: StreamReader, writer: StreamWriter) -> None:
        if not unasked:
            await _asked(reader)
        writer.write(start)
        await writer.drain()
        if reset:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    return behave


async def _never(reader: StreamReader, writer: StreamWriter) -> None:
    await asyncio.Event().wait()


async def _never_reads(reader: StreamReader, writer: StreamWriter) -> None:
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.Event().wait()


async def _bomb(reader: StreamReader, writer: StreamWriter) -> None:
    """Answer with a gzip bomb, which is made on demand, because compressing 100 MiB takes a third of a second."""
    body = await asyncio.to_thread(_hundred_mebibytes)
    await says(b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body), body)(reader, writer)


@cache
def _hundred_mebibytes() -> bytes:
    return gzip.compress(bytes(100 << 20), mtime=0)


async def _unasked(reader: StreamReader, writer: StreamWriter) -> None:
    writer.write((_OK + _DONE) * 100)
    await writer.drain()
    await asyncio.Event().wait()


def _status(line: bytes, *headers: bytes) -> Behaviour:
    return says(b"".join(header + b"\r\n" for header in headers), _DONE, status=b"HTTP/1.1 " + line + b"\r\n")


def _later(value: bytes) -> Behaviour:
    return _status(b"503 Busy", b"Retry-After: " + value)


def _moved(to: bytes) -> Behaviour:
    return _status(b"302 Found", b"Location: " + to)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "endless headers": repeats(_OK, b"x-a: b\r\n" * 1000),
    "one endless header": repeats(_OK + b"x-a: ", b"a" * 8192),
    "endless status line": repeats(b"HTTP/1.1 200 ", b"O" * 8192),
    "folded headers": repeats(_OK + b"x-a: b\r\n", b" c\r\n" * 1000),
    "dripped head": repeats(_OK, b"x", pause=_PAUSE),
    "dripped body": repeats(_OK + b"content-length: 1000000\r\n\r\n", b"x", pause=_PAUSE),
    "dripped chunks": repeats(_OK + _CHUNKED, b"1\r\nx\r\n", pause=_PAUSE),
    "thousands of cookies": says(b"set-cookie: a=b\r\n" * 10_000, _DONE),
    "Retry-After beyond all time zones": _later(b"Mon, 01 Jan 2020 00:00:00 +" + _NINES),
    "Retry-After with a year of 20 digits": _later(b"Mon, 01 Jan " + _NINES + b" 00:00:00 GMT"),
    "Retry-After of 300 digits": _later(_NINES * 15),
    "Retry-After below zero": _later(b"-1"),
    "Retry-After in bytes": _later(bytes(range(128, 256))),
    "Retry-After of an hour": _later(b"3600"),
    "429": _status(b"429 Slow down", b"Retry-After: 1"),
    "500": _status(b"500 Broken"),
    "410": _status(b"410 Gone"),
    "304": _status(b"304 Not Modified"),
    "204 with a body without end": repeats(b"HTTP/1.1 204 No Content\r\n\r\n", b"x" * 8192),
    "status 099": _status(b"099 Odd"),
    "status 1000": _status(b"1000 Odd"),
    "status without a number": _status(b"OK OK"),
    "HTTP/9.9": says(_DONE, status=b"HTTP/9.9 200 OK\r\n"),
    "HTTP/0.9": closes(b"all is well"),
    "another protocol": closes(b"220 mail.example ESMTP ready\r\n", unasked=True),
    "garbage": repeats(bytes(range(256)), bytes(range(256)) * 32),
    "zeros": repeats(b"", bytes(8192)),
    "redirect to loopback": _moved(b"http://127.0.0.1:5432/"),
    "redirect to itself": _moved(b"/"),
    "redirect to a file": _moved(b"file:///etc/passwd"),
    "redirect to a machine's secrets": _moved(b"http://169.254.169.254/latest/meta-data/"),
    "redirect to what is no address": _moved(b"http://[::1"),
    "content-length too large": closes(_OK + b"content-length: 1000000\r\n\r\nx"),
    "content-length too small": says(b"content-length: 1\r\n\r\n", b"x" * 100_000),
    "content-length below zero": says(b"content-length: -1\r\n\r\nx"),
    "content-length of 30 digits": says(b"content-length: " + b"9" * 30 + b"\r\n\r\nx"),
    "two content-lengths": says(b"content-length: 1\r\ncontent-length: 2\r\n\r\nxx"),
    "content-length and chunks": says(b"content-length: 1\r\n", _CHUNKED, b"1\r\nx\r\n0\r\n\r\n"),
    "chunks without end": repeats(_OK + _CHUNKED, b"2000\r\n" + b"x" * 8192 + b"\r\n"),
    "a chunk of 2^64 bytes": repeats(_OK + _CHUNKED + b"ffffffffffffffff\r\n", b"x" * 8192),
    "a chunk of no size": says(_CHUNKED, b"zz\r\nx\r\n"),
    "an endless size of a chunk": repeats(_OK + _CHUNKED, b"0" * 8192),
    "endless extensions of a chunk": repeats(_OK + _CHUNKED + b"1;", b"a=b;" * 2000),
    "endless trailers": repeats(_OK + _CHUNKED + b"0\r\n", b"x-a: b\r\n" * 1000),
    "a gzip bomb": _bomb,
    "bad deflate": says(b"content-encoding: deflate\r\ncontent-length: 5\r\n\r\nhello"),
    "an unknown encoding": says(b"content-encoding: x\r\ntransfer-encoding: x\r\n\r\nhello"),
    "100 without end": repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "103 without end": repeats(b"", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 100),
    "101": says(b"upgrade: x\r\nconnection: upgrade\r\n\r\n", status=b"HTTP/1.1 101 Switching Protocols\r\n"),
    "a body without end": repeats(_OK + b"\r\n", b"x" * 65_536),
    "two answers": says(_DONE, _OK, _DONE),
    "answers before it is asked": _unasked,
    "never answers": _never,
    "never reads": _never_reads,
    "closes at once": closes(unasked=True),
    "closes when it is asked": closes(),
    "closes in the head": closes(_OK + b"content-"),
    "resets at once": closes(unasked=True, reset=True),
    "resets when it is asked": closes(reset=True),
    "resets in the body": closes(_OK + b"content-length: 100\r\n\r\nx", reset=True),
}
TLS: Final[Mapping[str, Behaviour]] = {
    "TLS: plain HTTP": closes(_OK + _DONE, unasked=True),
    "TLS: garbage": repeats(b"", b"\x16\x03\x01" + bytes(range(256)) * 8),
    "TLS: an alert": closes(b"\x15\x03\x03\x00\x02\x02\x28", unasked=True),
    "TLS: a record that is too large": closes(b"\x16\x03\x03\xff\xff" + bytes(70_000), unasked=True),
    "TLS: silence": _never,
}


class IllReceivers:
    """A server for each behaviour. `asked` counts the connections of each."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.urls: dict[str, str] = {}
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        for name, behave in {**BEHAVIOURS, **TLS}.items():
            server = await asyncio.start_server(partial(self._serve, name, behave), "127.0.0.1", 0)
            self._servers.append(server)
            self.urls[name] = f"{'https' if name in TLS else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, name: str, behave: Behaviour, reader: StreamReader, writer: StreamWriter) -> None:
        self.asked[name] += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
                await behave(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()
