"""Clients, roles and API keys over HTTP: docs/reference/api/clients.md."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import httpx
import pytest

from api.kernel.log import RequestLog
from api.wiring.core import Core
from tests.api.asking import assert_problem, fields_of, last, logged, topics
from tests.support.application import introduce
from tests.support.clock import HandClock

NOON = "2031-01-02T12:00:00.000Z"


async def add_client(http: httpx.AsyncClient, name: str, *roles: str) -> dict[str, Any]:
    answer = await http.post("/api/client/", json={"name": name, "roles": list(roles)})
    assert answer.status_code == 201, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def status_with(http: httpx.AsyncClient, key: str, **headers: str) -> int:
    return (await http.get("/api/room/", headers={"API-KEY": key, **headers})).status_code


async def test_a_client_is_added_and_its_key_shown_this_once(http: httpx.AsyncClient, inner: Core) -> None:
    answer = await http.post("/api/client/", json={"name": "studio", "roles": ["operator", "viewer", "viewer"]})
    shown = answer.json()
    key, key_id = shown.pop("key"), shown["keys"][0]["keyId"]
    assert (answer.status_code, answer.headers["location"], answer.headers["cache-control"]) == (
        201,
        "/api/client/studio",
        "no-store",
    )
    entry = {"keyId": key_id, "createdAt": NOON, "expiresAt": None, "lastUsedAt": None}
    assert shown == {"name": "studio", "roles": ["viewer", "operator"], "createdAt": NOON, "keys": [entry], "trustActor": False}
    assert key.startswith("mlk_")
    assert len(key) >= 4 + 43  # 256 bits
    assert await status_with(http, key) == 200
    assert await topics(inner, "client:studio") == ["client.registered", "client.key_issued"]
    used = {**shown, "keys": [{**entry, "lastUsedAt": NOON}]}
    assert (await http.get("/api/client/studio")).json() == used
    listed = (await http.get("/api/client/")).json()
    assert [client["name"] for client in listed] == ["admin", "studio"]
    assert listed[1] == used


async def test_a_key_is_nowhere_but_in_its_one_answer(http: httpx.AsyncClient, inner: Core, application: Any) -> None:
    stream = io.StringIO()
    application.log = RequestLog(stream, clock=inner.clock, reads=True)
    first = (await add_client(http, "studio", "admin"))["key"]
    second = (await http.post("/api/client/studio/keys/", json={})).json()["key"]
    for key in (first, second):
        await status_with(http, key)
        await status_with(http, key + "x")
    paths = (
        "/api/client/",
        "/api/client/studio",
        "/api/audit/events/",
        "/api/audit/client/studio/",
        "/api/audit/client/studio/state",
    )
    texts = [(await http.get(path)).text for path in (*paths, "/metrics", "/openapi.json")]
    texts += [
        (await http.put("/api/client/studio", json={"roles": ["viewer"]})).text,
        (await http.delete("/api/client/studio")).text,
    ]
    application.log.flush()
    assert stream.getvalue().count("\n") > 10
    for text in (*texts, stream.getvalue(), *(str(event) for event in await logged(inner))):
        for key in (first, second):
            assert key not in text
            assert key.split("_", 2)[2] not in text


async def test_roles_are_replaced_and_work_at_once(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add_client(http, "studio", "keys"))["key"]
    assert await status_with(http, key) == 403
    changed = await http.put("/api/client/studio", json={"roles": ["auditor", "viewer"]})
    assert changed.json()["roles"] == ["viewer", "auditor"]
    assert await status_with(http, key) == 200
    before = await last(inner)
    assert (await http.put("/api/client/studio", json={"ROLES": ["viewer", "auditor"]})).headers["etag"] == changed.headers["etag"]
    assert await last(inner) == before
    assert (await logged(inner, "client:studio"))[-1].data["roles"] == ["viewer", "auditor"]


async def test_bad_roles_and_names_are_400_before_anything_else(http: httpx.AsyncClient, inner: Core) -> None:
    await add_client(http, "studio", "viewer")
    before = await last(inner)
    for roles in ([], None, "viewer", ["boss"], ["Viewer"], ["viewer", 7], [None], {"viewer": True}):
        for name in ("new", "studio"):
            answer = await http.post("/api/client/", json={"name": name, "roles": roles})
            assert fields_of(answer)[0].partition("[")[0] == "roles", roles
        for name in ("studio", "nobody"):
            assert fields_of(await http.put(f"/api/client/{name}", json={"roles": roles}))[0].partition("[")[0] == "roles"
    assert fields_of(await http.post("/api/client/", json={"name": "new"})) == ["roles"]
    assert fields_of(await http.put("/api/client/studio", json={})) == ["roles"]
    reserved = [
        "api",
        "engine",
        "console",
        "livez",
        "readyz",
        "metrics",
        "docs",
        "openapi.json",
        "asyncapi.json",
        "favicon.ico",
        ".",
        "..",
    ]
    for wrong in (*reserved, "", "a b", "a/b", "é", "x" * 65, "a\n", "a:b", None, 7):
        assert fields_of(await http.post("/api/client/", json={"name": wrong, "roles": ["viewer"]})) == ["name"], wrong
    assert await last(inner) == before


async def test_names_may_be_all_that_the_contract_allows_and_keep_their_case(http: httpx.AsyncClient) -> None:
    for name in ("x" * 64, "A-Za-z0-9._-", "0", "Films", "studio-a", "Studio-B"):
        await add_client(http, name, "viewer")
        assert (await http.get(f"/api/client/{name}")).json()["name"] == name


async def test_a_name_that_is_taken_is_409(http: httpx.AsyncClient, inner: Core) -> None:
    await add_client(http, "studio", "viewer")
    before = await last(inner)
    assert_problem(await http.post("/api/client/", json={"name": "studio", "roles": ["viewer"]}), 409)
    assert await last(inner) == before


async def test_a_rotation_overlaps_and_then_ends(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    old = (await add_client(http, "studio", "viewer"))["key"]
    issued = await http.post("/api/client/studio/keys/", json={"expireOthersAfter": 3600})
    body = issued.json()
    assert (issued.status_code, body.keys(), body["expiresAt"]) == (201, {"keyId", "key", "createdAt", "expiresAt"}, None)
    assert (issued.headers["cache-control"], issued.headers["location"]) == ("no-store", "/api/client/studio")
    shown = (await http.get("/api/client/studio")).json()
    assert [key["expiresAt"] for key in shown["keys"]] == ["2031-01-02T13:00:00.000Z", None]
    assert shown["keys"][1]["keyId"] == body["keyId"]
    clock.forward(seconds=3599)
    assert [await status_with(http, key) for key in (old, body["key"])] == [200, 200]
    clock.forward(seconds=1)
    assert [await status_with(http, key) for key in (old, body["key"])] == [401, 200]
    assert await topics(inner, "client:studio") == [
        "client.registered",
        "client.key_issued",
        "client.key_issued",
        "client.key_expiry_set",
    ]


async def test_an_overlap_is_never_made_longer_and_0_ends_at_once(http: httpx.AsyncClient) -> None:
    first = (await add_client(http, "studio", "viewer"))["key"]
    await http.post("/api/client/studio/keys/", json={"expireOthersAfter": 60})
    second = (await http.post("/api/client/studio/keys/", json={"expireOthersAfter": 3600})).json()["key"]
    expiries = [key["expiresAt"] for key in (await http.get("/api/client/studio")).json()["keys"]]
    assert expiries == ["2031-01-02T12:01:00.000Z", "2031-01-02T13:00:00.000Z", None]
    third = (await http.post("/api/client/studio/keys/", json={"expireOthersAfter": 0})).json()["key"]
    assert [await status_with(http, key) for key in (first, second, third)] == [401, 401, 200]


async def test_the_body_of_a_new_key_is_optional_and_leaves_the_others(http: httpx.AsyncClient) -> None:
    keys = {(await add_client(http, "studio", "viewer"))["key"]}
    for body in (b"", b"{}", b"null", b'{"expireOthersAfter": null}'):
        keys.add((await http.post("/api/client/studio/keys", content=body)).json()["key"])
    assert len(keys) == 5
    assert {await status_with(http, key) for key in keys} == {200}
    for wrong in (-1, "x", 1.5, True, 2**70, 10**12):
        assert fields_of(await http.post("/api/client/studio/keys", json={"expireOthersAfter": wrong})) == ["expireOthersAfter"]
    assert_problem(await http.post("/api/client/nobody/keys", json={}), 404)


async def test_a_revoked_key_stops_at_once_and_is_shown_as_it_last_was(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await add_client(http, "studio", "viewer")
    assert await status_with(http, shown["key"]) == 200
    key_id = shown["keys"][0]["keyId"]
    revoked = await http.delete(f"/api/client/studio/keys/{key_id}")
    assert (revoked.status_code, revoked.json()) == (200, {**shown["keys"][0], "lastUsedAt": NOON})
    assert await status_with(http, shown["key"]) == 401
    assert (await http.get("/api/client/studio")).json()["keys"] == []
    assert_problem(await http.delete(f"/api/client/studio/keys/{key_id}"), 404)
    assert_problem(await http.delete(f"/api/client/nobody/keys/{key_id}"), 404)
    assert (await topics(inner, "client:studio"))[-1] == "client.key_revoked"


async def test_a_removed_client_is_gone_and_its_name_may_be_made_again(
    http: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    shown = await add_client(http, "studio", "operator")
    old = shown.pop("key")
    assert (await http.delete("/api/client/studio")).json() == shown
    assert await status_with(http, old) == 401
    for answer in (
        await http.get("/api/client/studio"),
        await http.delete("/api/client/studio"),
        await http.put("/api/client/studio", json={"roles": ["viewer"]}),
        await http.post("/api/client/studio/keys/"),
    ):
        assert_problem(answer, 404)
    clock.forward(hours=1)
    again = await add_client(http, "studio", "viewer")
    assert (again["roles"], again["createdAt"], len(again["keys"])) == (["viewer"], "2031-01-02T13:00:00.000Z", 1)
    assert [await status_with(http, key) for key in (old, again["key"])] == [401, 200]
    assert (await topics(inner, "client:studio"))[-3:] == ["client.deleted", "client.restored", "client.key_issued"]


async def test_the_last_admin_its_role_and_its_last_key_stay(http: httpx.AsyncClient, inner: Core) -> None:
    await add_client(http, "studio", "operator")
    before = await last(inner)
    for answer in (
        await http.delete("/api/client/admin"),
        await http.put("/api/client/admin", json={"roles": ["operator", "auditor"]}),
        await http.delete("/api/client/admin/keys/admin-1"),
    ):
        assert_problem(answer, 409)
    assert await last(inner) == before
    await add_client(http, "second", "admin")
    assert (await http.put("/api/client/admin", json={"roles": ["viewer"]})).status_code == 200
    assert_problem(await http.get("/api/client/"), 403)


async def test_two_admins_who_remove_each_other_at_once_leave_one(http: httpx.AsyncClient, inner: Core) -> None:
    second = {"API-KEY": (await add_client(http, "second", "admin"))["key"]}
    answers = await asyncio.gather(
        http.delete("/api/client/second"),
        http.delete("/api/client/admin", headers=second),
        http.put("/api/client/admin", json={"roles": ["viewer"]}),
        http.put("/api/client/second", json={"roles": ["viewer"]}, headers=second),
    )
    assert {answer.status_code for answer in answers} <= {200, 401, 403, 404, 409}
    assert any("admin" in client.roles for client in await inner.directory.all())


async def test_a_key_that_is_missing_wrong_or_not_the_named_clients_is_401(http: httpx.AsyncClient, inner: Core) -> None:
    key = await introduce(inner, "studio", "viewer")
    bearer = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(transport=http._transport, base_url="http://media.test") as nobody:
        for headers in (
            {},
            {"API-KEY": ""},
            {"API-KEY": "wrong"},
            {"API-KEY": key + " x"},
            {"API-KEY": key.upper()},
            {"Authorization": f"Bearer {key}x"},
            {"Authorization": f"Basic {key}"},
        ):
            answer = await nobody.get("/api/room/", headers=headers)
            assert_problem(answer, 401)
            assert answer.headers["www-authenticate"] == 'ApiKey, Bearer realm="api"'
        for headers in ({"API-KEY": key}, {"api-key": key}, {"X-Auth-Key": key}, {"API-KEY": key, "client": "studio"}, bearer):
            assert (await nobody.get("/api/room/", headers=headers)).status_code == 200
        for claimed in ("admin", "Studio", "", "studio "):
            raw = [(b"api-key", key.encode()), (b"client", claimed.encode())]
            assert_problem(await nobody.get("/api/room/", headers=raw), 401)


async def test_if_match_guards_a_client_too(http: httpx.AsyncClient) -> None:
    await add_client(http, "studio", "viewer")
    tag = (await http.get("/api/client/studio")).headers["etag"]
    assert_problem(await http.put("/api/client/studio", json={"roles": ["keys"]}, headers={"If-Match": '"99"'}), 412)
    assert_problem(await http.delete("/api/client/studio", headers={"If-Match": '"99"'}), 412)
    assert (await http.put("/api/client/studio", json={"roles": ["keys"]}, headers={"If-Match": tag})).status_code == 200
    assert_problem(await http.delete("/api/client/nobody", headers={"If-Match": '"99"'}), 404)


@pytest.mark.parametrize("name", ["%ff", "%00", "a%2Fb", "日本", "%20", "..%2f..", "a" * 5000])
async def test_names_that_nobody_can_have_are_404_or_400(http: httpx.AsyncClient, inner: Core, name: str) -> None:
    before = await last(inner)
    for answer in (
        await http.get(f"/api/client/{name}"),
        await http.put(f"/api/client/{name}", json={"roles": ["viewer"]}),
        await http.delete(f"/api/client/{name}"),
        await http.post(f"/api/client/{name}/keys/"),
        await http.delete(f"/api/client/{name}/keys/{name}"),
        await http.delete(f"/api/client/admin/keys/{name}"),
    ):
        assert_problem(answer, 400 if name in ("%ff", "%00") else 404)
    assert await last(inner) == before
