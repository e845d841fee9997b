"""Limits of connections, on sockets: what a client without a key can make the server hold."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import uvicorn

from api.guards.connection import GuardedConfig, GuardedConnection
from api.guards.hosts import Hosts
from api.guards.limits import ConnectionLimits, Connections
from api.guards.proxies import Proxies
from tests.api.http.toy import ID, SECRET, Toy

KEY = f"API-KEY: {SECRET}\r\n".encode()
GET = b"GET /api/thing/%s HTTP/1.1\r\nHost: x\r\n%s" % (ID.encode(), KEY)
LIMITS = ConnectionLimits(connections=20, per_address=10)
Server = Callable[[ConnectionLimits], Awaitable["Listening"]]


class Listening(uvicorn.Server):
    def __init__(self, toy: Toy, limits: ConnectionLimits, *, proxies: Proxies | None = None) -> None:
        self.counted = Connections(limits, proxies=proxies)
        super().__init__(GuardedConfig(toy.app, self.counted, port=0, lifespan="off", log_level="critical", access_log=False))
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def connect(self, buffer: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        sock = socket.socket()
        if buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, self.servers[0].sockets[0].getsockname())
        return await asyncio.open_connection(sock=sock, limit=2**20)

    def later(self, seconds: float) -> None:
        """Let the server handle its connections as if this time had passed."""
        now = asyncio.get_running_loop().time() + seconds
        for connection in self.guards():
            connection.check(now)

    def guards(self) -> list[GuardedConnection]:
        return [connection for part in self.counted.parts for connection in part]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    def refused(self) -> dict[str, float]:
        samples = [sample for family in self.counted.collect() for sample in family.samples]
        return {each.labels["status"]: each.value for each in samples if each.name.endswith("refused_total")}


@pytest.fixture
async def server(toy: Toy) -> AsyncIterator[Listening]:
    listening = Listening(toy, LIMITS)
    running = asyncio.create_task(listening.serve())
    await listening.ready.wait()
    yield listening
    listening.should_exit = listening.force_exit = True
    await running


async def test_connections_that_were_opened_at_once_are_closed_one_after_the_other(server: Listening) -> None:
    """Each within a second, and gone from what is looked at when it is closed."""
    opened = [await server.connect() for _ in range(10)]
    await server.until(lambda: server.counted.open == 10)
    assert [len(part) for part in server.counted.parts] == [1] * 10
    now, remaining = asyncio.get_running_loop().time() + LIMITS.head_seconds + 1, list[int]()
    for turn in range(10):
        server.counted.look(turn, now)
        remaining.append(sum(not connection.is_closing() for connection in server.guards()))
    assert remaining == sorted(remaining, reverse=True)
    assert remaining[-1] == 0
    await server.until(lambda: not server.counted.open)
    for _, writer in opened:
        writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, object]]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
    body = await reader.readexactly(length)
    return int(head.split(b" ")[1]), json.loads(body) if b"problem+json" in head else {}


@pytest.mark.parametrize(
    ("more", "body", "status"),
    [
        (b"", b"", 200),
        (b"Content-Length: 3\r\n", b"abc", 200),
        (b"Content-Length: 0\r\n", b"", 200),
        (b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n0\r\n\r\n", 200),
        (b"Upgrade: h2c\r\nConnection: Upgrade\r\n", b"", 200),
        (b"X-Host: y\r\n", b"", 200),
        (b"Host: y\r\n", b"", 400),
        (b"HOST:\ty\r\n", b"", 400),
        (b"Content-Length: 3\r\nContent-Length: 4\r\n", b"abc", 400),
        (b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n", 400),
        (b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 3\r\n", b"abc", 400),
        (b"a: b\r\n" * 100, b"", 431),
        (b"a: " + b"b" * 70_000 + b"\r\n", b"", 431),
    ],
)
async def test_a_request_gets_the_same_answer_in_one_piece_and_in_several(
    server: Listening, more: bytes, body: bytes, status: int
) -> None:
    """A request that arrives whole is not parsed by the guard."""
    sent = GET + more + b"\r\n" + body
    for pieces in ((sent,), (sent[:9], sent[9:]), (sent[:-1], sent[-1:])):
        reader, writer = await server.connect()
        await server.until(lambda: server.counted.open == 1)
        (guard,) = server.guards()
        for piece in pieces:
            guard.data_received(piece)
        assert (await _answer(reader))[0] == status, pieces
        writer.close()
        await server.until(lambda: not server.counted.open)


@pytest.mark.parametrize(("host", "status"), [(b"x", 200), (b"[::1]:80", 200), (b"x y", 400), (b"", 400), (b"x:99999", 400)])
async def test_the_host_is_checked_in_one_piece_and_in_several(server: Listening, host: bytes, status: int) -> None:
    sent = GET.replace(b"Host: x", b"Host: " + host) + b"\r\n"
    for pieces in ((sent,), (sent[:9], sent[9:])):
        reader, writer = await server.connect()
        await server.until(lambda: server.counted.open == 1)
        for piece in pieces:
            server.guards()[0].data_received(piece)
        assert (await _answer(reader))[0] == status
        writer.close()
        await server.until(lambda: not server.counted.open)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET /" + b"x" * 3_000_000, 414),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 2_000_000, 431),
        (b"GET / HTTP/1.1\r\na: " + b"b" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\na: " + b"b" * 5_000_000, 431),
        (b"GET / HTTP/1.1\r\n" + b"b" * 5_000_000, 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n", 400),
        (b"CONNECT x:22 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ],
    ids=["url", "endless url", "headers", "endless headers", "value", "endless value", "endless name", "tls", "folded", "connect"],
)
async def test_a_head_that_is_no_head_or_too_large_is_refused(server: Listening, sent: bytes, status: int) -> None:
    reader, writer = await server.connect()
    writer.write(sent)
    got, problem = await _answer(reader)
    assert (got, problem["status"]) == (status, status)
    assert await reader.read() == b""
    assert server.refused() == {str(status): 1}
    writer.close()


async def test_one_response_has_other_words_in_its_status_line(server: Listening) -> None:
    """Requests after it on the same connection, sent at once with it, have their own."""
    reader, writer = await server.connect()
    check = b"GET /api/thing/check HTTP/1.1\r\nHost: x\r\n%s\r\n" % KEY
    wrong = b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\nContent-Type: text/css\r\nContent-Length: 1\r\n%s\r\nx" % KEY
    writer.write(check + wrong + check)
    for words in (b"Other Words", b"Unsupported Media Type", b"Other Words"):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.partition(b"\r\n")[0] == b"HTTP/1.1 415 " + words
        [length] = [int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
        body = await reader.readexactly(length)
        assert (body == b'{"found":true}') == (words == b"Other Words")
    writer.close()


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0"])
async def test_an_offer_of_another_protocol_is_not_taken_up(server: Listening, protocol: str) -> None:
    """Some clients make it with every request, such as Java's that of HTTP/2."""
    offer = f"Connection: Upgrade\r\nUpgrade: {protocol}\r\n".encode()
    reader, writer = await server.connect()
    writer.write((GET + offer + b"\r\n") * 2 + GET + b"\r\n")
    assert [(await _answer(reader))[0] for _ in range(3)] == [200, 200, 200]
    assert server.refused() == {}
    writer.close()


@pytest.mark.parametrize("framing", ["Content-Length: %d", "Transfer-Encoding: chunked"])
async def test_a_body_after_an_offer_of_another_protocol_is_not_a_request(server: Listening, framing: str) -> None:
    inner = b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\n%sContent-Length: 13\r\n\r\n%s" % (KEY, b'{"title":"x"}')
    head = f"Connection: Upgrade\r\nUpgrade: h2c\r\n{framing.replace('%d', str(len(inner)))}\r\n\r\n".encode()
    reader, writer = await server.connect()
    writer.write(b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\n" + KEY + head + inner)
    assert (await _answer(reader))[0] == 400
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("framing", ["Content-Length: 600012", "Transfer-Encoding: chunked"])
async def test_a_large_body_may_come_along_with_its_head(server: Listening, framing: str) -> None:
    """As a proxy sends it, which has read all of it before."""
    body = b'{"title":"' + b"x" * 600_000 + b'"}'
    sent = body if "Length" in framing else b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    reader, writer = await server.connect()
    for _ in range(2):
        writer.write(b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\n%s%s\r\n\r\n" % (KEY, framing.encode()) + sent)
        assert (await _answer(reader))[0] == 201
    writer.close()


async def test_a_trailer_is_not_a_header(server: Listening) -> None:
    reader, writer = await server.connect()
    writer.write(b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n%s\r\n" % KEY)
    assert (await _answer(reader))[0] == 401
    writer.write(GET + b"\r\n")
    assert (await _answer(reader))[0] == 200
    writer.close()


async def test_endless_trailers_are_refused(server: Listening) -> None:
    reader, writer = await server.connect()
    writer.write(b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" % KEY)
    writer.write(b"a: bcd\r\n" * 500_000)
    assert (await _answer(reader))[0] == 431
    assert await reader.read() == b""
    writer.close()


async def test_a_connection_that_says_nothing_is_closed_without_an_answer(server: Listening) -> None:
    reader, writer = await server.connect()
    await server.until(lambda: server.counted.open == 1)
    server.later(9)
    assert not reader.at_eof()
    server.later(11)
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("sent", [b"GET /api", b"GET / HTTP/1.1\r\nHost:", b"\r\n", GET + b"\r\nGET /"])
async def test_a_head_that_does_not_end_is_refused(server: Listening, sent: bytes) -> None:
    reader, writer = await server.connect()
    writer.write(sent)
    if sent.startswith(GET):
        assert (await _answer(reader))[0] == 200
    await server.until(lambda: any(each._head_bytes for each in server.guards()))
    server.later(11)
    assert (await _answer(reader))[0] == 408
    assert await reader.read() == b""
    writer.close()


async def test_empty_lines_do_not_keep_a_connection(server: Listening) -> None:
    reader, writer = await server.connect()
    writer.write(GET + b"\r\n")
    assert (await _answer(reader))[0] == 200
    writer.write(b"\r\n")
    await server.until(lambda: any(each._head_bytes for each in server.guards()))
    server.later(11)
    assert (await _answer(reader))[0] == 408
    writer.close()


@pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
async def test_a_body_that_does_not_come_is_refused(server: Listening, framing: bytes) -> None:
    reader, writer = await server.connect()
    writer.write(b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\n%s%s\r\n\r\n" % (KEY, framing))
    await server.until(lambda: bool(server.server_state.tasks))
    server.later(29)
    assert len(server.server_state.tasks) == 1
    server.later(31)
    assert (await _answer(reader))[0] == 408
    assert await reader.read() == b""
    await server.until(lambda: not server.server_state.tasks)
    writer.close()


async def test_a_body_that_drips_is_refused_after_the_time_for_all_of_it(server: Listening) -> None:
    reader, writer = await server.connect()
    writer.write(b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\n%sContent-Length: 100\r\n\r\n" % KEY)
    await server.until(lambda: bool(server.server_state.tasks))
    (connection,) = server.guards()
    for second in range(0, 301, 20):
        connection._data_at = asyncio.get_running_loop().time() + second  # a byte came
        server.later(second + 1)
        assert not connection.is_closing()
    connection._data_at += 2
    server.later(302)
    assert (await _answer(reader))[0] == 408
    writer.close()


async def test_a_body_that_arrives_together_with_its_head_does_not_count_as_head(server: Listening) -> None:
    body = b'{"title": "%s"}' % (b"x" * 200_000)
    post = b"POST /api/thing/ HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
        KEY,
        len(body),
    )
    reader, writer = await server.connect()
    await server.until(lambda: bool(server.counted.open))
    (connection,) = server.guards()
    connection.data_received(post + body + post + body[:-1])
    connection.data_received(body[-1:])
    assert [(await _answer(reader))[0] for _ in range(2)] == [201, 201]
    writer.close()


async def test_who_does_not_read_the_answers_is_cut_off_and_who_reads_slowly_is_not(server: Listening) -> None:
    _, writer = await server.connect(buffer=4096)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(GET + b"\r\n")
    await server.until(lambda: server.server_state.total_requests == 1)
    (connection,) = server.guards()
    connection._transport.write(bytes(16_000_000))  # more than the system's buffers hold
    server.later(0)
    server.later(29)
    assert not connection.is_closing()
    connection._unsent += LIMITS.taken  # it has taken so much since
    server.later(31)
    server.later(60)
    assert not connection.is_closing()
    server.later(62)
    assert connection.is_closing()
    assert server.refused() == {"unread": 1}
    await server.until(lambda: not server.counted.open)
    writer.close()


async def test_connections_over_the_limit_get_503_and_make_room_when_they_close(server: Listening) -> None:
    owned = [await server.connect() for _ in range(LIMITS.per_address)]
    await server.until(lambda: len(server.server_state.connections) == LIMITS.per_address)
    reader, writer = await server.connect()
    assert (await _answer(reader))[0] == 503
    writer.close()
    for _, each in owned:
        each.close()
    await server.until(lambda: not server.counted.open)
    reader, writer = await server.connect()
    writer.write(GET + b"\r\n")
    assert (await _answer(reader))[0] == 200
    writer.close()


async def test_a_connection_that_nobody_uses_is_kept_unless_many_are_open(server: Listening) -> None:
    async def asked() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await server.connect()
        await ask(reader, writer)
        return reader, writer

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(GET + b"\r\n")
        assert (await _answer(reader))[0] == 200

    assert server.config.timeout_keep_alive == 75
    first = await asked()
    server.later(70)
    await ask(*first)
    server.counted.limits = ConnectionLimits(connections=3)
    other = await asked()
    server.later(4)
    await ask(*first)
    await ask(*other)
    silent, _ = await server.connect()
    server.later(6)
    assert [await reader.read() for reader, _ in (first, other)] == [b"", b""]
    server.later(9)
    assert not silent.at_eof(), "it has time for its first head"
    assert server.refused() == {}


async def test_far_over_the_limit_connections_are_dropped(server: Listening) -> None:
    """A refused one holds a file until it is closed."""
    server.counted.limits = ConnectionLimits(connections=5)
    opened = [await server.connect() for _ in range(5 + 64 + 10)]
    await server.until(lambda: sum(server.refused().values()) == 64 + 10)
    assert server.refused()["dropped"] > 0
    for _, writer in opened:
        writer.close()


async def test_pipelined_requests_are_answered_in_order_before_an_error_closes(server: Listening) -> None:
    reader, writer = await server.connect()
    writer.write((GET + b"\r\n") * 3)
    for _ in range(3):
        assert (await _answer(reader))[0] == 200
    writer.write(b"NONSENSE\r\n\r\n")
    assert (await _answer(reader))[0] == 400
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"media.example", 200),
        (b"MEDIA.example.:8443", 200),
        (b"127.0.0.1:8080", 200),
        (b"[::1]:8080", 200),
        (b"localhost", 200),
        (b"attacker.example", 421),
        (b"media.example.attacker.example", 421),
        (b"media.example@attacker.example", 400),
        (b"[", 400),
        (b"]", 400),
        (b"[::1", 400),
        (b"[::g]", 400),
        (b"a]b", 400),
        (b"a:b", 400),
        (b"a:99999", 400),
        (b"", 400),
        (b"a/b", 400),
        (b"\xff", 400),
    ],
)
def test_a_host_is_answered_only_by_its_name(host: bytes, status: int) -> None:
    hosts = Hosts(frozenset({"media.example"}))
    assert (hosts.status(host), hosts.status(host)) == (status, status)


def test_every_well_formed_name_is_answered_where_none_is_set() -> None:
    assert [Hosts().status(host) for host in (b"attacker.example", b"a_b:1", b"[::1", b"a b")] == [200, 200, 400, 400]


@pytest.mark.parametrize(
    ("lines", "status"),
    [(b"Host: [\r\n", 400), (b"Host: x\r\nHost: x\r\n", 400), (b"", 400), (b"Host: other.example\r\n", 421)],
    ids=["no host", "two", "none", "foreign"],
)
async def test_a_wrong_host_is_refused_before_anything_else(server: Listening, lines: bytes, status: int) -> None:
    server.counted.hosts = Hosts(frozenset({"x"}))
    reader, writer = await server.connect()
    writer.write(b"GET /api/thing/%s HTTP/1.1\r\n%s%s\r\n" % (ID.encode(), lines, KEY))
    assert (await _answer(reader))[0] == status
    assert await reader.read() == b""
    writer.close()
    reader, writer = await server.connect()
    writer.write(GET + b"\r\n")
    assert (await _answer(reader))[0] == 200
    writer.close()
