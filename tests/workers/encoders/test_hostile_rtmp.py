"""Answers of an RTMP server to a publisher: they are read or refused, and other tasks run meanwhile."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.bounds import MIB, bounded
from tests.support.rtmp_receiver import _message
from workers.adapters.encoders.amf import decode, encode
from workers.adapters.encoders.point import NotSent
from workers.adapters.encoders.rtmp import RtmpPublication, RtmpTarget, _ChunkReader

PATIENCE = 60
TARGET = RtmpTarget("rtmp://target.test", "live", "key")
HANDSHAKE = b"\3" + bytes(2 * 1536)
CONNECTED = HANDSHAKE + _message("_result", 1.0, None, {})


@asynccontextmanager
async def answering(message: bytes, *, endless: bytes = b"") -> AsyncIterator[RtmpPublication]:
    """A server that says this whatever it is told, takes nothing, and goes on with `endless`."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            writer.write(message)
            while endless:
                writer.write(endless)
                await writer.drain()
            writer.write_eof()

    listening, ours = socket.socket(), socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    listening.bind(("127.0.0.1", 0))
    server = await asyncio.start_server(serve, sock=listening, limit=1_024)
    ours.connect(listening.getsockname())
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        yield RtmpPublication(reader, writer)
    finally:
        writer.transport.abort()
        server.close()


def chunk(shape: int, length: int, body: bytes, *, channel: int = 3, kind: int = 20) -> bytes:
    head = bytes(3) + length.to_bytes(3) + bytes([kind]) + bytes(4)
    return bytes([shape << 6 | channel]) + head[: (11, 7, 3, 0)[shape]] + body


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, 1e308])
async def test_a_stream_with_a_number_that_cannot_be_is_refused(number: float) -> None:
    async with asyncio.timeout(PATIENCE), answering(CONNECTED + _message("_result", 4.0, None, number)) as publication:
        with pytest.raises(NotSent, match="creates no stream"):
            await publication.publish(TARGET)


@pytest.mark.parametrize(
    "message",
    [
        chunk(0, 1_000, bytes(128)) + chunk(1, 10, bytes(10)),
        b"".join(chunk(0, 90_000, bytes(60_000), channel=each) for each in range(3, 40)),
        chunk(0, 2 * MIB, b""),
    ],
    ids=["a message that begins anew", "many that do not end", "one that is too long"],
)
async def test_messages_that_break_the_rules_are_refused(message: bytes) -> None:
    wide = chunk(0, 4, struct.pack(">I", 60_000), channel=2, kind=1)
    message = message if len(message) < 10_000 else wide + message
    async with asyncio.timeout(PATIENCE), answering(HANDSHAKE + message) as publication:
        with pytest.raises(NotSent):
            await publication.publish(TARGET)


async def test_others_have_their_turn_while_a_server_sends_empty_messages() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(chunk(0, 0, b"") + b"\xc3" * 9_999)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    chunks, waiting = _ChunkReader(reader), asyncio.create_task(other())
    for _ in range(10_000):
        assert await chunks.message() == (20, b"")
    waiting.cancel()
    assert turns > 100


async def test_a_server_that_asks_without_end_and_takes_nothing_fills_no_memory() -> None:
    ping = chunk(0, 6, struct.pack(">HI", 6, 1), channel=2, kind=4) * 1_000
    async with answering(HANDSHAKE, endless=ping) as publication:
        await publication.shake_hands()
        watching = asyncio.create_task(publication._until_refused())
        transport = publication._writer.transport
        sizes: list[int] = []
        while not (len(sizes) > 50 and sizes[-1] == sizes[-50] > 0):
            sizes.append(transport.get_write_buffer_size())
            await asyncio.sleep(0.01)
            assert sizes[-1] < MIB
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def test_values_are_read_up_to_a_number_of_them() -> None:
    def read() -> None:
        assert len(decode(b"\5" * 4 * MIB)) == 256
        assert decode(b"\3" + b"\0\1a\5" * MIB) == []
        assert decode(b"\3\0\0" * MIB) == []

    bounded(read)


@settings(max_examples=60, deadline=None)
@given(
    st.binary(max_size=100)
    | st.builds(lambda a, b: encode("_result", 1.0, {"a": [None, 1.0][a]}) + b, st.integers(0, 1), st.binary())
)
def test_any_bytes_are_values_as_far_as_they_can_be_read(data: bytes) -> None:
    decode(data)
