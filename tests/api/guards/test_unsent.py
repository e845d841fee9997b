"""Large responses whose clients do not read: bounded in bytes over the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest
from fastapi import APIRouter
from prometheus_client import CollectorRegistry

from api.guards.application import CLOSE
from api.guards.connection import GuardedConnection
from api.guards.limits import ConnectionLimits
from api.guards.unsent import PIECE, NoRoom, UnsentBodies
from api.http.response import Response
from api.http.routing import OPEN
from api.kernel.app import build
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from domain.kernel.encryption import KeyedHash
from projections.kernel.sizes import MIB
from tests.api.guards.test_connections import Listening
from tests.api.http.toy import Toy, authenticate

LARGE = 20 * PIECE


class Client:
    """A connection that takes pieces one by one, or not at all after it was closed."""

    def __init__(self) -> None:
        self.got = b""
        self.closed = False
        self._allowed = 0
        self._news = asyncio.Event()
        self.scope: dict[str, Any] = {"extensions": {CLOSE: self.close}}

    def take(self, pieces: int = 1) -> None:
        self._allowed += pieces
        self._news.set()

    def close(self) -> None:
        self.closed = True
        self._news.set()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        while not (self.closed or self._allowed):
            self._news.clear()
            await self._news.wait()
        if not self.closed:
            self._allowed -= 1
            self.got += message["body"]


class Sending:
    """Bodies under a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.bodies = UnsentBodies(2 * LARGE, stalled=1.0, clock=lambda: self.now)
        self.tasks: list[asyncio.Task[None]] = []

    async def begin(self, size: int = LARGE) -> Client:
        client = Client()
        payload = bytes(size)
        body = self.bodies.admit(payload, client.scope)
        self.tasks.append(asyncio.create_task(self.bodies.send(body, payload, client.send)))
        await self.settle()
        return client

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def sending() -> AsyncIterator[Sending]:
    made = Sending()
    yield made
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)


async def test_a_body_is_handed_over_in_pieces_as_they_are_taken(sending: Sending) -> None:
    client = await sending.begin(2 * PIECE + 1)
    assert client.got == b""
    for size in (PIECE, 2 * PIECE, 2 * PIECE + 1):
        client.take()
        await sending.settle()
        assert len(client.got) == size
    assert sending.tasks[0].done()


async def test_the_connection_idle_for_the_longest_time_is_closed_first(sending: Sending) -> None:
    first, second = await sending.begin(), await sending.begin()
    sending.now = 2.0
    first.take()
    await sending.settle()
    third = await sending.begin()
    assert (first.closed, second.closed, third.closed) == (False, True, False)
    await sending.settle()
    assert sending.tasks[1].done()


async def test_a_body_for_which_there_is_no_room_is_refused_and_those_that_ended_leave_theirs(sending: Sending) -> None:
    clients = [await sending.begin(), await sending.begin()]
    with pytest.raises(NoRoom):
        await sending.begin()
    clients[0].take(20)
    while not sending.tasks[0].done():
        await sending.settle()
    await sending.begin()
    sending.tasks[1].cancel()
    await sending.settle()
    await sending.begin()
    with pytest.raises(NoRoom):
        await sending.begin()


async def test_a_body_larger_than_all_may_be_is_sent_when_there_is_no_other(sending: Sending) -> None:
    await sending.begin(3 * LARGE)
    with pytest.raises(NoRoom):
        await sending.begin()


async def large(request: Request) -> Response:
    return Response(bytes(32 * MIB))


@pytest.fixture
async def server(toy: Toy) -> AsyncIterator[Listening]:
    """A server whose `/large` answers with 32 MiB."""
    routes = APIRouter(prefix="/api", tags=["Large"], route_class=MediaRoute)
    routes.get("/large", dependencies=[OPEN])(large)
    toy.app = build(
        [routes],
        {},
        authenticate=authenticate,
        idempotency=toy.idempotency,
        fingerprint=KeyedHash(bytes(32)),
        registry=CollectorRegistry(),
        request_log=toy.log,
    )
    listening = Listening(toy, ConnectionLimits(connections=200, per_address=200, unsent=1_000_000))
    running = asyncio.create_task(listening.serve())
    await listening.ready.wait()
    yield listening
    listening.should_exit = listening.force_exit = True
    await running


async def test_a_hundred_clients_that_do_not_read_hold_no_more_than_allowed(server: Listening) -> None:
    """Without the limit each response stayed in memory for 30 seconds: 3 GB for a hundred requests."""
    clients = [await server.connect(buffer=4096) for _ in range(100)]
    for _, writer in clients:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /api/large HTTP/1.1\r\nHost: x\r\n\r\n")
    connections: list[GuardedConnection] = []

    def all_answered() -> bool:
        connections[:] = server.guards()
        return len(connections) == 100 and all(each._output.has_begun or each._idle_since for each in connections)

    await server.until(all_answered)
    assert sum(each.unsent for each in connections) < 100 * 4 * PIECE
    now = asyncio.get_running_loop().time()
    server.later(0)
    server.counted.drop_unsent(now + 2)
    assert sum(each.unsent for each in connections if not each.is_closing()) <= 1_000_000
    for _, writer in clients:
        writer.close()


async def test_a_slow_client_gets_all_of_a_large_response(server: Listening) -> None:
    reader, writer = await server.connect(buffer=4096)
    writer.write(b"GET /api/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    for number in range(4):
        await reader.readexactly(8 * MIB)  # more than the system's buffers hold
        server.later(20 * number)
    await reader.read()
    assert server.refused() == {}
    writer.close()
