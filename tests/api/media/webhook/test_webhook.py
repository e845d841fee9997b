"""Webhooks over HTTP: responses and appended events."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, add_webhook, assert_problem, fields_of, last, logged, topics
from tests.support.application import introduce
from tests.support.clock import HandClock

PATH = "/api/webhook"
URL = "https://hooks.test/a"
BARE: dict[str, Any] = {
    "webhookUrl": URL,
    "useHttpBasicAuthentication": False,
    "useJsonBody": True,
    "username": None,
    "password": None,
    "additionalPropertiesJson": None,
    "disabledAt": None,
}
FULL: dict[str, Any] = {
    "webhookUrl": "http://hooks.test:8080/b?c=d",
    "useHttpBasicAuthentication": True,
    "useJsonBody": False,
    "username": "Jörg",
    "password": "swordfish",
    "additionalPropertiesJson": ' {"headers": [{"name":"X-Site","value":"main"}]}',
    "disabledAt": "2031-01-02T03:04:05.678Z",
}


@pytest.fixture
async def event_id(http: httpx.AsyncClient) -> str:
    return str((await add(http, Title="Final"))["id"])


async def test_a_system_wide_webhook_is_added_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    added = await http.post(f"{PATH}/", json={"webhookUrl": URL})
    shown = added.json()
    secret = shown.pop("secret")
    assert (added.status_code, shown) == (200, {"id": shown["id"], **BARE})
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    assert (added.headers["etag"], added.headers["cache-control"]) == ('"1"', "no-store")
    answer = await http.get(f"{PATH}/{shown['id']}?noCache=true")
    assert (answer.status_code, answer.json(), answer.headers["etag"]) == (200, shown, '"1"')
    assert await topics(inner, f"webhook:{shown['id']}") == ["webhook.registered"]
    [event] = await logged(inner, f"webhook:{shown['id']}")
    assert event.data.keys() == {"timestamp", "webhook_url", "secrets"}
    assert event.data["secrets"].keys() == {"signing"}
    another = await http.post(PATH, json={"webhookUrl": URL})
    assert another.json()["secret"] != secret


async def test_field_names_match_in_any_case_and_the_password_is_never_shown(http: httpx.AsyncClient) -> None:
    added = await http.post(f"{PATH}/", json={name.upper(): value for name, value in FULL.items()} | {"unheard": 1})
    shown = added.json()
    assert shown == {"id": shown["id"], "secret": shown["secret"], **FULL, "password": None}
    nulls = dict.fromkeys(FULL) | {"webhookUrl": URL}
    assert (await http.post(PATH, json=nulls)).json().items() >= BARE.items()


@pytest.mark.parametrize("path", ["/api/webook/event/", "/api/webhook/event/", "/api/webook/event"])
async def test_a_webhook_of_an_event_is_added_under_both_spellings(http: httpx.AsyncClient, event_id: str, path: str) -> None:
    added = await http.post(path, json={"eventid": event_id.upper(), "webhookUrl": URL})
    shown = added.json()
    secret = shown.pop("secret")
    assert (added.status_code, secret[:6]) == (200, "whsec_")
    assert shown == {"id": shown["id"], "eventId": event_id, **BARE}
    answer = await http.get(f"{PATH}/{shown['id']}/event/")
    assert (answer.status_code, answer.json()) == (200, shown)
    assert (await http.get(f"{PATH}/event/{event_id}")).json() == [shown]


async def test_a_post_with_an_id_changes_the_given_fields(http: httpx.AsyncClient, inner: Core, event_id: str) -> None:
    key, hook = await add_webhook(http), await add_webhook(http, eventId=event_id)
    changed = await http.post(f"{PATH}/", json={"id": key, "useJsonBody": False})
    assert (changed.status_code, changed.json()) == (200, {"id": key, **BARE, "useJsonBody": False})
    of_event = {"id": hook, "eventId": event_id, "useJsonBody": False}
    assert (await http.post("/api/webook/event/", json=of_event)).json() == {**BARE, **of_event}
    assert await topics(inner, f"webhook:{key}") == ["webhook.registered", "webhook.amended"]
    assert (await logged(inner, f"webhook:{hook}"))[1].data.keys() == {"timestamp", "use_json_body"}


async def test_a_put_changes_the_given_fields_and_a_repeat_nothing(
    http: httpx.AsyncClient, inner: Core, event_id: str, clock: HandClock
) -> None:
    key, hook = await add_webhook(http), await add_webhook(http, eventId=event_id)
    for path, about in ((f"{PATH}/{key}", {}), (f"{PATH}/{hook}/event/", {"eventId": event_id})):
        clock.forward(minutes=1)
        changed = await http.put(path, json={**FULL, **about})
        assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
        assert changed.json() == {"id": changed.json()["id"], **about, **FULL, "password": None}
        for body in (FULL, {}, changed.json(), {"id": UNKNOWN, "secret": "x"}):
            again = await http.put(path, json=body)
            assert (again.json(), again.headers["etag"]) == (changed.json(), '"2"')
        assert (await http.get(path)).json() == changed.json()
        cleared = {"useHttpBasicAuthentication": None, "useJsonBody": None, "username": "", "additionalPropertiesJson": None}
        bare = await http.put(path, json={**cleared, "disabledAt": None, "webhookUrl": None})
        assert bare.json() == {**changed.json(), **BARE, "webhookUrl": FULL["webhookUrl"]}
    assert await topics(inner, f"webhook:{hook}") == ["webhook.registered", "webhook.amended", "webhook.amended"]


async def test_the_two_families_never_show_each_other(http: httpx.AsyncClient, inner: Core, event_id: str) -> None:
    key, hook = await add_webhook(http), await add_webhook(http, eventId=event_id)
    before = await last(inner)
    for path in (f"{PATH}/{hook}", f"{PATH}/{key}/event/"):
        absent = await http.get(path)
        assert (absent.status_code, absent.content) == (204, b"")
        assert_problem(await http.put(path, json={}), 404)
        assert_problem(await http.put(path, json={"useJsonBody": False}, headers={"If-Match": '"9"'}), 404)
    assert_problem(await http.post(f"{PATH}/", json={"id": hook, "useJsonBody": False}), 404)
    assert_problem(await http.post("/api/webook/event/", json={"id": key, "eventId": event_id}), 404)
    assert await last(inner) == before
    assert [record["id"] for record in (await http.get(f"{PATH}/")).json()] == [key]
    assert [record["id"] for record in (await http.get(f"{PATH}/event/{event_id}/")).json()] == [hook]


async def test_lists_are_in_the_order_of_creation_and_204_without_any(
    http: httpx.AsyncClient, event_id: str, clock: HandClock
) -> None:
    for path in (f"{PATH}/", f"{PATH}/event/{event_id}", f"{PATH}/event/{UNKNOWN}"):
        assert (await http.get(path)).status_code == 204
    for fields, path in (({}, PATH), ({"eventId": event_id}, f"{PATH}/event/{event_id}")):
        keys = []
        for _ in range(5):
            clock.forward(seconds=1)
            keys.append(await add_webhook(http, **fields))
        await http.put(f"{PATH}/{keys[0]}{'/event/' if fields else ''}", json={"useJsonBody": False})
        listed = (await http.get(path)).json()
        assert [record["id"] for record in listed] == keys
        assert all("secret" not in entry for entry in listed)


async def test_a_deleted_webhook_of_either_family_is_gone(http: httpx.AsyncClient, inner: Core, event_id: str) -> None:
    for fields, kind in (({}, ""), ({"eventId": event_id}, "/event/")):
        key = await add_webhook(http, **fields)
        shown = (await http.get(f"{PATH}/{key}{kind}")).json()
        assert_problem(await http.delete(f"{PATH}/{key}", headers={"If-Match": '"2"'}), 412)
        deleted = await http.delete(f"{PATH}/{key}")
        assert (deleted.status_code, deleted.json()) == (200, shown)
        assert (await http.get(f"{PATH}/{key}{kind}")).status_code == 204
        for answer in (
            await http.delete(f"{PATH}/{key}"),
            await http.put(f"{PATH}/{key}{kind}", json={}),
            await http.post(f"{PATH}/{kind.lstrip('/')}", json={"id": key, "webhookUrl": URL, **fields}),
            await http.post(f"{PATH}/{key}/secret/"),
        ):
            assert_problem(answer, 404)
        assert await topics(inner, f"webhook:{key}") == ["webhook.registered", "webhook.deleted"]
    assert (await http.get(PATH)).status_code == (await http.get(f"{PATH}/event/{event_id}")).status_code == 204
    assert await inner.database.rows("SELECT owner FROM vault") == []


async def test_a_webhook_moves_to_another_event_but_never_out_of_its_family(http: httpx.AsyncClient, inner: Core) -> None:
    first, other = [str((await add(http))["id"]) for _ in range(2)]
    key = await add_webhook(http, eventId=first)
    assert (await http.put(f"{PATH}/{key}/event/", json={"eventId": None})).json()["eventId"] == first
    before = await last(inner)
    assert_problem(await http.put(f"{PATH}/{key}/event/", json={"eventId": UNKNOWN}), 404)
    assert await last(inner) == before
    assert (await http.put(f"{PATH}/{key}/event/", json={"eventId": other})).json()["eventId"] == other
    assert (await http.get(f"{PATH}/event/{first}")).status_code == 204
    assert len((await http.get(f"{PATH}/event/{other}")).json()) == 1
    bare = await add_webhook(http)
    assert "eventId" not in (await http.put(f"{PATH}/{bare}", json={"eventId": other})).json()


async def test_the_event_of_a_webhook_must_exist_when_it_is_set(http: httpx.AsyncClient, inner: Core, event_id: str) -> None:
    key = await add_webhook(http, eventId=event_id)
    shown = (await http.get(f"{PATH}/{key}/event/")).json()
    await http.delete(f"/api/event/{event_id}")
    before = await last(inner)
    for path in ("/api/webook/event/", "/api/webhook/event/"):
        for body in ({"webhookUrl": URL}, {"webhookUrl": URL, "eventId": None}):
            assert fields_of(await http.post(path, json=body)) == ["eventId"]
        for gone in (event_id, UNKNOWN):
            assert_problem(await http.post(path, json={"webhookUrl": URL, "eventId": gone}), 404)
            assert fields_of(await http.post(path, json={"eventId": gone})) == ["webhookUrl"]
    assert await last(inner) == before
    again = await http.put(f"{PATH}/{key}/event/", json=shown)
    assert (again.status_code, again.json(), again.headers["etag"]) == (200, shown, '"1"')
    assert (await http.get(f"{PATH}/event/{event_id}")).json() == [shown]


async def test_a_webhook_is_disabled_and_enabled_again(http: httpx.AsyncClient) -> None:
    key = await add_webhook(http)
    disabled = await http.put(f"{PATH}/{key}", json={"disabledAt": "2031-01-02T04:04:05.6789+01:00"})
    assert disabled.json()["disabledAt"] == "2031-01-02T03:04:05.678Z"
    assert (await http.put(f"{PATH}/{key}", json={"useJsonBody": True})).json() == disabled.json()
    enabled = await http.put(f"{PATH}/{key}", json={"disabledAt": None})
    assert (enabled.json(), enabled.headers["etag"]) == ({"id": key, **BARE}, '"3"')


async def test_an_outdated_version_is_412(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_webhook(http)
    before = await last(inner)
    stale = {"If-Match": '"7"'}
    assert_problem(await http.put(f"{PATH}/{key}", json={"useJsonBody": False}, headers=stale), 412)
    assert_problem(await http.post(f"{PATH}/{key}/secret/", headers=stale), 412)
    assert fields_of(await http.put(f"{PATH}/{key}", json={"webhookUrl": "x"}, headers=stale)) == ["webhookUrl"]
    assert await last(inner) == before
    assert (await http.put(f"{PATH}/{key}", json={"useJsonBody": False}, headers={"If-Match": '"1"'})).status_code == 200


async def test_the_audit_shows_a_past_webhook_as_it_was(http: httpx.AsyncClient, event_id: str) -> None:
    key = await add_webhook(http, eventId=event_id, password="swordfish")
    then = (await http.get(f"{PATH}/{key}/event/")).json()
    await http.put(f"{PATH}/{key}/event/", json=FULL)
    await http.post(f"{PATH}/{key}/secret/")
    past = await http.get(f"/api/audit/webhook/{key}/state?version=1")
    assert past.json()["state"] == then
    assert (await http.get(f"/api/audit/webhook/{key}/state")).json()["state"] == {**then, **FULL, "password": None}


async def test_who_may_not_write_sees_no_credential_in_an_address(http: httpx.AsyncClient, inner: Core, event_id: str) -> None:
    """The address of many receivers is all that it takes to write to them."""
    url = "https://hooks.example.com/in?key=hunter2"
    viewer = {"API-KEY": await introduce(inner, "viewer", "viewer")}
    operator = {"API-KEY": await introduce(inner, "operator", "operator")}
    made = (await http.post("/api/webhook/", json={"webhookUrl": url})).json()["id"]
    await http.post("/api/webhook/event/", json={"eventId": event_id, "webhookUrl": url})
    paths = (
        "/api/webhook/",
        f"/api/webhook/{made}",
        f"/api/webhook/event/{event_id}",
        "/api/webhook/health",
        "/api/webhook/deliveries/",
    )
    for path in paths:
        seen = await http.get(path, headers=viewer)
        assert seen.status_code == 200, path
        assert "hunter2" not in seen.text, path
    for path in paths[:4]:
        assert "hunter2" in (await http.get(path, headers=operator)).text, path
        assert "https://hooks.example.com/in" in (await http.get(path, headers=viewer)).text, path
