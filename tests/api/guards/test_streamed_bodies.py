"""Requests whose bodies are read as they arrive, from clients that disconnect at the end of the body, as encoders do."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from api.guards.application import LONG_BODY
from api.guards.connection import GuardedConfig
from api.guards.limits import Connections

HEAD = "PUT /%s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
END = "0\r\n\r\n"


def upload(name: str, body: str = "abc") -> bytes:
    return (HEAD % name + f"{len(body):x}\r\n{body}\r\n").encode()


class Uploads:
    """Reads bodies after `gate` is set. A GET waits until its client disconnects."""

    def __init__(self) -> None:
        self.asks_late = False
        """True if it declares after `gate` that it reads the body as it arrives."""
        self.gate = asyncio.Event()
        self.begun: list[str] = []
        self.ended: dict[str, bytes | None] = {}
        """The bodies by path; None for a client that has disconnected."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path, body, more = scope["path"][1:], b"", True
        self.begun.append(path)
        if scope["method"] == "PUT" and not self.asks_late:
            scope["extensions"][LONG_BODY]()
        await self.gate.wait()
        if scope["method"] == "PUT":
            scope["extensions"][LONG_BODY]()
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.ended[path] = None
                return
            body += message["body"]
            more = message["more_body"] or scope["method"] == "GET"
        self.ended[path] = body
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Origin(uvicorn.Server):
    def __init__(self, uploads: Uploads) -> None:
        self.connections = Connections()
        super().__init__(GuardedConfig(uploads, self.connections, interface="asgi3", lifespan="off", log_config=None))
        self.uploads = uploads

    async def send_and_close(self, data: bytes, *, reset: bool) -> None:
        """Send data, and disconnect after the first request has begun."""
        client = socket.create_connection(self.servers[0].sockets[0].getsockname())
        client.sendall(data)
        await until(lambda: bool(self.uploads.begun))
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        await asyncio.sleep(0.05)
        self.uploads.gate.set()

    async def all_ended(self, count: int) -> dict[str, bytes | None]:
        await until(lambda: len(self.uploads.ended) == count)
        await until(lambda: not self.server_state.tasks and not self.server_state.connections and not self.connections.open)
        return self.uploads.ended


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    made = Origin(Uploads())
    listening = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(made.serve(sockets=[listening]))
    await until(lambda: made.started)
    yield made
    made.should_exit = made.force_exit = True
    await serving


@pytest.mark.parametrize("reset", [False, True])
async def test_a_complete_body_is_read_although_its_client_has_disconnected(origin: Origin, reset: bool) -> None:
    await origin.send_and_close(upload("one") + END.encode(), reset=reset)
    assert await origin.all_ended(1) == {"one": b"abc"}


@pytest.mark.parametrize("reset", [False, True])
async def test_it_is_read_although_the_endpoint_has_not_asked_for_it_before(origin: Origin, reset: bool) -> None:
    origin.uploads.asks_late = True
    await origin.send_and_close(upload("one") + END.encode(), reset=reset)
    assert await origin.all_ended(1) == {"one": b"abc"}


async def test_a_body_that_arrives_at_once_with_its_end_and_that_of_the_connection_is_read(origin: Origin) -> None:
    origin.uploads.gate.set()
    with socket.create_connection(origin.servers[0].sockets[0].getsockname()) as client:
        client.sendall(upload("one") + END.encode())
    assert await origin.all_ended(1) == {"one": b"abc"}


async def test_a_client_that_only_stops_sending_gets_its_response(origin: Origin) -> None:
    origin.uploads.gate.set()
    reader, writer = await asyncio.open_connection(*origin.servers[0].sockets[0].getsockname())
    writer.write(upload("one") + END.encode())
    writer.write_eof()
    assert (await reader.read()).startswith(b"HTTP/1.1 204 ")
    writer.close()
    assert await origin.all_ended(1) == {"one": b"abc"}


@pytest.mark.parametrize("reset", [False, True])
async def test_a_body_that_waits_behind_another_is_read_too(origin: Origin, reset: bool) -> None:
    await origin.send_and_close((upload("one") + END.encode()) + upload("two", "de") + END.encode(), reset=reset)
    assert await origin.all_ended(2) == {"one": b"abc", "two": b"de"}


@pytest.mark.parametrize("reset", [False, True])
async def test_an_incomplete_body_is_not_complete(origin: Origin, reset: bool) -> None:
    await origin.send_and_close(upload("one"), reset=reset)
    assert await origin.all_ended(1) == {"one": None}


@pytest.mark.parametrize("reset", [False, True])
async def test_an_incomplete_body_behind_a_complete_one_is_not_complete(origin: Origin, reset: bool) -> None:
    await origin.send_and_close(upload("one") + END.encode() + upload("two"), reset=reset)
    assert await origin.all_ended(2) == {"one": b"abc", "two": None}


@pytest.mark.parametrize("reset", [False, True])
async def test_a_stream_behind_a_complete_body_ends(origin: Origin, reset: bool) -> None:
    await origin.send_and_close(upload("one") + END.encode() + b"GET /two HTTP/1.1\r\nHost: x\r\n\r\n", reset=reset)
    assert await origin.all_ended(2) == {"one": b"abc", "two": None}


async def test_a_request_without_a_streamed_body_ends_with_its_client(origin: Origin) -> None:
    await origin.send_and_close(b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n", reset=False)
    assert await origin.all_ended(1) == {"one": None}
