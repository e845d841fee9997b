"""Readers of large files on sockets: those of one address keep out nobody of another one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from fastapi import APIRouter
from prometheus_client import CollectorRegistry

from api.guards.limits import ConnectionLimits
from api.guards.proxies import Proxies
from api.http.app import build
from api.http.request import Request
from api.http.response import Response
from api.http.routing import OPEN
from api.kernel.authentication import Authorizer
from api.kernel.errors import failure_of
from api.kernel.surfaces import OPERATIONS
from api.published.file_response import file_response
from api.published.readers import Readers
from api.published.surface import PublishedMediaRoute
from tests.api.guards.test_connections import Listening
from tests.api.http.conftest import toy as toy
from tests.api.http.toy import Toy
from workers.adapters.media_directory import MediaDirectory
from workers.kernel.fair_places import FairPlaces

MOST = 64  # as many as a busy machine connects before the first of them are given up for taking nothing
SIZE = 32 * 1024 * 1024
ASK = b"GET /media/film HTTP/1.1\r\nHost: x\r\n%s\r\n"


class Hall(Listening):
    """`/media/film` is a file that no buffer of the system holds."""

    def __init__(self, toy: Toy, root: Path) -> None:
        self.readers = Readers(FairPlaces(MOST))
        source = MediaDirectory(root)
        routes = APIRouter(prefix="/media", tags=["Media"], route_class=PublishedMediaRoute)

        @routes.get("/film", dependencies=[OPEN])
        async def film(request: Request) -> Response:
            opened = await self.readers.open(source, "film", request=request)
            assert opened is not None
            return file_response(request, opened, close=opened.close, caching="no-store")

        toy.app = build(
            [routes],
            {},
            authorize=Authorizer(toy_nobody),
            failure_of=failure_of,
            fallback=OPERATIONS,
            registry=CollectorRegistry(),
            request_log=toy.log,
            title="x",
            version="1",
        )
        proxy = Proxies((ip_network("127.0.0.3"),))
        super().__init__(toy, ConnectionLimits(connections=2 * MOST, per_address=2 * MOST), proxies=proxy)

    async def ask(self, address: str, *, forwarded: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A reader that takes nothing of the answer until it is read."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.bind((address, 0))
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, self.servers[0].sockets[0].getsockname())
        reader, writer = await asyncio.open_connection(sock=sock, limit=4096)
        writer.write(ASK % (b"X-Forwarded-For: %s\r\n" % forwarded.encode() if forwarded else b""))
        return reader, writer


async def toy_nobody(key: str) -> None:
    return None


@pytest.fixture
async def hall(toy: Toy, tmp_path: Path) -> AsyncIterator[Hall]:
    with (tmp_path / "film").open("wb") as film:
        film.truncate(SIZE)
    made = Hall(toy, tmp_path)
    running = asyncio.create_task(made.serve())
    await made.ready.wait()
    yield made
    made.should_exit = made.force_exit = True
    await running


@pytest.mark.parametrize(
    ("greedy", "viewer"),
    [
        (("127.0.0.1", ""), ("127.0.0.2", "")),
        (("127.0.0.3", "203.0.113.9"), ("127.0.0.3", "203.0.113.10")),
        (("127.0.0.3", "2001:db8::1"), ("127.0.0.3", "2001:db8:0:1::1")),
    ],
)
async def test_readers_of_one_address_that_take_nothing_keep_no_viewer_waiting(
    hall: Hall, greedy: tuple[str, str], viewer: tuple[str, str]
) -> None:
    """Such readers once held all places, and every other request was 503 until the server dropped them."""
    slow = [await hall.ask(greedy[0], forwarded=greedy[1]) for _ in range(MOST)]
    await hall.until(lambda: hall.readers.places.used == MOST)
    reader, writer = await hall.ask(viewer[0], forwarded=viewer[1])
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    assert len(await reader.readuntil(b"\r\n\r\n")) > 0
    assert len(await reader.readexactly(SIZE)) == SIZE
    assert hall.readers.places.given_up == 1
    for _, other in (*slow, (reader, writer)):
        other.close()
    await hall.until(lambda: hall.readers.places.used == 0)


async def test_addresses_of_one_network_of_ipv6_are_counted_together(hall: Hall) -> None:
    slow = [await hall.ask("127.0.0.3", forwarded=f"2001:db8::{number:x}") for number in range(1, 9)]
    await hall.until(lambda: hall.readers.places.used == 8)
    assert list(hall.readers.places._sizes) == ["2001:db8::/64"]
    for _, other in slow:
        other.close()
