"""404, 405, 401, 403, 413, 415, 400, 404, 412, 409: in this order."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.api.http.toy import ID, SECRET, Toy

LONG = "x" * (1024 * 1024 + 1)


async def test_each_check_comes_before_the_next(toy: Toy) -> None:
    """A request that is wrong in every way is corrected step by step."""
    request: dict[str, Any] = {
        "headers": {"x-transaction-id": "\x7f", "content-type": "text/plain", "if-match": '"4"'},
        "content": LONG,
    }
    statuses = []
    async with toy.client(None) as http:
        statuses.append((await http.request("PUT", "/api/thin", **request)).status_code)
        statuses.append((await http.request("POST", f"/api/thing/{ID}", **request)).status_code)
        statuses.append((await http.request("PUT", f"/api/thing/{ID}", **request)).status_code)
        request["headers"]["api-key"] = "mlk_viewer"
        statuses.append((await http.request("PUT", f"/api/thing/{ID}", **request)).status_code)
        request["headers"]["api-key"] = SECRET
        statuses.append((await http.request("PUT", f"/api/thing/{ID}", **request)).status_code)
        request["content"] = "nonsense"
        statuses.append((await http.request("PUT", f"/api/thing/{ID}", **request)).status_code)
        request["headers"]["content-type"] = "application/json"
        statuses.append((await http.request("PUT", f"/api/thing/{ID}", **request)).status_code)
        del request["headers"]["x-transaction-id"]
        statuses.append((await http.request("PUT", f"/api/thing/{ID}", **request)).status_code)
        request["content"] = '{"name": "a"}'
        statuses.append((await http.request("PUT", f"/api/thing/{ID}", **request)).status_code)
        request["headers"]["if-match"] = '"5"'
        statuses.append((await http.request("PUT", f"/api/thing/{ID}", **request)).status_code)
    assert statuses == [404, 405, 401, 403, 413, 415, 400, 400, 412, 200]


@pytest.mark.parametrize("key", [None, "", "wrong", "mlk_verysecret ", "é"])
async def test_no_or_a_wrong_key_is_401(toy: Toy, key: str | None) -> None:
    headers = [] if key is None else [(b"api-key", key.encode("latin-1"))]
    async with toy.client(None) as http:
        answer = await http.get("/api/thing", headers=headers)
    assert answer.status_code == 401
    assert answer.headers.get_list("www-authenticate") == ["ApiKey", 'Bearer realm="api"']


async def test_the_key_may_come_in_x_auth_key(toy: Toy) -> None:
    async with toy.client(None) as http:
        assert (await http.get("/api/thing", headers={"X-Auth-Key": SECRET})).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": f"Bearer {SECRET}"}, 200),
        ({"Authorization": f"bearer   {SECRET} "}, 200),
        ({"Authorization": f"Bearer {SECRET}", "API-KEY": SECRET}, 200),
        ({"Authorization": f"Bearer {SECRET}", "API-KEY": "mlk_viewer"}, 401),
        ({"Authorization": "Bearer mlk_other", "X-Auth-Key": SECRET}, 401),
        ({"Authorization": "Basic YTpi", "API-KEY": SECRET}, 200),
        ({"Authorization": f"Basic {SECRET}"}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": f"Bearer{SECRET}"}, 401),
    ],
)
async def test_the_key_may_come_as_a_bearer_token(toy: Toy, headers: dict[str, str], status: int) -> None:
    async with toy.client(None) as http:
        answer = await http.get("/api/thing", headers=headers)
    assert answer.status_code == status
    assert SECRET not in answer.text


async def test_a_client_header_must_match(http: httpx.AsyncClient) -> None:
    assert (await http.get("/api/thing", headers={"client": "admin"})).status_code == 200
    assert (await http.get("/api/thing", headers={"client": "Admin"})).status_code == 401


async def test_a_right_key_without_the_role_is_403(toy: Toy) -> None:
    async with toy.client("mlk_operator") as http:
        assert (await http.delete(f"/api/thing/{ID}")).status_code == 403
        assert (await http.get("/api/thing")).status_code == 200


async def test_a_streamed_body_is_cut_off_at_the_limit(toy: Toy, http: httpx.AsyncClient) -> None:
    read = 0

    async def chunks() -> Any:
        nonlocal read
        for _ in range(100):
            read += 1
            yield b" " * 100_000

    answer = await http.post("/api/thing/", content=chunks())
    assert answer.status_code == 413
    assert read < 15


@pytest.mark.parametrize("length", [b"1048577", b"9" * 5000])
async def test_a_length_over_the_limit_is_413_unread(http: httpx.AsyncClient, length: bytes) -> None:
    headers = [(b"api-key", SECRET.encode()), (b"content-length", length)]
    assert (await http.post("/api/thing/", content=b"{}", headers=headers)).status_code == 413


async def test_the_limit_is_the_surfaces_own(http: httpx.AsyncClient) -> None:
    xml = {"content-type": "application/xml"}
    assert (await http.post("/admin/speke", content=b"x" * 65, headers=xml)).status_code == 413
    answer = await http.post("/admin/speke", content=b"<a/>", headers=xml)
    assert (answer.content, answer.headers["content-type"]) == (b"<a/>admin", "application/xml")


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        (None, 201),
        ("application/json", 201),
        ("Application/JSON; charset=UTF-8", 201),
        ('application/json; charset="utf-8"', 201),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("application/jsonx", 415),
        ("nonsense", 415),
        (";", 415),
    ],
)
async def test_content_types(http: httpx.AsyncClient, content_type: str | None, status: int) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    answer = await http.post("/api/thing/", content=b'{"title": "a"}', headers=headers)
    assert answer.status_code == status


async def test_a_compressed_body_is_415(http: httpx.AsyncClient) -> None:
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    assert (await http.post("/api/thing/", content=b"\x1f\x8b", headers=headers)).status_code == 415


async def test_a_patch_takes_json_patch_only(http: httpx.AsyncClient) -> None:
    patch = b'[{"op": "replace"}]'
    wrong = await http.patch(f"/api/thing/{ID}", content=patch, headers={"content-type": "application/json"})
    right = await http.patch(f"/api/thing/{ID}", content=patch, headers={"content-type": "application/json-patch+json"})
    assert (wrong.status_code, right.status_code) == (415, 200)
