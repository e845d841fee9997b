"""The built-in origin may be reached at its own address, and nothing else inside may, also through no connection that is open."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_network
from pathlib import Path

import pytest
from yarl import URL

from tests.workers.outbound.host import Host, Liar, says
from workers.adapters.outbound_guard import AddressGuard, GuardedResolver, NotPublic
from workers.adapters.outbound_http import GuardedClient
from workers.ports.outbound import OutboundRefused

REPLY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
LOOPBACK = [ip_network("127.0.0.0/8")]
Client = Callable[[str], GuardedClient]


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    """Where the origin is, and all else that listens at its port."""
    async with Host(says(REPLY)) as host:
        yield host


async def test_what_is_below_its_prefix_is_reached(host: Host) -> None:
    client = GuardedClient(origin=host.url)
    for path in ("/origin/live/news/master.m3u8", "/origin/live/news/Streams(video)"):
        assert (await client.request("GET", f"{host.url}{path}")).body == b"ok"
    await client.close()
    assert [head.split()[1] for head in host.heads] == ["/origin/live/news/master.m3u8", "/origin/live/news/Streams(video)"]


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/api/event/", "/origin", "/origin/", "/originx/live", "/Origin/live/news", "//origin/live/news"),
        *(
            "/origin/../api/event/",
            "/origin/%2e%2e/api/event/",
            "/origin/live/..%2f..%2fapi",
            "/origin/live/%2e./.%2e/api",
            "/origin/..;/api",
        ),
        *("/origin\\..\\api", "/origin/live/news%00/x", "/origin/live/a b", "/x/origin/live/news"),
    ],
)
async def test_no_other_path_is(host: Host, path: str) -> None:
    client = GuardedClient(origin=host.url)
    with pytest.raises(OutboundRefused):
        await client.request("GET", f"{host.url}{path}")
    await client.close()
    assert host.heads == []


async def test_an_open_connection_serves_no_other_path(host: Host) -> None:
    """The connection was opened for the origin, and is kept."""
    client = GuardedClient(origin=host.url)
    await client.request("GET", f"{host.url}/origin/live/news/state")
    with pytest.raises(OutboundRefused):
        await client.request("GET", f"{host.url}/api/event/")
    await client.close()
    assert len(host.heads) == 1


async def test_no_other_port_and_no_other_address_is(host: Host) -> None:
    async with Host(says(REPLY)) as other:
        client = GuardedClient(origin=host.url)
        port = URL(host.url).port
        for origin in (other.url, f"http://127.0.0.2:{port}", f"http://[::1]:{port}", f"https://127.0.0.1:{port}"):
            with pytest.raises(OutboundRefused):
                await client.request("GET", f"{origin}/origin/live/news/state")
        await client.close()
        assert (host.heads, other.heads) == ([], [])


async def test_names_that_lead_there_are_not(host: Host) -> None:
    """The names are tried with the port of the origin and with another."""
    client = GuardedClient(origin=host.url)
    async with Host(says(REPLY)) as other:
        for port in (URL(host.url).port, URL(other.url).port):
            with pytest.raises(OutboundRefused):
                await client.request("GET", f"http://localhost:{port}/origin/live/news/state")
        assert (host.heads, other.heads) == ([], [])
    await client.close()


@pytest.mark.parametrize("place", ["/api/event/", "http://127.0.0.1:{other}/origin/live/news", "http://localhost:{port}/api/"])
async def test_its_redirects_lead_nowhere_else_inside(tmp_path: Path, place: str) -> None:
    async with Host(says(REPLY)) as other:
        answers: list[bytes] = []

        async with Host(lambda *given: says(answers[0])(*given)) as host:
            to = place.format(other=URL(other.url).port, port=URL(host.url).port)
            answers.append(f"HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n".encode())
            client = GuardedClient(origin=host.url)
            with pytest.raises(OutboundRefused):
                await client.download(f"{host.url}/origin/live/news/master.m3u8", tmp_path / "x")
            await client.close()
            assert len(host.heads) == 1
        assert other.heads == []


async def test_an_origin_with_a_name_is_where_the_name_leads(host: Host) -> None:
    """The operator has chosen it. At another port the same name is a name like others."""
    port = URL(host.url).port
    client = GuardedClient(origin=f"http://localhost:{port}")
    assert (await client.request("GET", f"http://localhost:{port}/origin/live/news/state")).status == 200
    async with Host(says(REPLY)) as other:
        with pytest.raises(OutboundRefused):
            await client.request("GET", f"http://localhost:{URL(other.url).port}/origin/live/news/state")
    await client.close()


def test_sockets_are_made_for_its_address_and_port_only() -> None:
    guard = AddressGuard(origin="http://127.0.0.1:8080").towards(URL("http://127.0.0.1:8080/origin/live/news/state"))
    stream = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    guard.socket((*stream, ("127.0.0.1", 8080))).close()
    for place in (("127.0.0.1", 8081), ("127.0.0.2", 8080), ("10.0.0.1", 8080)):
        with pytest.raises(NotPublic):
            guard.socket((*stream, place))


async def test_a_resolver_that_lies_does_not_lead_elsewhere(host: Host) -> None:
    """An origin with an address is not resolved."""
    client = GuardedClient(origin=host.url, resolver=Liar("10.0.0.1"))
    assert (await client.request("GET", f"{host.url}/origin/live/news/state")).status == 200
    await client.close()
    assert await GuardedResolver(AddressGuard()).addresses("localhost", 1, family=socket.AF_UNSPEC)


def bearers(host: Host) -> list[str | None]:
    """The credential of each request, in order."""
    lines = [dict(line.partition(": ")[::2] for line in head.lower().split("\r\n")[1:] if line) for head in host.heads]
    return [fields.get("authorization") for fields in lines]


async def test_the_token_of_a_point_is_sent_to_that_point_and_with_reads_alone(host: Host, tmp_path: Path) -> None:
    client = GuardedClient(LOOPBACK, origin=host.url, read_token=lambda point: f"t-{point}")
    await client.request("GET", f"{host.url}/origin/live/news/state")
    await client.request("GET", f"{host.url}/origin/live/news")
    await client.download(f"{host.url}/origin/live/rehearsal/1/v0/0.m4s", tmp_path / "x")
    assert b"".join([piece async for piece in client.stream(f"{host.url}/origin/live/news/master.m3u8")]) == b"ok"
    assert bearers(host) == ["bearer t-news", "bearer t-news", "bearer t-rehearsal", "bearer t-news"]
    host.heads.clear()
    await client.request("GET", f"{host.url}/origin/live/news/state", headers={"Authorization": "Bearer own"})
    await client.request("POST", f"{host.url}/origin/live/news/state")
    for path in ("/origin/live/", "/api/origin/live/news/state", "/origin/other/news"):
        await client.request("GET", f"{host.url}{path}")
    assert bearers(host) == ["bearer own", None, None, None, None]
    await client.close()


async def test_the_token_of_a_point_goes_to_no_other_address(host: Host, tmp_path: Path) -> None:
    """The token is not sent along a redirect of the origin either."""
    async with Host(says(REPLY)) as other:
        away = f"HTTP/1.1 302 Found\r\nlocation: {other.url}/origin/live/news/x\r\ncontent-length: 0\r\n\r\n".encode()
        async with Host(says(away)) as own:
            client = GuardedClient(LOOPBACK, origin=own.url, read_token=lambda point: f"t-{point}")
            await client.download(f"{own.url}/origin/live/news/master.m3u8", tmp_path / "x")
            assert [piece async for piece in client.stream(f"{own.url}/origin/live/news/master.m3u8")] == [b"ok"]
            await client.request("GET", f"{other.url}/origin/live/news/x")
            assert bearers(own) == ["bearer t-news"] * 2
            assert bearers(other) == [None] * 3
            await client.close()
