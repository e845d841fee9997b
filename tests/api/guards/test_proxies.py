"""Whom a request is counted for when it comes through a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from api.guards.limits import ConnectionLimits
from api.guards.proxies import Proxies
from tests.api.guards.test_connections import GET, KEY, Listening, _answer
from tests.api.http.toy import Toy

PROXY = Proxies((ip_network("127.0.0.1"), ip_network("10.0.0.0/8")))
MOST = 2
SLOW = b"POST /api/thing/slow/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n" + KEY


def forwarded(*values: str) -> list[tuple[bytes, bytes]]:
    return [(b"x-forwarded-for", value.encode()) for value in values]


@pytest.mark.parametrize(
    ("values", "client"),
    [
        (["203.0.113.9"], "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
        (["198.51.100.1", "203.0.113.9"], "203.0.113.9"),
        (["203.0.113.9, 10.1.2.3"], "203.0.113.9"),
        (["203.0.113.9,10.1.2.3 , 127.0.0.1"], "203.0.113.9"),
        (["2001:DB8::0009"], "2001:db8::9"),
        (["10.1.2.3"], "127.0.0.1"),
        ([], "127.0.0.1"),
        ([""], "127.0.0.1"),
        (["203.0.113.9, unknown"], "127.0.0.1"),
        (["203.0.113.9, \xff"], "127.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_trusted_proxy(values: list[str], client: str) -> None:
    assert PROXY.client("127.0.0.1", forwarded(*values)) == client


def test_nobody_is_trusted_unless_told() -> None:
    assert not Proxies().trusted("127.0.0.1")
    assert [PROXY.trusted(address) for address in ("10.9.9.9", "11.0.0.1", "::1", "", "x")] == [True, False, False, False, False]


@pytest.fixture
async def server(toy: Toy, request: pytest.FixtureRequest) -> AsyncIterator[Listening]:
    """Behind a proxy on this machine, unless the parameter says that it is not trusted."""
    limits = ConnectionLimits(connections=20, per_address=MOST)
    listening = Listening(toy, limits, proxies=None if getattr(request, "param", "") == "untrusted" else PROXY)
    running = asyncio.create_task(listening.serve())
    await listening.ready.wait()
    yield listening
    toy.shelf.hold.set()
    listening.should_exit = listening.force_exit = True
    await running


async def ask(server: Listening, head: bytes, client: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await server.connect()
    writer.write(head + f"X-Forwarded-For: {client}\r\nX-Forwarded-Proto: https\r\n\r\n".encode())
    return reader, writer


async def test_requests_under_way_are_limited_for_each_client_of_a_proxy(server: Listening, toy: Toy) -> None:
    owned = [await ask(server, SLOW, "203.0.113.9") for _ in range(MOST)]
    await server.until(lambda: len(server.server_state.tasks) == MOST)
    reader, writer = await ask(server, GET, "203.0.113.9")
    assert (await _answer(reader))[0] == 503
    writer.close()
    for made_up in ("203.0.113.10", "198.51.100.1, 203.0.113.11"):
        reader, writer = await ask(server, GET, made_up)
        assert (await _answer(reader))[0] == 200
        writer.close()
    reader, writer = await ask(server, GET, "198.51.100.77, 203.0.113.9")
    assert (await _answer(reader))[0] == 503, "what a client says before its own address does not make it another"
    writer.close()
    toy.shelf.hold.set()
    for each, _ in owned:
        assert (await _answer(each))[0] == 200
    reader, writer = await ask(server, GET, "203.0.113.9")
    assert (await _answer(reader))[0] == 200, "although the connections of before are still open"
    for _, each_writer in (*owned, (reader, writer)):
        each_writer.close()


async def test_a_request_that_is_given_up_is_not_counted_any_more(server: Listening) -> None:
    for _ in range(3):
        owned = [await ask(server, SLOW, "203.0.113.9") for _ in range(MOST)]
        await server.until(lambda: len(server.server_state.connections) == MOST)
        for _, writer in owned:
            writer.close()
        await server.until(lambda: not server.server_state.connections)
    reader, writer = await ask(server, GET, "203.0.113.9")
    assert (await _answer(reader))[0] == 200
    writer.close()


async def test_a_proxy_has_more_connections_than_a_client_may_have(server: Listening) -> None:
    opened = [await server.connect() for _ in range(5 * MOST)]
    await server.until(lambda: len(server.server_state.connections) == 5 * MOST)
    for number, (reader, writer) in enumerate(opened):
        for _ in range(2):
            writer.write(GET + f"X-Forwarded-For: 203.0.113.{number}\r\n\r\n".encode())
            assert (await _answer(reader))[0] == 200
        writer.close()


async def test_links_have_the_scheme_that_the_proxy_was_called_with(server: Listening) -> None:
    reader, writer = await ask(server, GET, "203.0.113.9")
    await reader.readuntil(b"\r\n\r\n")
    assert b'"base":"https://x"' in await reader.readuntil(b"}")
    writer.close()


@pytest.mark.parametrize("server", ["untrusted"], indirect=True)
async def test_what_anybody_else_says_is_ignored(server: Listening) -> None:
    owned = [await server.connect() for _ in range(MOST - 1)]
    reader, writer = await ask(server, GET, "203.0.113.9")
    await reader.readuntil(b"\r\n\r\n")
    assert b'"base":"http://x"' in await reader.readuntil(b"}")
    refused, another = await ask(server, GET, "203.0.113.10")
    assert (await _answer(refused))[0] == 503
    for each in (writer, another, *(made for _, made in owned)):
        each.close()
