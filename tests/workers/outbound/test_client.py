"""The client against hosts that behave badly: it ends in time, reads no more than it was told to, and tells no secret."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from asyncio import StreamWriter
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.clock import NOON
from tests.support.descriptors import descriptors_left
from tests.workers.outbound.host import OK, Answers, Host, Liar, Silence, hangs, says
from workers.adapters.outbound_guard import AddressGuard
from workers.adapters.outbound_http import GuardedClient
from workers.ports.outbound import Outbound, OutboundFailed, OutboundRefused

LOOPBACK = [ip_network("127.0.0.1/32")]
SECRET = "S3cret"


@pytest.fixture
async def client() -> AsyncIterator[Outbound]:
    made = GuardedClient(LOOPBACK)
    yield made
    await made.close()


async def failure(client: Outbound, url: str, *, seconds: float = 60) -> OutboundFailed:
    with pytest.raises(OutboundFailed) as failed:
        await client.request("POST", f"{url}/{SECRET}?token={SECRET}", body=b"x", headers={"x-key": SECRET}, seconds=seconds)
    error: OutboundFailed = failed.value
    assert SECRET not in f"{error} {error!r} {error.__cause__!r}"
    assert error.__suppress_context__, "a log with the trace would show what the libraries say of the URL"
    return error


# -- what is sent and what comes back ------------------------------------------------------------------------------------


async def test_a_request_and_its_reply(client: Outbound) -> None:
    async with Host(says(b"HTTP/1.1 202 Accepted\r\nRetry-After: 7\r\ncontent-length: 4\r\n\r\nfine")) as host:
        reply = await client.request("POST", f"{host.url}/in?a=b%20c", headers={"X-Signed": "yes"}, body=b'{"a":1}')
    assert (reply.status, reply.body, reply.address) == (202, b"fine", "127.0.0.1")
    assert reply.headers == {"retry-after": "7", "content-length": "4"}
    assert 0 < reply.seconds < 60
    assert host.heads[0].startswith("POST /in?a=b%20c HTTP/1.1\r\n")
    assert "\r\nX-Signed: yes\r\n" in host.heads[0]
    assert "\r\nUser-Agent: medialedger\r\n" in host.heads[0]
    assert "accept-encoding" not in host.heads[0].lower()
    assert host.bodies == [b'{"a":1}']


async def test_without_a_body_none_is_sent(client: Outbound) -> None:
    async with Host(says(b"HTTP/1.1 204 No Content\r\n\r\n")) as host:
        assert (await client.request("GET", host.url)).body == b""
        assert (await client.request("POST", host.url)).status == 204
    assert "content-length" not in host.heads[0].lower()
    assert host.bodies == [b"", b""]


async def test_a_connection_serves_many_requests(client: Outbound) -> None:
    async with Host(says(OK)) as host:
        for _ in range(5):
            assert (await client.request("POST", host.url, body=b"x")).address == "127.0.0.1"
    assert host.connections == 1


async def test_a_connection_that_was_closed_meanwhile_is_made_anew(client: Outbound) -> None:
    async with Host(says(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", then_closes=True)) as host:
        for _ in range(2):
            await client.request("POST", host.url, body=b"x")
    assert host.connections == 2


async def test_a_cookie_is_not_kept(client: Outbound) -> None:
    async with Host(says(b"HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n")) as host:
        for _ in range(2):
            await client.request("POST", host.url)
    assert "cookie" not in host.heads[1].lower()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_told_and_not_followed(client: Outbound, status: int) -> None:
    async with Silence() as silence:
        answer = f"HTTP/1.1 {status} Elsewhere\r\nlocation: http://127.0.0.1:{silence.port}/\r\ncontent-length: 0\r\n\r\n"
        async with Host(says(answer.encode())) as host:
            reply = await client.request("POST", host.url, body=b"x")
        assert (reply.status, reply.headers["location"]) == (status, f"http://127.0.0.1:{silence.port}/")
        assert await silence.arrivals() == 0


# -- bodies ---------------------------------------------------------------------------------------------------------------


async def test_a_long_body_is_cut_and_its_connection_closed(client: Outbound) -> None:
    async with Host(says(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"a" * 100_000)) as host:
        for _ in range(2):
            assert (await client.request("POST", host.url, body=b"x", most=100)).body == b"a" * 100
    assert host.connections == 2


async def test_a_body_without_end_is_cut(client: Outbound) -> None:
    async def pours(out: StreamWriter) -> None:
        out.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            out.write(b"1000\r\n" + b"a" * 0x1000 + b"\r\n")
            await out.drain()

    async with Host(pours) as host:
        assert (await client.request("POST", host.url)).body == b"a" * 16_384


async def test_a_body_in_pieces_is_put_together(client: Outbound) -> None:
    async def chunks(out: StreamWriter) -> None:
        out.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in (b"one", b"two", b"six"):
            out.write(b"3\r\n" + piece + b"\r\n")
            await out.drain()
        out.write(b"0\r\n\r\n")

    async with Host(chunks) as host:
        assert (await client.request("POST", host.url)).body == b"onetwosix"
        assert (await client.request("POST", host.url, most=4)).body == b"onet"


async def test_what_is_packed_is_not_unpacked(client: Outbound) -> None:
    packed = gzip.compress(bytes(10_000_000))
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(packed)}\r\n\r\n"
    async with Host(says(head.encode() + packed)) as host:
        assert (await client.request("GET", host.url, most=50)).body == packed[:50]


# -- time -----------------------------------------------------------------------------------------------------------------


async def test_a_host_that_hangs_is_left(client: Outbound) -> None:
    async with Host(hangs) as host:
        error = await failure(client, host.url, seconds=0.2)
    assert (error.kind, str(error)) == ("timeout", "No complete answer within 0.2 s.")


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["of headers", "of the body"])
async def test_a_drip_of_bytes_does_not_prolong_the_time(client: Outbound, head: bytes) -> None:
    dripped = 0

    async def drips(out: StreamWriter) -> None:
        nonlocal dripped
        out.write(head)
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 0.01)
            out.write(b"a")
            await out.drain()
            dripped += 1

    async with Host(drips) as host:
        assert (await failure(client, host.url, seconds=0.6)).kind == "timeout"
    assert dripped > 2


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"0" * 8192),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1", b";a=b" * 2048),
    ],
    ids=["informational responses", "the size of a chunk", "extensions of a chunk"],
)
async def test_a_response_with_no_end_of_framing_is_a_failure_before_its_time_is_over(
    client: Outbound, start: bytes, piece: bytes
) -> None:
    async def goes_on(out: StreamWriter) -> None:
        out.write(start)
        while True:
            out.write(piece)
            await out.drain()

    async with Host(goes_on) as host:
        assert (await failure(client, host.url)).kind == "protocol"


async def test_informational_responses_precede_a_response(client: Outbound) -> None:
    async with Host(says(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 5 + OK)) as host:
        for _ in range(3):
            assert (await client.request("POST", host.url, body=b"x")).status == 200
    assert host.connections == 1


async def test_a_body_in_chunks_of_one_byte(client: Outbound) -> None:
    chunks = b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n"
    async with Host(says(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunks)) as host:
        assert (await client.request("POST", host.url, body=b"x", most=200_000)).body == b"x" * 100_000


async def test_after_a_timeout_the_connection_is_not_used_again(client: Outbound) -> None:
    async with Host(hangs) as host:
        await failure(client, host.url, seconds=0.1)
        host.script = says(OK)
        assert (await client.request("POST", host.url, body=b"x")).status == 200
    assert host.connections == 2


# -- failures -------------------------------------------------------------------------------------------------------------


async def test_nobody_listens(client: Outbound) -> None:
    async with Host(says(OK)) as host:
        pass
    error = await failure(client, host.url)
    assert (error.kind, str(error)) == ("connect", "The host cannot be reached: Connection refused.")


async def test_a_name_is_not_known() -> None:
    client = GuardedClient(resolver=Answers(AddressGuard(), []))
    assert (await failure(client, "http://nowhere.example")).kind == "dns"
    await client.close()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfive5"])
async def test_the_host_closes_before_the_end(client: Outbound, answer: bytes) -> None:
    async with Host(says(answer, then_closes=True)) as host:
        assert (await failure(client, host.url)).kind == "closed"


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 50_000 + b"\r\n"]
)
async def test_the_host_does_not_speak_http(client: Outbound, answer: bytes) -> None:
    async with Host(says(answer)) as host:
        assert (await failure(client, host.url)).kind == "protocol"


async def test_broken_chunks_are_a_failure(client: Outbound) -> None:
    async with Host(says(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")) as host:
        assert (await failure(client, host.url)).kind in ("closed", "protocol")


async def test_plain_bytes_where_tls_is_expected(client: Outbound) -> None:
    async with Host(says(OK)) as host:
        host.script = says(OK, then_closes=True)
        assert (await failure(client, host.url.replace("http:", "https:"), seconds=1)).kind in ("tls", "connect", "timeout")


async def test_a_certificate_that_nobody_vouches_for(client: Outbound, tmp_path: Path) -> None:
    async with Host(says(OK), tls=certified(tmp_path)) as host:
        error = await failure(client, host.url)
    assert error.kind == "tls"
    assert str(error).startswith("The certificate of the host cannot be trusted: self")
    assert host.heads == []


def certified(place: Path) -> ssl.SSLContext:
    """A certificate for 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), NOON - timedelta(10_000), NOON)
    made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    file = place / "host.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


# -- refusals -------------------------------------------------------------------------------------------------------------

RESERVED = ["Host", "host", "CONTENT-LENGTH", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Expect", "Keep-Alive"]


@pytest.mark.parametrize("name", [*RESERVED, "", "a b", "a:b", "a\r\nb", "ä", "Host "])
async def test_a_header_that_is_not_the_callers_is_refused(client: Outbound, name: str) -> None:
    async with Silence() as silence:
        with pytest.raises(OutboundRefused) as refused:
            await client.request("POST", f"http://127.0.0.1:{silence.port}/", headers={name: SECRET})
        assert await silence.arrivals() == 0
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("value", ["a\r\nHost: b", "a\n b", "a\rb", "a\x00b", "\ud800"], ids=ascii)
async def test_a_header_with_a_line_break_is_refused(client: Outbound, value: str) -> None:
    async with Silence() as silence:
        with pytest.raises(OutboundRefused):
            await client.request("POST", f"http://127.0.0.1:{silence.port}/", headers={"x-own": value})
        assert await silence.arrivals() == 0


async def test_allow_opens_only_what_it_names(client: Outbound) -> None:
    async with Host(says(OK)) as host:
        assert (await client.request("POST", f"http://127.0.0.1:{host.port}/")).status == 200
        assert (await client.request("POST", f"http://[::ffff:127.0.0.1]:{host.port}/")).status == 200
    async with Silence() as silence:
        for elsewhere in ("127.0.0.2", "0.0.0.0", "[::1]", "[::ffff:127.0.0.2]"):
            with pytest.raises(OutboundRefused):
                await client.request("POST", f"http://{elsewhere}:{silence.port}/")
        assert await silence.arrivals() == 0


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{SECRET}@public.example/{SECRET}",
        f"http://10.0.0.1/{SECRET}?{SECRET}#{SECRET}",
        f"ftp://public.example/{SECRET}",
        f"http://127.1/{SECRET}",
        f"http://public.example:{SECRET}/",
        f"http://[{SECRET}]/",
    ],
)
async def test_a_refusal_repeats_nothing_of_the_url_but_its_address(client: Outbound, url: str) -> None:
    with pytest.raises(OutboundRefused) as refused:
        await client.request("POST", url)
    assert refused.value.kind == "refused"
    assert SECRET not in f"{refused.value} {refused.value.__cause__!r}"
    assert refused.value.__context__ is None or refused.value.__suppress_context__


async def test_the_surroundings_name_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """`trust_env` is off: a proxy would be asked instead of the address that was checked."""
    async with Silence() as silence, Host(says(OK)) as host:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{silence.port}")
        client = GuardedClient(LOOPBACK, resolver=Liar(["127.0.0.1"]))
        assert (await client.request("POST", f"http://public.example:{host.port}/")).status == 200
        assert await silence.arrivals() == 0
        await client.close()


async def test_closing_what_was_never_used() -> None:
    await GuardedClient().close()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_connection_that_cannot_be_opened_here_is_no_fault_of_the_host(client: Outbound, name: str) -> None:
    async with Host(says(OK)) as host:
        await asyncio.to_thread(int)  # the thread that looks names up is there
        with descriptors_left(0):
            error = await failure(client, host.url.replace("127.0.0.1", name))
        assert (error.kind, str(error)) == ("local", "No connection could be opened here: Too many open files.")
        assert host.connections == 0
