"""Downloads through the guarded client, from hosts that break off, lie about ranges and lead elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.workers.job.file_host import CHANGED, FileHost
from tests.workers.outbound.host import Host, Silence, hangs, says
from workers.adapters.outbound_http import GuardedClient
from workers.ports.outbound import Download, DownloadStart, OutboundFailed, OutboundRefused

LOOPBACK = [ip_network("127.0.0.1/32")]
SECRET = "S3cret"
BODY = bytes(range(256)) * 2_000


@pytest.fixture
async def client() -> AsyncIterator[Download]:
    made = GuardedClient(LOOPBACK)
    yield made
    await made.close()


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "file"


def content_of(file: Path) -> bytes:
    """Return the content of the file; empty if it does not exist."""
    return file.read_bytes() if file.exists() else b""


def put(file: Path, content: bytes) -> None:
    file.write_bytes(content)


async def failure(client: Download, url: str, to: Path, *, offset: int = 0, if_range: str | None = None) -> OutboundFailed:
    with pytest.raises(OutboundFailed) as failed:
        await client.download(f"{url}/{SECRET}?token={SECRET}", to, offset=offset, if_range=if_range, seconds_without_data=0.3)
    error: OutboundFailed = failed.value
    assert SECRET not in f"{error} {error!r} {error.__cause__!r}"
    assert error.__context__ is None or error.__suppress_context__
    return error


async def test_a_file_and_what_is_said_of_it(client: Download, to: Path) -> None:
    began: list[DownloadStart] = []
    seen: list[bytes] = []
    async with FileHost(BODY) as host:
        done = await client.download(f"{host.url}/a?b=c", to, began=began.append, seen=seen.append)
    assert (done.status, done.size, done.headers["etag"]) == (200, len(BODY), '"one"')
    assert content_of(to) == b"".join(seen) == BODY
    assert [(part.offset, part.total, part.headers["content-type"]) for part in began] == [(0, len(BODY), "video/mp4")]
    assert host.asked[0]["path"] == "/a?b=c"
    assert host.asked[0]["accept-encoding"] == "identity"
    assert "range" not in host.asked[0]


async def test_without_a_length_the_end_is_the_end(client: Download, to: Path) -> None:
    async with FileHost(BODY, says_length=False) as host:
        assert (await client.download(host.url, to)).size == len(BODY)
    assert content_of(to) == BODY


async def test_another_status_touches_no_file(client: Download, to: Path) -> None:
    put(to, b"mine")
    async with FileHost(BODY, statuses=[404]) as host:
        assert (await client.download(host.url, to, offset=4, if_range='"one"')).status == 404
    assert content_of(to) == b"mine"


# -- the rest of a file ---------------------------------------------------------------------------------------------------


async def test_the_rest_is_added(client: Download, to: Path) -> None:
    put(to, BODY[:1000] + b"what came after is not trusted")
    began: list[DownloadStart] = []
    async with FileHost(BODY) as host:
        done = await client.download(host.url, to, offset=1000, if_range='"one"', began=began.append)
    assert (done.status, done.size) == (206, len(BODY))
    assert (began[0].offset, began[0].total) == (1000, len(BODY))
    assert content_of(to) == BODY
    assert (host.asked[0]["range"], host.asked[0]["if-range"]) == ("bytes=1000-", '"one"')


async def test_the_rest_by_date(client: Download, to: Path) -> None:
    put(to, BODY[:1000])
    async with FileHost(BODY, etag=None, last_modified=CHANGED) as host:
        assert (await client.download(host.url, to, offset=1000, if_range=CHANGED)).status == 206
    assert content_of(to) == BODY


@pytest.mark.parametrize("ranges", ["honoured", "ignored"])
async def test_a_host_that_sends_all_of_it_overwrites(client: Download, to: Path, ranges: str) -> None:
    """Because the version is another, or because it knows no ranges."""
    put(to, b"x" * (len(BODY) + 5))
    began: list[DownloadStart] = []
    async with FileHost(BODY, ranges=ranges) as host:
        done = await client.download(host.url, to, offset=1000, if_range='"older"', began=began.append)
    assert (done.status, done.size, began[0].offset) == (200, len(BODY), 0)
    assert content_of(to) == BODY


@pytest.mark.parametrize("ranges", ["from another place", "of another version", "without a tag"])
async def test_a_part_that_was_not_asked_for_is_not_written(client: Download, to: Path, ranges: str) -> None:
    put(to, BODY[:1000])
    async with FileHost(BODY, ranges=ranges) as host:
        assert (await failure(client, host.url, to, offset=1000, if_range='"one"')).kind == "protocol"
    assert content_of(to) == BODY[:1000]


async def test_a_part_where_all_was_asked_for_is_not_written(client: Download, to: Path) -> None:
    part = b"HTTP/1.1 206 Partial\r\ncontent-range: bytes 0-3/8\r\ncontent-length: 4\r\n\r\nabcd"
    async with Host(says(part)) as host:
        assert (await failure(client, host.url, to)).kind == "protocol"
    assert content_of(to) == b""


async def test_a_part_that_ends_too_soon_is_no_file(client: Download, to: Path) -> None:
    put(to, b"ab")
    part = b'HTTP/1.1 206 Partial\r\netag: "one"\r\ncontent-range: bytes 2-3/8\r\ncontent-length: 2\r\n\r\ncd'
    async with Host(says(part)) as host:
        assert (await failure(client, host.url, to, offset=2, if_range='"one"')).kind == "closed"
    assert content_of(to) == b"abcd"


# -- failures -------------------------------------------------------------------------------------------------------------


async def test_what_came_before_the_connection_broke_stays(client: Download, to: Path) -> None:
    async with FileHost(BODY, breaks=[100_000]) as host:
        assert (await failure(client, host.url, to)).kind == "closed"
    assert content_of(to) == BODY[:100_000]


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"], ids=["from the start", "in between"])
async def test_silence_ends_it(client: Download, to: Path, head: bytes) -> None:
    async with Host(says(head) if head else hangs) as host:
        error = await failure(client, host.url, to)
    assert (error.kind, str(error)) == ("timeout", "No data came for 0.3 s.")


@pytest.mark.parametrize("says_length", [True, False])
async def test_a_file_that_is_too_large_is_not_taken(client: Download, to: Path, says_length: bool) -> None:
    async with FileHost(BODY, says_length=says_length) as host:
        with pytest.raises(OutboundFailed) as failed:
            await client.download(host.url, to, most=1000)
    assert failed.value.kind == "size"
    assert len(content_of(to)) <= 1000


async def test_what_the_caller_raises_ends_it(client: Download, to: Path) -> None:
    def enough(_: object) -> None:
        raise KeyError("enough")

    async with FileHost(BODY) as host:
        with pytest.raises(KeyError):
            await client.download(host.url, to, seen=enough)


async def test_a_file_that_cannot_be_written_is_not_the_hosts_fault(client: Download, tmp_path: Path) -> None:
    async with FileHost(BODY) as host:
        with pytest.raises(FileNotFoundError):
            await client.download(host.url, tmp_path / "nowhere" / "file")


# -- redirects ------------------------------------------------------------------------------------------------------------


async def test_redirects_are_followed_and_headers_stay_with_their_origin(client: Download, to: Path) -> None:
    async with FileHost(BODY) as other, FileHost(BODY, moved={"/a": "b", "/b": f"{other.url}/c"}) as host:
        done = await client.download(f"{host.url}/a", to, headers={"Authorization": SECRET, "X-Own": SECRET})
    assert (done.status, content_of(to) == BODY) == (200, True)
    assert [(request["path"], request["authorization"], request["x-own"]) for request in host.asked] == [
        (path, SECRET, SECRET) for path in ("/a", "/b")
    ]
    assert other.asked[0]["path"] == "/c"
    assert SECRET not in str(other.asked)


async def test_a_range_is_asked_for_wherever_it_leads(client: Download, to: Path) -> None:
    put(to, BODY[:1000])
    async with FileHost(BODY) as other, FileHost(BODY, moved={"/a": f"{other.url}/c"}) as host:
        assert (await client.download(f"{host.url}/a", to, offset=1000, if_range='"one"')).status == 206
    assert content_of(to) == BODY


async def test_a_circle_of_redirects_is_left(client: Download, to: Path) -> None:
    async with FileHost(BODY, moved={"/a": "/a"}) as host:
        with pytest.raises(OutboundFailed, match="more than 5 times"):
            await client.download(f"{host.url}/a", to)
    assert len(host.asked) == 6


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2:PORT/",
        "http://[::1]:PORT/",
        "//127.0.0.2:PORT/",
        "http://0.0.0.0:PORT/",
        f"http://user:{SECRET}@127.0.0.1:PORT/",
        "file:///etc/passwd",
        "http://2130706433:PORT/",
        "http://[",
    ],
)
async def test_a_redirect_to_where_we_may_not_go_is_refused(client: Download, to: Path, location: str) -> None:
    async with Silence() as silence, FileHost(BODY, moved={"/a": location.replace("PORT", str(silence.port))}) as host:
        with pytest.raises(OutboundRefused) as refused:
            await client.download(f"{host.url}/a", to)
        assert await silence.arrivals() == 0
    assert SECRET not in f"{refused.value} {refused.value.__cause__!r}"


@pytest.mark.parametrize("url", ["http://127.0.0.2/", "http://127.1/", "ftp://127.0.0.1/", "http://a:b@127.0.0.1/"])
async def test_an_address_that_is_not_permitted_is_refused(client: Download, to: Path, url: str) -> None:
    with pytest.raises(OutboundRefused):
        await client.download(url, to)


async def test_a_header_that_is_not_the_callers_is_refused(client: Download, to: Path) -> None:
    with pytest.raises(OutboundRefused):
        await client.download("http://127.0.0.1/", to, headers={"Host": "x"})


async def test_a_range_of_bytes_becomes_the_file(client: Download, to: Path) -> None:
    """Asked for as such, not as the rest of a file."""
    answer = b"HTTP/1.1 206 Partial\r\ncontent-range: bytes 4-7/20\r\ncontent-length: 4\r\n\r\nefgh"
    async with Host(says(answer)) as host:
        done = await client.download(f"{host.url}/all", to, part=(4, 4))
    assert (done.size, content_of(to), done.url) == (4, b"efgh", f"{host.url}/all")
    assert "\r\nRange: bytes=4-7\r\n" in host.heads[0]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nefgh", "protocol"),
        (b"HTTP/1.1 206 Partial\r\ncontent-range: bytes 0-3/20\r\ncontent-length: 4\r\n\r\nabcd", "protocol"),
        (b"HTTP/1.1 206 Partial\r\ncontent-range: bytes 4-9/20\r\ncontent-length: 6\r\n\r\nefghij", "protocol"),
        (b"HTTP/1.1 206 Partial\r\ncontent-range: bytes 4-7/20\r\ncontent-length: 2\r\n\r\nef", "closed"),
    ],
)
async def test_another_range_than_was_asked_for_is_no_file(client: Download, to: Path, answer: bytes, kind: str) -> None:
    async with Host(says(answer)) as host:
        with pytest.raises(OutboundFailed) as failed:
            await client.download(f"{host.url}/all", to, part=(4, 4))
    assert failed.value.kind == kind


async def test_the_url_after_redirects_is_told(client: Download, to: Path) -> None:
    async with FileHost(BODY, moved={"/a": "/b/c"}) as host:
        assert (await client.download(f"{host.url}/a", to)).url == f"{host.url}/b/c"
