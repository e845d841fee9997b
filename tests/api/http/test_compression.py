"""gzip, and responses that say that nothing has changed (304)."""

from __future__ import annotations

import gzip
import zlib

import httpx
import pytest

from api.http.headers import CREDENTIALS
from tests.api.http.toy import ID, SECRET, Toy

PAGE = f"/api/thing/{ID}/page"
PLAIN = {"Accept-Encoding": "identity"}
VARY = f"{CREDENTIALS.decode()}, accept-encoding"


async def raw(http: httpx.AsyncClient, path: str, *, method: str = "GET", **headers: str) -> tuple[httpx.Response, bytes]:
    """The response with the body as it was sent."""
    async with http.stream(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()}) as answer:
        return answer, b"".join([piece async for piece in answer.aiter_raw()])


async def test_a_body_is_compressed_where_that_is_asked_for(http: httpx.AsyncClient) -> None:
    plain, body = await raw(http, PAGE, Accept_Encoding="identity")
    packed, coded = await raw(http, PAGE, Accept_Encoding="br, gzip;q=0.5")
    assert (gzip.decompress(coded), len(coded) < 200) == (body, True)
    assert (plain.headers["vary"], packed.headers["vary"]) == (VARY, VARY)
    assert ("content-encoding" in plain.headers, packed.headers["content-encoding"]) == (False, "gzip")
    assert (plain.headers["etag"], packed.headers["etag"]) == (f'"5.{zlib.crc32(body):08x}"', f'"5-{zlib.crc32(body):08x}"')
    assert packed.headers["content-length"] == str(len(coded))
    head, nothing = await raw(http, PAGE, method="HEAD", Accept_Encoding="gzip")
    assert nothing == b""
    for name in ("content-length", "content-encoding", "etag", "vary"):
        assert head.headers[name] == packed.headers[name]


async def test_a_short_body_is_sent_as_it_is(http: httpx.AsyncClient) -> None:
    answer, _ = await raw(http, f"/api/thing/{ID}", Accept_Encoding="gzip")
    assert ("content-encoding" in answer.headers, answer.headers["vary"]) == (False, CREDENTIALS.decode())


@pytest.mark.parametrize("size", [100_000, 3_000_000])
async def test_a_long_body_is_compressed_beside_the_event_loop(http: httpx.AsyncClient, toy: Toy, size: int) -> None:
    toy.shelf.size = size
    _, coded = await raw(http, PAGE, Accept_Encoding="gzip")
    assert gzip.decompress(coded).count(b"a") >= size


@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_if_match_takes_the_tag_of_a_body_that_shows_other_records(http: httpx.AsyncClient, coding: str) -> None:
    tag = (await http.get(PAGE, headers={"Accept-Encoding": coding})).headers["etag"]
    for sent, seen in ((tag, [5]), (f'"4", {tag}', [4, 5]), ('"5-xyz"', None), (f"W/{tag}", None)):
        answer = await http.put(f"/api/thing/{ID}", json={"name": "a"}, headers={"If-Match": sent})
        assert (answer.status_code, answer.json().get("ifMatch")) == (200 if seen else 412, seen)


async def test_an_export_is_compressed_piece_by_piece_and_events_are_not(http: httpx.AsyncClient, toy: Toy) -> None:
    answer, coded = await raw(http, "/api/thing/export/", Accept_Encoding="gzip")
    assert (answer.headers["content-encoding"], gzip.decompress(coded)) == ("gzip", b"{}\n[]\n")
    toy.shelf.hold.set()
    events, body = await raw(http, "/api/thing/followed/event-stream", Accept_Encoding="gzip")
    assert ("content-encoding" in events.headers, body) == (False, b"data: 1\n\ndata: 2\n\n")


async def test_a_piece_of_a_compressed_stream_is_not_held_back(toy: Toy, port: int) -> None:
    unpacked = zlib.decompressobj(31)
    headers = {"API-KEY": SECRET, "Accept-Encoding": "gzip"}
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client,
        client.stream("GET", "/api/thing/followed/plain") as answer,
    ):
        pieces = answer.aiter_raw()
        first = b""
        while first != b"data: 1\n\n":
            first += unpacked.decompress(await anext(pieces))
        toy.shelf.hold.set()
        rest = b"".join([unpacked.decompress(piece) async for piece in pieces])
    assert rest == b"data: 2\n\n"
    assert unpacked.eof


@pytest.mark.parametrize("sent", ['"5"', 'W/"5"', '"4", "5"', "*", '"a,b" , W/"5"'])
async def test_what_is_known_is_304(http: httpx.AsyncClient, sent: str) -> None:
    for method in ("GET", "HEAD"):
        answer = await http.request(method, f"/api/thing/{ID}", headers={"If-None-Match": sent})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", '"5"')
        assert not {"content-type", "content-length"} & set(answer.headers)
        assert answer.headers["x-transaction-id"]


@pytest.mark.parametrize("sent", ['"4"', "5", '"5', 'w/"5', '"55"', '"5-00000000"', "", ",,", '"*"'])
async def test_what_is_not_known_is_sent(http: httpx.AsyncClient, sent: str) -> None:
    assert (await http.get(f"/api/thing/{ID}", headers={"If-None-Match": sent})).status_code == 200


@pytest.mark.parametrize("coding", ["gzip", "identity"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("sent", ["{}", "W/{}", '"4", {}', '"a,b" , W/{}', "*"])
async def test_a_body_that_shows_other_records_is_known_by_its_content(
    http: httpx.AsyncClient, toy: Toy, coding: str, method: str, sent: str
) -> None:
    """The version is not enough: the other thing may have another name since."""
    headers = {"Accept-Encoding": coding}
    tag = (await http.request(method, PAGE, headers=headers)).headers["etag"]
    again = await http.request(method, PAGE, headers={"If-None-Match": sent.format(tag), **headers})
    assert (again.status_code, again.content, again.headers["etag"], again.headers["vary"]) == (304, b"", tag, VARY)
    assert (await http.get(PAGE, headers={"If-None-Match": '"5"', **headers})).status_code == 200
    other = {"Accept-Encoding": "identity" if coding == "gzip" else "gzip"}
    assert (await http.get(PAGE, headers={"If-None-Match": tag, **other})).status_code == 200, "another coding, another body"
    toy.shelf.other = "studio"
    assert (await http.get(PAGE, headers={"If-None-Match": tag, **headers})).status_code == 200


async def test_writes_and_lists_do_not_know_304(http: httpx.AsyncClient) -> None:
    for method, path in (("GET", "/api/thing/"), ("PUT", f"/api/thing/{ID}")):
        answer = await http.request(method, path, headers={"If-None-Match": "*"}, json={"name": "a"} if method == "PUT" else None)
        assert answer.status_code == 200


async def test_documents_are_known_by_their_digest(http: httpx.AsyncClient) -> None:
    for path in ("/openapi.json", "/docs", "/docs/swagger-ui-bundle.js"):
        for headers in ({"Accept-Encoding": "gzip"}, PLAIN):
            first = await http.get(path, headers=headers)
            again = await http.get(path, headers={**headers, "If-None-Match": first.headers["etag"]})
            assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
            assert again.headers["cache-control"] == first.headers["cache-control"] == "no-cache"
