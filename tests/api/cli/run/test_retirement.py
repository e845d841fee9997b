"""A process with a successor loses no request that arrives on a connection which a proxy still keeps open."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.cli.run.serving import Server, server_config
from api.guards.limits import ConnectionLimits, Connections

_REQUEST = b"POST /thing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"


class Answering:
    """Answers `ok`, after waiting while `gate` is not set."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        await self.gate.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


class Caller:
    """A connection that is kept open, as by a proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def head(self) -> str:
        """Return the head of the next response, and read its body too."""
        async with asyncio.timeout(60):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            assert await self.reader.readexactly(2) == b"ok"
        return head

    async def call(self) -> str:
        self.writer.write(_REQUEST)
        return await self.head()

    async def is_closed(self) -> bool:
        async with asyncio.timeout(60):
            return await self.reader.read(1) == b""


@pytest.fixture
async def app() -> Answering:
    return Answering()


@pytest.fixture
async def server(app: Answering) -> AsyncIterator[Server]:
    limits = Connections(ConnectionLimits())
    made = Server(server_config(app, limits, seconds=1), listening=lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(made.serve(sockets=[listening]))
        while not made.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0)
        yield made
        made.should_exit = True
        await serving


async def caller(server: Server) -> Caller:
    connection = Caller(*await asyncio.open_connection(*server.servers[0].sockets[0].getsockname()))
    assert "connection: close" not in await connection.call()
    return connection


async def test_each_connection_gets_a_last_response_that_says_so(server: Server, app: Answering) -> None:
    idle, busy, unused = [await caller(server) for _ in range(3)]
    app.gate.clear()
    busy.writer.write(_REQUEST)
    while app.asked < 4:  # noqa: ASYNC110 - until its head was read
        await asyncio.sleep(0)
    retiring = asyncio.create_task(server.retire(600))
    while server.servers[0].is_serving():  # noqa: ASYNC110
        await asyncio.sleep(0)
    app.gate.set()
    for each, head in ((busy, await busy.head()), (idle, await idle.call())):
        assert "connection: close" in head
        assert await each.is_closed()
    assert not retiring.done(), "a proxy may still send a request on the third"
    unused.writer.close()
    async with asyncio.timeout(60):
        await retiring


async def test_an_idle_connection_delays_the_end_until_its_timeout(server: Server) -> None:
    unused = await caller(server)
    await server.retire(0)
    assert await unused.is_closed()
