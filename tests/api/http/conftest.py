from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import httpx
import pytest
import uvicorn

from tests.api.http.toy import Toy


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
async def http(toy: Toy) -> AsyncIterator[httpx.AsyncClient]:
    async with toy.client() as client:
        yield client


class _Announcing(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@pytest.fixture
async def server(toy: Toy) -> AsyncIterator[uvicorn.Server]:
    """A real one, which is asked to stop at the end and then waits for whatever is under way."""
    config = uvicorn.Config(toy.app, port=0, http="httptools", log_level="critical", access_log=False)
    server = _Announcing(config)
    running = asyncio.create_task(server.serve())
    await server.ready.wait()
    yield server
    server.should_exit = True
    await running


@pytest.fixture
def port(server: uvicorn.Server) -> int:
    return int(server.servers[0].sockets[0].getsockname()[1])
