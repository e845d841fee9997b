"""Responses: headers, problems, and the transaction id."""

from __future__ import annotations

import gc
import logging
from uuid import UUID

import httpx
import pytest

from api.http.errors import BadRequest
from domain.kernel.errors import NotFound, Refused
from tests.api.http.toy import ID, SECRET, Toy


async def test_the_transaction_id_is_echoed_or_made_up(http: httpx.AsyncClient) -> None:
    assert (await http.get("/api/thing/", headers={"X-Transaction-ID": "a b~!"})).headers["x-transaction-id"] == "a b~!"
    made_up = [(await http.get(path)).headers["x-transaction-id"] for path in ("/api/thing/", "/api/nothing")]
    assert len({UUID(text) for text in made_up}) == 2


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/api/thing/fail/", {"with": "refused"}, Refused),
        ("/api/thing/fail/", {"with": "absent"}, NotFound),
        ("/api/thing/", {"title": 5}, BadRequest),
        ("/api/thing/", {"title": 5, "tags": ["a" * 60_000]}, BadRequest),
    ],
)
async def test_a_failed_request_leaves_nothing_to_the_collector(
    http: httpx.AsyncClient, path: str, body: object, kind: type[Exception]
) -> None:
    """Large bodies of failed requests stayed in memory until the collector looked for cycles in its oldest generation."""
    gc.collect()
    gc.disable()
    try:
        assert (await http.post(path, json=body)).status_code >= 400
        assert [each for each in gc.get_objects() if type(each) is kind] == []
    finally:
        gc.enable()


async def test_a_gateways_request_id_is_the_transaction_id_where_there_is_no_other(http: httpx.AsyncClient) -> None:
    for sent, expected in (("a-1", "a-1"), ("x" * 129, None), ("", None)):
        answer = await http.get("/api/thing/", headers={"X-Request-ID": sent})
        assert (answer.status_code, (answer.headers["x-transaction-id"] == sent)) == (200, expected is not None)
    both = await http.get("/api/thing/", headers={"X-Request-ID": "a-1", "X-Transaction-ID": "b-2"})
    assert both.headers["x-transaction-id"] == "b-2"


@pytest.mark.parametrize("sent", [b"", b"x" * 129, b"a\x01b", b"\xc3\xa9"])
async def test_a_malformed_transaction_id_is_400_and_not_echoed(http: httpx.AsyncClient, sent: bytes) -> None:
    headers = [(b"x-transaction-id", sent), (b"api-key", SECRET.encode())]
    answer = await http.get("/api/thing/", headers=headers)
    assert answer.status_code == 400
    assert UUID(answer.headers["x-transaction-id"])
    assert answer.json()["errors"][0]["field"] == "X-Transaction-ID"


@pytest.mark.parametrize("path", [f"/api/thing/{ID}", "/api/thing/", "/api/nothing", "/api/thing/x", "/api/thing/export/"])
async def test_head_is_get_without_its_body(http: httpx.AsyncClient, path: str) -> None:
    get = await http.get(path)
    head = await http.head(path)
    assert head.status_code == get.status_code
    assert head.content == b""
    for name in ("content-type", "content-length", "etag"):
        if name != "content-length" or get.status_code == 200:
            assert head.headers.get(name) == get.headers.get(name)


async def test_etag_links_and_parameters(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"/api/thing/{ID}")
    assert answer.headers["etag"] == '"5"'
    assert answer.json() == {"id": ID, "base": "http://media.example:8080", "params": {"thingId": ID}}


async def test_what_is_absent_is_204_where_declared(http: httpx.AsyncClient) -> None:
    other = "00000000-0000-4000-8000-000000000000"
    answer = await http.get(f"/api/thing/{other}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert not {"content-type", "content-length"} & set(answer.headers)


@pytest.mark.parametrize(
    ("if_match", "status", "seen"),
    [
        (None, 200, []),
        ("*", 200, []),
        ('"5"', 200, [5]),
        ('"4", "5"', 200, [4, 5]),
        ('"4"', 412, None),
        ('W/"5"', 412, None),
        ("5", 412, None),
        ('"x"', 412, None),
        ("", 412, None),
        ('"' + "9" * 5000 + '"', 412, None),
    ],
)
async def test_if_match(http: httpx.AsyncClient, if_match: str | None, status: int, seen: list[int] | None) -> None:
    answer = await http.put(f"/api/thing/{ID}", headers={} if if_match is None else {"If-Match": if_match})
    assert answer.status_code == status
    if seen is not None:
        assert answer.json()["ifMatch"] == seen


@pytest.mark.parametrize(
    ("failure", "status", "kind", "detail"),
    [
        ("refused", 409, "/problems/refused", "the thing is locked"),
        ("conflict", 409, "/problems/conflict", "the name is taken"),
        ("absent", 404, "/problems/not-found", "There is no event type x."),
        ("unavailable", 503, "/problems/unavailable", "the database is down"),
        (
            "unknown",
            503,
            "/problems/outcome-unknown",
            "the database became unavailable while the change was being written; it may or may not have been written",
        ),
    ],
)
async def test_problem_bodies(http: httpx.AsyncClient, failure: str, status: int, kind: str, detail: str) -> None:
    answer = await http.post("/api/thing/fail/", json={"with": failure}, headers={"X-Transaction-ID": "t"})
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": kind,
        "title": httpx.codes.get_reason_phrase(status),
        "status": status,
        "detail": detail,
        "transactionId": "t",
    }
    assert answer.status_code == status
    assert answer.headers.get("retry-after") == {"unavailable": "7", "unknown": "1"}.get(failure)


async def test_the_unforeseen_is_a_plain_500_and_logged(http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "medialedger.http"):
        answer = await http.post("/api/thing/fail/", json={"with": "other"}, headers={"X-Transaction-ID": "t9"})
    assert answer.status_code == 500
    assert answer.json()["type"] == "about:blank"
    assert SECRET not in answer.text
    assert "RuntimeError" not in answer.text
    record = caplog.records[-1]
    assert vars(record)["transactionId"] == "t9"
    assert record.exc_info is not None


async def test_a_stream_is_passed_on(http: httpx.AsyncClient) -> None:
    answer = await http.get("/api/thing/export/")
    assert answer.content == b"{}\n[]\n"
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert "content-length" not in answer.headers


async def test_links_have_the_public_address_where_one_is_set() -> None:
    async with Toy(public_url="https://media.example").client() as client:
        shown = await client.get(f"/api/thing/{ID}", headers={"Host": "10.0.0.7:8080"})
    assert shown.json()["base"] == "https://media.example"
