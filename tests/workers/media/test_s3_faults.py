"""The client of the bucket when its server or the network fails: a proxy before moto's server injects each fault."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from socket import SO_LINGER, SOL_SOCKET
from urllib.parse import urlsplit

import pytest

from domain.kernel.errors import Unavailable
from tests.support.s3 import client, new_bucket
from tests.support.s3 import moto_endpoint as moto_endpoint
from workers.adapters.media_bucket import MediaBucket
from workers.adapters.s3_bucket import S3Bucket
from workers.ports.buckets import BucketAddress
from workers.ports.media import OpenMedia

CONTENT = bytes(range(256)) * 4096


def refusal(status: str, code: str) -> bytes:
    body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


BUSY = refusal("503 Slow Down", "SlowDown")
BROKEN = refusal("500 Internal Server Error", "InternalError")
DENIED = refusal("403 Forbidden", "AccessDenied")
RESET = b"reset"
CUT = b"cut"
"""The fault in which the first bytes of the response arrive and then the connection ends."""


@dataclass
class Proxy:
    """A proxy that applies the next fault of `faults` to each request; no fault after the last one, unless that is to stay."""

    upstream: tuple[str, int]
    faults: list[bytes] = field(default_factory=list)
    stays: bool = False
    requests: int = 0
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one request on each connection: the response is passed on and its connection closed."""
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        fault = self.faults[0] if self.faults else b""
        if self.faults and not self.stays:
            self.faults.pop(0)
        if fault == RESET:
            writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        elif fault and fault != CUT:
            writer.write(fault)
        else:
            await self._forward(head, reader, writer, most=100_000 if fault == CUT else None)
        writer.close()

    async def _forward(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, most: int | None) -> None:
        theirs, ours = await asyncio.open_connection(*self.upstream)
        ours.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        length = next((line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"0")
        ours.write(await reader.readexactly(int(length)))
        response = await theirs.read(-1)
        writer.write(response if most is None else response[:most])
        await writer.drain()
        ours.close()


@pytest.fixture
def address(moto_endpoint: str) -> BucketAddress:
    address = new_bucket(moto_endpoint)
    client(address).put_object(Bucket=address.bucket, Key=f"{address.prefix}/match/a.mp4", Body=CONTENT)
    return address


@pytest.fixture
async def proxy(address: BucketAddress) -> AsyncIterator[Proxy]:
    upstream = urlsplit(str(address.endpoint))
    proxy = Proxy((str(upstream.hostname), int(upstream.port or 0)))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    yield proxy
    server.close()


@pytest.fixture
def bucket(proxy: Proxy, address: BucketAddress) -> MediaBucket:
    return MediaBucket(S3Bucket(replace(address, endpoint=f"http://127.0.0.1:{proxy.port}")))


@pytest.mark.parametrize("fault", [BUSY, BROKEN, RESET], ids=["busy", "broken", "reset"])
async def test_a_fault_that_passes_is_not_seen(proxy: Proxy, bucket: MediaBucket, fault: bytes) -> None:
    proxy.faults = [fault]
    assert await bucket.read("match/a.mp4", limit=len(CONTENT)) == CONTENT
    assert proxy.requests == 2


@pytest.mark.parametrize("fault", [BUSY, BROKEN, RESET], ids=["busy", "broken", "reset"])
async def test_a_store_that_stays_away_is_unavailable(proxy: Proxy, bucket: MediaBucket, fault: bytes) -> None:
    proxy.faults, proxy.stays = [fault], True
    with pytest.raises(Unavailable):
        await bucket.find("match/a.mp4")
    assert proxy.requests > 1


async def test_a_refusal_is_said_and_not_repeated(proxy: Proxy, bucket: MediaBucket) -> None:
    proxy.faults = [DENIED]
    with pytest.raises(OSError, match="refuses: AccessDenied"):
        await bucket.list("match", limit=10)
    assert proxy.requests == 1


async def taken(opened: OpenMedia, got: list[bytes]) -> None:
    async for piece in opened.read(0, len(CONTENT)):
        got += [piece]


async def test_half_of_a_file_is_not_taken_for_all(proxy: Proxy, bucket: MediaBucket) -> None:
    opened = await bucket.open("match/a.mp4")
    assert opened is not None
    proxy.faults, proxy.stays = [CUT], True
    got: list[bytes] = []
    with pytest.raises(Unavailable):
        await taken(opened, got)
    assert CONTENT.startswith(b"".join(got))
    with pytest.raises(Unavailable):
        await bucket.read("match/a.mp4", limit=len(CONTENT))


async def test_a_file_that_is_replaced_while_it_is_read_is_not_mixed(bucket: MediaBucket, address: BucketAddress) -> None:
    opened = await bucket.open("match/a.mp4")
    assert opened is not None
    client(address).put_object(Bucket=address.bucket, Key=f"{address.prefix}/match/a.mp4", Body=b"2" * len(CONTENT))
    with pytest.raises(Unavailable, match="replaced"):
        await anext(opened.read(0, 10))


async def test_a_server_that_is_not_there_is_unavailable(address: BucketAddress) -> None:
    gone = MediaBucket(S3Bucket(replace(address, endpoint="http://127.0.0.1:1")))
    with pytest.raises(Unavailable):
        await gone.find("match/a.mp4")
