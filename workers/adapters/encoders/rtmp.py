"""A publisher for RTMP (Adobe's Real Time Messaging Protocol, 1.0): handshake, commands, and messages in chunks.

ffmpeg could speak it, but then the host and the stream key would be arguments of a process, and the guard would not make the
connection.
"""

from __future__ import annotations

import asyncio
import os
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from projections.kernel.background_task import start_task
from workers.adapters.encoders.amf import Value, decode, encode
from workers.adapters.encoders.point import NotSent

PORTS: Final = {"rtmp": 1935, "rtmps": 443}
STUCK: Final = 10.0
"""Seconds after which a server that accepts no data counts as stuck."""
AUDIO: Final = 8
VIDEO: Final = 9
DATA: Final = 18
_SET_CHUNK_SIZE, _CONTROL, _WINDOW, _COMMAND = 1, 4, 5, 20
_CHUNK: Final = 4_096
_LARGEST: Final = 1_048_576
"""The limit in bytes for a message of the server, and for all its incomplete messages together."""
_MOST_CHANNELS: Final = 64
_TURN: Final = 64
"""Chunks after which other tasks run: a server may send empty chunks as fast as they are read."""
_HANDSHAKE: Final = 1_536
_EXTENDED: Final = 0xFFFFFF
_PING, _PONG = 6, 7
_BUFFERED: Final = 65_536
_CONNECTION, _STREAM = 3, 4
"""The chunk streams of commands and of media."""


@dataclass(frozen=True, slots=True)
class RtmpTarget:
    """The destination of a publication. `application` and `key` are parts of the path of its URL."""

    address: str
    application: str
    key: str = field(repr=False)


class RtmpPublication:
    """A connection that publishes one stream."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._chunks = _ChunkReader(reader)
        self._stream = 0
        writer.transport.set_write_buffer_limits(high=_BUFFERED)

    async def publish(self, target: RtmpTarget) -> None:
        """Open the stream. Raises `NotSent`, `OSError` or `EOFError`."""
        await self.shake_hands()
        self._send(_SET_CHUNK_SIZE, struct.pack(">I", _CHUNK), stream=0)
        parameters: Value = {
            "app": target.application,
            "type": "nonprivate",
            "flashVer": "FMLE/3.0 (compatible; medialedger)",
            "tcUrl": f"{target.address}/{target.application}",
        }
        self._command("connect", 1.0, parameters)
        await self._result(1.0, "It refuses the connection to its application.")
        self._command("releaseStream", 2.0, None, target.key)
        self._command("FCPublish", 3.0, None, target.key)
        self._command("createStream", 4.0, None)
        answer = await self._result(4.0, "It creates no stream.")
        self._stream = _stream_number(answer)
        self._command("publish", 5.0, None, target.key, "live", stream=self._stream)
        await self._published()

    async def send(self, kind: int, data: bytes, *, time: int) -> None:
        """Send a message. `time` is in milliseconds."""
        self._send(kind, data, stream=self._stream, time=time)
        await self._writer.drain()

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Answer the server's requests meanwhile. Raises `NotSent` when the server closes the connection or refuses the stream,
        even while nothing is sent."""
        limit = asyncio.timeout(None)
        watching = start_task(self._watch(limit), what="answers of a server of RTMP")
        try:
            async with limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise NotSent("It closed the connection.") from None
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self, limit: asyncio.Timeout) -> None:
        with suppress(NotSent, OSError, EOFError):
            await self._until_refused()
        limit.reschedule(asyncio.get_running_loop().time())

    async def _until_refused(self) -> None:
        while True:
            kind, body = await self._message()
            if kind == _COMMAND and _status(body).startswith(("NetStream.Publish.Bad", "NetStream.Publish.Denied")):
                raise NotSent("It refuses the stream.")

    async def end(self, key: str) -> None:
        self._command("FCUnpublish", 6.0, None, key)
        self._command("deleteStream", 7.0, None, float(self._stream))
        await self._writer.drain()

    async def shake_hands(self) -> None:
        """Exchange the handshake. Raises `NotSent`, `OSError` or `EOFError`."""
        own = b"\0" * 8 + os.urandom(_HANDSHAKE - 8)
        self._writer.write(b"\3" + own)
        version = await self._reader.readexactly(1)
        if version != b"\3":
            raise NotSent("It does not speak RTMP.")
        theirs = await self._reader.readexactly(_HANDSHAKE)
        self._writer.write(theirs)
        await self._reader.readexactly(_HANDSHAKE)

    async def _result(self, transaction: float, refusal: str) -> Value:
        while True:
            kind, body = await self._message()
            values = decode(body) if kind == _COMMAND else []
            if len(values) > 1 and values[1] == transaction:
                if values[0] == "_result":
                    return values[3] if len(values) > 3 else None
                if values[0] == "_error":
                    raise NotSent(refusal)

    async def _published(self) -> None:
        while True:
            kind, body = await self._message()
            code = _status(body) if kind == _COMMAND else ""
            if code == "NetStream.Publish.Start":
                return
            if code:
                raise NotSent("It refuses the stream.")

    async def _message(self) -> tuple[int, bytes]:
        kind, body = await self._chunks.message()
        if kind == _CONTROL and body[:2] == struct.pack(">H", _PING):
            self._send(_CONTROL, struct.pack(">H", _PONG) + body[2:6], stream=0)
            await self._writer.drain()  # a server that sends pings and reads no answers would fill the memory
        return kind, body

    def _command(self, *values: Value, stream: int = 0) -> None:
        self._send(_COMMAND, encode(*values), stream=stream)

    def _send(self, kind: int, data: bytes, *, stream: int, time: int = 0) -> None:
        channel = {AUDIO: 5, VIDEO: 6, _COMMAND: _CONNECTION}.get(kind, 2)
        time &= 0xFFFFFFFF
        extended = struct.pack(">I", time) if time >= _EXTENDED else b""
        head = bytes([channel]) + min(time, _EXTENDED).to_bytes(3) + len(data).to_bytes(3) + bytes([kind])
        parts = [head, stream.to_bytes(4, "little"), extended, data[:_CHUNK]]
        for at in range(_CHUNK, len(data), _CHUNK):
            parts += [bytes([0xC0 | channel]), extended, data[at : at + _CHUNK]]
        self._writer.write(b"".join(parts))


class _ChunkReader:
    """Reads messages of the server, assembled from their chunks."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self._size = 128
        self._messages: dict[int, _Message] = {}
        self._buffered = self._count = 0

    async def message(self) -> tuple[int, bytes]:
        while True:
            message = await self._chunk()
            if message is not None:
                if message.kind == _SET_CHUNK_SIZE and len(message.body) >= 4:
                    self._size = min(max(struct.unpack_from(">I", message.body)[0] & 0x7FFFFFFF, 1), _LARGEST)
                body, message.body = bytes(message.body), bytearray()
                self._buffered -= len(body)
                return message.kind, body

    async def _chunk(self) -> _Message | None:
        self._count += 1
        if self._count % _TURN == 0:
            await asyncio.sleep(0)
        first = (await self._reader.readexactly(1))[0]
        shape, channel = first >> 6, first & 0x3F
        if channel < 2:
            more = await self._reader.readexactly(channel + 1)
            channel = 64 + int.from_bytes(more, "little")
        head = await self._reader.readexactly((11, 7, 3, 0)[shape])
        message = self._messages.setdefault(channel, _Message())
        if len(self._messages) > _MOST_CHANNELS or (shape < 2 and message.body):
            raise NotSent("It violates the protocol RTMP.")
        if shape < 3:
            message.extended = int.from_bytes(head[:3]) == _EXTENDED
        if shape < 2:
            message.length, message.kind = int.from_bytes(head[3:6]), head[6]
        if message.extended:
            await self._reader.readexactly(4)
        if message.length > _LARGEST:
            raise NotSent("It sends a message that is too long.")
        piece = await self._reader.readexactly(min(self._size, message.length - len(message.body)))
        message.body += piece
        self._buffered += len(piece)
        if self._buffered > _LARGEST:
            raise NotSent("It sends messages that are too long.")
        return message if len(message.body) >= message.length else None


@dataclass(slots=True)
class _Message:
    kind: int = 0
    length: int = 0
    extended: bool = False
    body: bytearray = field(default_factory=bytearray)


def _stream_number(answer: Value) -> int:
    """Return the stream's number from the server's answer, 1 if it has none. Raises `NotSent`."""
    if not isinstance(answer, float):
        return 1
    if not 0 <= answer <= 0xFFFFFFFF:
        raise NotSent("It creates no stream.")
    return int(answer)


def _status(body: bytes) -> str:
    """Return the code of a status command; empty for other commands."""
    values = decode(body)
    if len(values) > 3 and values[0] == "onStatus" and isinstance(values[3], dict):
        return str(values[3].get("code", ""))
    return ""
