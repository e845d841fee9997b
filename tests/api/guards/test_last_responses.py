"""The last response of each connection of a process that another one replaces: its head announces the close."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from api.guards.connection import GuardedConfig
from api.guards.limits import Connections

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b"whole"


class Stages:
    """Answers each request with `BODY`, and waits at the stage `held` of a response until `gate` is set."""

    def __init__(self, held: str) -> None:
        self.held, self.gate, self.reached = held, asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._stage("request")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(BODY))]})
        await self._stage("head")
        await send({"type": "http.response.body", "body": BODY})
        await self._stage("body")

    async def _stage(self, name: str) -> None:
        if name == self.held:
            self.reached.set()
            await self.gate.wait()


@asynccontextmanager
async def serving(stages: Stages, connections: Connections) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Serve, with one client that is connected."""
    server = uvicorn.Server(GuardedConfig(stages, connections, interface="asgi3", lifespan="off", log_config=None))
    listening = socket.create_server(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        yield reader, writer
        writer.close()
    finally:
        stages.gate.set()
        server.should_exit = server.force_exit = True
        await task


async def answer(reader: asyncio.StreamReader) -> bool:
    """Read a response. Return True if its head announces that the connection is closed."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert await reader.readexactly(len(BODY)) == BODY
    return b"connection: close" in head.lower()


@pytest.mark.parametrize("held", ["head", "body"])
async def test_after_a_response_that_had_begun_one_more_request_is_answered(held: str) -> None:
    stages, connections = Stages(held), Connections()
    async with asyncio.timeout(30), serving(stages, connections) as (reader, writer):
        writer.write(REQUEST)
        await stages.reached.wait()
        connections.answer_last()
        stages.gate.set()
        assert not await answer(reader)
        writer.write(REQUEST)
        assert await answer(reader)
        assert await reader.read() == b""


async def test_a_response_that_had_not_begun_is_the_last() -> None:
    stages, connections = Stages("request"), Connections()
    async with asyncio.timeout(30), serving(stages, connections) as (reader, writer):
        writer.write(REQUEST)
        await stages.reached.wait()
        connections.answer_last()
        stages.gate.set()
        assert await answer(reader)
        assert await reader.read() == b""
