"""CORS: what browsers are told about pages of other origins."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from api.http.cross_origin import CrossOrigin
from tests.api.http.toy import ID, Toy

APP = "https://app.example"


@pytest.fixture
async def page() -> AsyncIterator[httpx.AsyncClient]:
    toy = Toy(cross_origin=CrossOrigin(frozenset({APP.encode()})))
    async with toy.client() as client:
        client.headers["Origin"] = APP
        yield client


def asking(method: str, origin: str = APP) -> dict[str, str]:
    return {"Origin": origin, "Access-Control-Request-Method": method, "API-KEY": ""}


async def test_a_preflight_needs_no_key_and_tells_what_the_route_takes(page: httpx.AsyncClient) -> None:
    answer = await page.options(f"/api/thing/{ID}", headers=asking("PUT"))
    headers = answer.headers
    assert (answer.status_code, answer.content, headers["access-control-allow-origin"]) == (204, b"", APP)
    assert headers["access-control-allow-methods"] == "DELETE, GET, HEAD, PATCH, PUT"
    wanted = set(headers["access-control-allow-headers"].split(", "))
    assert {"api-key", "authorization", "content-type", "if-match", "prefer", "traceparent"} <= wanted
    assert "idempotency-key" not in wanted
    assert set(headers["vary"].split(", ")) == {"origin", "access-control-request-method"}
    assert "access-control-allow-credentials" not in headers
    post = (await page.options("/api/thing/", headers=asking("POST"))).headers["access-control-allow-headers"].split(", ")
    assert "idempotency-key" in post
    get = (await page.options("/api/thing/", headers=asking("GET"))).headers["access-control-allow-headers"].split(", ")
    assert "if-none-match" in get
    assert "content-type" not in get


async def test_responses_and_errors_can_be_read(page: httpx.AsyncClient) -> None:
    for path, status in ((f"/api/thing/{ID}", 200), ("/api/nothing", 404), ("/api/thing/x", 400)):
        answer = await page.get(path)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, APP)
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert {"etag", "location", "x-transaction-id", "link", "retry-after"} <= set(exposed)
    denied = await page.get("/api/thing/", headers={"API-KEY": "wrong"})
    assert (denied.status_code, denied.headers["access-control-allow-origin"]) == (401, APP)


@pytest.mark.parametrize("origin", ["https://app.example.evil", "http://app.example", "https://APP.example", "null", "", "*", "é"])
async def test_other_origins_are_told_nothing(page: httpx.AsyncClient, origin: str) -> None:
    preflight = await page.options(
        "/api/thing/", headers=[(n.encode(), v.encode("latin-1")) for n, v in asking("GET", origin).items()]
    )
    answer = await page.get("/api/thing/", headers=[(b"origin", origin.encode("latin-1"))])
    assert (preflight.status_code, answer.status_code) == (403, 200)
    for each in (preflight, answer):
        assert "access-control-allow-origin" not in each.headers
        assert "origin" in each.headers["vary"]


async def test_options_without_an_origin_names_the_methods(page: httpx.AsyncClient) -> None:
    del page.headers["Origin"]
    answer = await page.options("/api/thing/reference")
    assert (answer.status_code, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    assert "origin" in (await page.get("/api/thing/")).headers["vary"].split(", ")


async def test_all_origins_and_none(http: httpx.AsyncClient) -> None:
    assert (await http.options("/api/thing/", headers=asking("GET"))).status_code == 405
    assert "origin" not in (await http.get("/api/thing/", headers={"Origin": APP})).headers["vary"].split(", ")
    async with Toy(cross_origin=CrossOrigin(None)).client() as anyone:
        for answer in (await anyone.get("/api/thing/"), await anyone.options("/api/thing/", headers=asking("GET"))):
            assert answer.headers["access-control-allow-origin"] == "*"
            assert "origin" not in answer.headers.get("vary", "")
