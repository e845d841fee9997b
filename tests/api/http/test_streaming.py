"""Answers that are sent piece by piece, under a real server: what ends them, and how."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn

from tests.api.http.toy import SECRET, Toy

FIRST, SECOND, END = b"9\r\ndata: 1\n\n\r\n", b"9\r\ndata: 2\n\n\r\n", b"0\r\n\r\n"


async def follow(port: int, kind: str, body: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = b"GET /api/thing/followed/%s HTTP/1.1\r\nHost: x\r\nAPI-KEY: %s\r\nContent-Length: %d\r\n\r\n"
    writer.write(head % (kind.encode(), SECRET.encode(), len(body)) + body)
    assert b"content-type: text/" + kind.encode() in await reader.readuntil(b"\r\n\r\n")
    assert await reader.readexactly(len(FIRST)) == FIRST
    return reader, writer


def streams(toy: Toy) -> float | None:
    """Return the number of streams from the metric."""
    return toy.registry.get_sample_value("medialedger_http_streams")


async def test_a_caller_that_goes_away_closes_its_stream(port: int, toy: Toy, caplog: pytest.LogCaptureFixture) -> None:
    for body in (b"", b"x" * 300_000):
        _, writer = await follow(port, "event-stream", body)
        await toy.shelf.entered.wait()
        assert not toy.shelf.closed.is_set()
        assert streams(toy) == 1
        writer.transport.abort()
        await toy.shelf.closed.wait()
        assert streams(toy) == 0
        toy.shelf.closed.clear()
        toy.shelf.entered.clear()
    assert caplog.records == []


async def test_a_stream_that_comes_to_its_end_leaves_the_connection_usable(port: int, toy: Toy) -> None:
    toy.shelf.hold.set()
    reader, writer = await follow(port, "event-stream")
    assert await reader.readexactly(len(SECOND + END)) == SECOND + END
    writer.write(b"GET /api/thing/reference HTTP/1.1\r\nHost: x\r\nAPI-KEY: %s\r\n\r\n" % SECRET.encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_a_stream_that_fails_is_not_taken_for_whole(port: int, toy: Toy, caplog: pytest.LogCaptureFixture) -> None:
    toy.shelf.failure = RuntimeError("broken")
    reader, writer = await follow(port, "event-stream")
    toy.shelf.hold.set()
    assert await reader.read() == b""
    assert "a stream broke off" in caplog.messages
    writer.close()


async def test_a_stop_ends_event_streams_in_order_and_waits_for_all_others(server: uvicorn.Server, port: int, toy: Toy) -> None:
    events, first = await follow(port, "event-stream")
    await toy.shelf.entered.wait()
    lines, second = await follow(port, "plain")
    server.should_exit = True
    toy.app.drain()
    assert await events.read() == END
    toy.shelf.hold.set()
    assert await lines.read() == SECOND + END
    first.close()
    second.close()


async def test_after_a_stop_no_event_stream_begins(port: int, toy: Toy) -> None:
    toy.app.drain()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /api/thing/followed/event-stream HTTP/1.1\r\nHost: x\r\nAPI-KEY: %s\r\n\r\n" % SECRET.encode())
    await reader.readuntil(END)
    writer.close()
