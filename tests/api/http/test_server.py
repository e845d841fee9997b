"""Behaviour that only a real server with sockets shows."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.http.toy import ID, SECRET

KEY = f"API-KEY: {SECRET}\r\n".encode()


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return int(head.split(b" ")[1]), head, await reader.readexactly(length)


@pytest.mark.parametrize("size", [10, 300_000, 5_000_000])
@pytest.mark.parametrize("path", [b"/api/nothing", b"/api/thing/", b"/api/thing/slow/x/y"])
async def test_a_body_that_nobody_read_does_not_break_the_connection(port: int, size: int, path: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path, size))
    writer.write(b"x" * size)
    status, _, _ = await _read(reader)
    assert status in (401, 404)
    writer.write(b"GET /api/thing/%s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (ID.encode(), KEY))
    status, _, body = await _read(reader)
    assert status == 200
    assert ID.encode() in body
    writer.close()


async def test_a_chunked_body_over_the_limit_is_413_and_the_connection_lives(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n%s\r\n" % KEY)
    for _ in range(30):
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
    writer.write(b"0\r\n\r\n")
    status, _, _ = await _read(reader)
    assert status == 413
    writer.write(b"HEAD /api/thing/ HTTP/1.1\r\nHost: x\r\n%s\r\n" % KEY)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_who_waits_for_100_continue_is_refused_on_a_connection_that_ends(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9999999\r\n%s\r\n" % KEY)
    status, head, _ = await _read(reader)
    assert status == 413
    assert b"connection: close" in head
    assert await reader.read() == b""
    writer.close()
