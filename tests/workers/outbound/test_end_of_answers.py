"""An answer ends where its head says: what comes behind it changes no verdict, and answers no later request."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.workers.outbound.host import OK, Host, says
from tests.workers.webhook.sender.sending import LOOPBACK
from workers.adapters.outbound_answers import BoundedResponses
from workers.adapters.outbound_http import GuardedClient
from workers.ports.outbound import Notifying, OutboundFailed

SMUGGLED = b"HTTP/1.1 500 Smuggled\r\ncontent-length: 0\r\n\r\n"
BEHIND = {
    "204 in chunks": b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "204 with chunks": b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "204 with a body": b'HTTP/1.1 204 No Content\r\nContent-Length: 11\r\n\r\n{"ok":true}',
    "204 that only tells of a body": b"HTTP/1.1 204 No Content\r\nContent-Length: 11\r\n\r\n",
    "204 with a body that it does not tell of": b"HTTP/1.1 204 No Content\r\n\r\nok",
    "204 with another answer": b"HTTP/1.1 204 No Content\r\n\r\n" + SMUGGLED,
    "304 with a body": b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 2\r\n\r\nok',
    "200 with an empty line more": OK + b"\r\n",
    "200 with more than it tells": OK + b"k!",
    "200 with another answer": OK + SMUGGLED,
    "200 in chunks with more": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n\r\nmore",
    "200 in chunks with another answer": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + SMUGGLED,
    "200 after 103, with more": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK + b"\r\n",
    "200 with bare line feeds and more": b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok\n",
}


@pytest.fixture
async def client() -> AsyncIterator[Notifying]:
    opened = GuardedClient(LOOPBACK)
    yield opened
    await opened.close()


@pytest.mark.parametrize("name", BEHIND)
async def test_what_is_behind_an_answer_changes_nothing_and_closes_the_connection(client: Notifying, name: str) -> None:
    async with Host(says(BEHIND[name])) as host:
        for asked in range(3):
            reply = await client.request("POST", host.url, body=b"x")
            assert (reply.status, reply.body) == (int(name[:3]), b"ok" if name.startswith("200") else b"")
            assert host.connections == asked + 1, "a connection with spare bytes is not used again"


@pytest.mark.parametrize("body", [b"", b"ok", SMUGGLED])
async def test_an_answer_to_head_ends_with_its_head(client: Notifying, body: bytes) -> None:
    async with Host(says(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n" + body)) as host:
        for _ in range(2):
            assert (await client.request("HEAD", host.url)).status == 200
        assert host.connections == (2 if body else 1)


@pytest.mark.parametrize("length", [b"", b"content-length: 0\r\n"])
async def test_a_plain_204_keeps_its_connection(client: Notifying, length: bytes) -> None:
    async with Host(says(b"HTTP/1.1 204 No Content\r\n" + length + b"\r\n")) as host:
        for _ in range(3):
            assert (await client.request("POST", host.url, body=b"x")).status == 204
        assert host.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n",
    ],
    ids=["shorter than told", "without a last chunk", "broken chunks"],
)
async def test_a_body_that_breaks_off_is_a_failure_only_where_all_of_it_is_wanted(client: Notifying, answer: bytes) -> None:
    async with Host(says(answer, then_closes=True)) as host:
        with pytest.raises(OutboundFailed):
            await client.request("POST", host.url, body=b"x")
        reply = await client.request("POST", host.url, body=b"x", whole=False)
        assert reply.status == 200
        assert b"ok".startswith(reply.body)


async def test_a_body_that_does_not_come_leaves_the_status(client: Notifying) -> None:
    async with Host(says(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nok")) as host:
        with pytest.raises(OutboundFailed, match="No complete answer"):
            await client.request("POST", host.url, body=b"x", seconds=0.5)
        for _ in range(2):
            reply = await client.request("POST", host.url, body=b"x", seconds=0.5, whole=False)
            assert (reply.status, reply.body) == (200, b"ok")
        assert host.connections == 3


async def read(pieces: Sequence[bytes], *, head: bool = False) -> tuple[int, bool]:
    """The status of the response that comes in these pieces, and whether its connection may be used again."""
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    with theirs:
        transport, protocol = await loop.create_connection(lambda: BoundedResponses(loop=loop), sock=ours)
        protocol.set_response_params(skip_payload=head, read_until_eof=True)
        for piece in pieces:
            protocol.data_received(piece)
        message, _ = await protocol.read()
        while message.code == 100:
            message, _ = await protocol.read()
        reusable = protocol.is_connected() and not protocol.should_close
        transport.abort()
        return message.code, reusable


def cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Cut data into pieces of these sizes, over and over."""
    pieces, at, number = [], 0, 0
    while at < len(data):
        pieces.append(data[at : at + sizes[number % len(sizes)]])
        at, number = at + sizes[number % len(sizes)], number + 1
    return pieces


heads = st.sampled_from(
    [
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 11\r\nServer: x\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nA: b\r\n\r\n",
        b"HTTP/1.0 204 No Content\nA: b\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ]
)
behind = st.binary(max_size=60) | st.sampled_from([b"0\r\n\r\n", b'{"ok":true}', b"\r\n", SMUGGLED, b"HTTP/1.1 ", b"\r", b"\n"])


@given(head=heads, rest=behind, sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4))
@example(head=b"HTTP/1.1 204 No Content\r\n\r\n", rest=SMUGGLED, sizes=[1000])
@example(head=b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", rest=b"0\r\n\r\n", sizes=[1000])
def test_any_bytes_behind_a_head_without_a_body_leave_its_status(head: bytes, rest: bytes, sizes: Sequence[int]) -> None:
    status = int(head.rpartition(b"HTTP/1.")[2][2:5])
    code, reusable = asyncio.run(read(cut(head + rest, sizes)))
    assert code == status
    assert not (reusable and rest)


@given(rest=behind, sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_any_bytes_behind_an_answer_to_head_leave_its_status(rest: bytes, sizes: Sequence[int]) -> None:
    code, reusable = asyncio.run(read(cut(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" + rest, sizes), head=True))
    assert code == 200
    assert not (reusable and rest)
