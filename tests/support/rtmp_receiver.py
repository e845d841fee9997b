"""A receiver of RTMP that keeps who sent what and when, and breaks as the test asks."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

from workers.adapters.encoders.amf import Value, decode, encode
from workers.adapters.encoders.rtmp import AUDIO, DATA, VIDEO, _ChunkReader

_COMMAND, _CHUNK = 20, 128
_LAST_DATA = 52
"""The place of `tcpi_last_data_recv`, in milliseconds, in the kernel's `struct tcp_info`."""


@dataclass
class Taken:
    """A connection. `session` is the number in its description; `tags` are kind, time in milliseconds, and bytes."""

    key: str = ""
    application: str = ""
    session: int = 0
    described: dict[str, Any] = field(default_factory=dict)
    tags: list[tuple[int, int, bytes]] = field(default_factory=list)
    ended: bool = False
    """The sender said that the stream is over."""
    open: bool = True

    def media(self, kind: int) -> list[bytes]:
        """Return the media without the configuration of the decoder."""
        return [data for each, _, data in self.tags if each == kind and data[1] == 1]


@dataclass
class RtmpReceiver:
    """`how`: takes, refuse, hang (takes the connection and answers nothing) or cut (closes after a few tags)."""

    url: str = ""
    port: int = 0
    how: str = ""
    taken: list[Taken] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    sent: list[tuple[float, str, int]] = field(default_factory=list)
    """When media came at the latest, for which key, of which session. They may be read later, on a busy machine."""

    def of(self, key: str) -> list[Taken]:
        return [connection for connection in self.taken if connection.key == key]

    def sessions(self, key: str) -> list[int]:
        """Return the numbers of the sessions whose media came, each as often as it took over."""
        numbers: list[int] = []
        for _, name, session in self.sent:
            if name == key and (not numbers or numbers[-1] != session):
                numbers.append(session)
        return numbers

    def media(self, key: str) -> int:
        return sum(name == key for _, name, _ in self.sent)

    def drop(self) -> None:
        """Drop all connections, as if the receiver had died."""
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken = Taken()
        self.writers.append(writer)
        try:
            if self.how == "hang":
                await reader.read()
            await self._take(reader, writer, taken)
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            taken.open = False
            writer.transport.abort()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, taken: Taken) -> None:
        first = await reader.readexactly(1 + 1536)
        writer.write(b"\3" + b"\0" * 8 + os.urandom(1528) + first[1:])
        await reader.readexactly(1536)
        chunks, clock = _ChunkReader(reader), _Times()
        chunks_of = clock.watching(chunks)
        while True:
            kind, body, at = await chunks_of()
            if kind == _COMMAND:
                if not self._command(writer, taken, decode(body)):
                    return
            elif kind == DATA:
                description = decode(body)[-1]
                assert isinstance(description, dict)
                taken.described, taken.session = dict(description), int(description["session"])
            elif kind in (AUDIO, VIDEO):
                taken.tags.append((kind, at, body))
                self.sent.append((time.monotonic() - since_arrival(writer), taken.key, taken.session))
                if self.how == "cut" and len(taken.tags) > 10:
                    return

    def _command(self, writer: asyncio.StreamWriter, taken: Taken, values: list[Value]) -> bool:
        """False: the connection is closed."""
        name, number = values[0], values[1]
        assert isinstance(number, float)
        match name:
            case "connect":
                assert isinstance(values[2], dict)
                taken.application = str(values[2]["app"])
                writer.write(_message("_result", number, None, {"code": "NetConnection.Connect.Success"}))
            case "createStream":
                writer.write(_message("_result", number, None, 1.0))
            case "publish":
                taken.key = str(values[3])
                code = "NetStream.Publish.BadName" if self.how == "refuse" else "NetStream.Publish.Start"
                writer.write(_message("onStatus", 0.0, None, {"level": "status", "code": code}))
                if self.how != "refuse":
                    self.taken.append(taken)
            case "FCUnpublish":
                taken.ended = True
            case "deleteStream":
                return False
        return True


class _Times:
    """The time of each message, which the reader of chunks leaves out."""

    def __init__(self) -> None:
        self.last = 0

    def watching(self, chunks: _ChunkReader) -> Any:
        reader = chunks._reader
        whole = reader.readexactly
        times = self

        async def readexactly(size: int) -> bytes:
            data = await whole(size)
            if size == 11:
                times.last = int.from_bytes(data[:3])
            return data

        reader.readexactly = readexactly  # type: ignore[assignment, method-assign]

        async def message() -> tuple[int, bytes, int]:
            kind, body = await chunks.message()
            return kind, body, times.last

        return message


def since_arrival(writer: asyncio.StreamWriter) -> float:
    """Seconds since anything arrived on the connection, as the kernel knows, whatever is still to be read: what is read now came
    then at the latest."""
    info: bytes = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA + 4)
    return int(struct.unpack_from("=I", info, _LAST_DATA)[0]) / 1000


def _message(*values: Value) -> bytes:
    body = encode(*values)
    head = b"\3" + (0).to_bytes(3) + len(body).to_bytes(3) + bytes([_COMMAND]) + struct.pack("<I", 0)
    parts = [body[at : at + _CHUNK] for at in range(0, len(body), _CHUNK)]
    return head + b"\xc3".join(parts)


@asynccontextmanager
async def rtmp_receiver(port: int = 0, *, tls: SSLContext | None = None) -> AsyncIterator[RtmpReceiver]:
    receiver = RtmpReceiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", port, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    receiver.url = f"rtmp{'s' if tls else ''}://127.0.0.1:{receiver.port}/live"
    try:
        yield receiver
    finally:
        server.close()
        receiver.drop()
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                await server.wait_closed()
