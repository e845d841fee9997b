"""Secrets of webhooks: encrypted in the vault, shown once or never, and nowhere in the clear."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from api.kernel.log import JsonFormatter, RequestLog
from api.wiring.core import Core
from domain.webhook.endpoint import decode_secret
from tests.api.asking import add, add_webhook, assert_problem, fields_of, last, logged, topics
from tests.api.media.test_configuration_secrecy import tables
from tests.api.media.test_configuration_secrets import rows, secrets_of
from tests.support.clock import NOON

MARK = "swordfish"
SPELLINGS = (MARK, MARK.encode().hex(), "\\u0073wordfish", base64.b64encode(MARK.encode()).decode())
JSON = "additionalPropertiesJson"
SITE = {"name": "X-Site", "value": "main"}


def text(*headers: dict[str, Any]) -> str:
    return json.dumps({"headers": [*headers]})


def header(name: str, value: str | None) -> dict[str, Any]:
    return {"name": name, "value": value}


WITH_SECRETS = {
    "webhookUrl": "https://hooks.test/a",
    "username": "u",
    "password": f"{MARK}-1",
    JSON: text(SITE, header("Authorization", f"Bearer {MARK}-2"), header("X-Api-Key", f"{MARK}-3")),
}


async def opened(inner: Core, key: str) -> dict[str, str | None]:
    """The decrypted secrets of a webhook. The vault has no others."""
    result = await secrets_of(inner, f"webhook:{key}")
    assert len(await rows(inner)) == len(result)
    return result


@pytest.fixture
def lines() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def request_log(inner: Core, lines: io.StringIO) -> RequestLog:
    return RequestLog(lines, clock=inner.clock, reads=True)


async def test_credentials_are_in_the_vault_and_a_get_shows_null(http: httpx.AsyncClient, inner: Core) -> None:
    made = (await http.post("/api/webhook/", json=WITH_SECRETS)).json()
    assert await opened(inner, made["id"]) == {
        "signing": made["secret"],
        "password": f"{MARK}-1",
        "header:authorization": f"Bearer {MARK}-2",
        "header:x-api-key": f"{MARK}-3",
    }
    shown = (await http.get(f"/api/webhook/{made['id']}")).json()
    assert (shown["password"], shown[JSON]) == (None, text(SITE, header("Authorization", None), header("X-Api-Key", None)))
    assert len(decode_secret(made["secret"])) == 32


async def test_a_put_of_what_a_get_shows_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    event = (await add(http))["id"]
    for about, kind in (({}, ""), ({"eventId": event}, "/event/")):
        key = await add_webhook(http, **WITH_SECRETS, **about, disabledAt="2031-01-02T03:04:05.678Z")
        path = f"/api/webhook/{key}{kind}"
        shown, before, log = await http.get(path), await rows(inner), await last(inner)
        for body in (shown.json(), {**shown.json(), **WITH_SECRETS}):
            back = await http.put(path, json=body)
            assert (back.status_code, back.json(), back.headers["etag"]) == (200, shown.json(), '"1"')
        posted = await http.post(f"/api/webhook/{kind.lstrip('/')}", json=shown.json())
        assert (posted.json(), posted.headers["etag"]) == (shown.json(), '"1"')
        assert (await rows(inner), await last(inner)) == (before, log)


async def test_null_and_absent_keep_a_password_and_the_empty_text_clears_it(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_webhook(http, password="one")
    before = await rows(inner)
    for body in ({"password": None}, {"username": "u"}, {"password": "one"}):
        assert (await http.put(f"/api/webhook/{key}", json=body)).status_code == 200
        assert await rows(inner) == before
    await http.put(f"/api/webhook/{key}", json={"password": "two"})
    assert (await opened(inner, key))["password"] == "two"
    assert len(set(before) & set(await rows(inner))) == 1
    cleared = await http.put(f"/api/webhook/{key}", json={"password": ""})
    assert (await opened(inner, key)).keys() == {"signing"}
    assert (await http.put(f"/api/webhook/{key}", json={"password": ""})).headers["etag"] == cleared.headers["etag"]


async def test_a_credential_stays_with_its_header(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_webhook(http, **WITH_SECRETS)
    moved = text(header("x-api-key", None), header("Authorization", "Bearer new"), SITE)
    changed = await http.put(f"/api/webhook/{key}", json={JSON: moved})
    assert changed.json()[JSON] == moved.replace('"Bearer new"', "null")
    result = await opened(inner, key)
    assert (result["header:x-api-key"], result["header:authorization"]) == (f"{MARK}-3", "Bearer new")
    await http.put(f"/api/webhook/{key}", json={JSON: text(SITE)})
    assert (await opened(inner, key)).keys() == {"signing", "password"}
    before = await rows(inner)
    assert_problem(await http.put(f"/api/webhook/{key}", json={JSON: moved.replace('"Bearer new"', "null")}), 400)
    assert await rows(inner) == before
    await http.put(f"/api/webhook/{key}", json={JSON: None, "password": ""})
    assert (await opened(inner, key)).keys() == {"signing"}


async def test_a_new_secret_is_shown_once_and_the_old_one_kept_for_a_day(http: httpx.AsyncClient, inner: Core) -> None:
    first = (await http.post("/api/webhook/", json={"webhookUrl": "https://hooks.test/a"})).json()
    path = f"/api/webhook/{first['id']}/secret/"
    second = await http.post(path)
    assert (second.status_code, second.json().keys(), second.headers["cache-control"]) == (200, {"secret"}, "no-store")
    assert await opened(inner, first["id"]) == {"signing": second.json()["secret"], "previous": first["secret"]}
    event = (await logged(inner, f"webhook:{first['id']}"))[1]
    assert event.topic == "webhook.amended"
    assert event.data["previous_until"] == (NOON + timedelta(hours=24)).isoformat().replace("+00:00", "Z")
    third = (await http.post(path, json={"anything": 1})).json()
    assert await opened(inner, first["id"]) == {"signing": third["secret"], "previous": second.json()["secret"]}
    assert len({first["secret"], second.json()["secret"], third["secret"]}) == 3
    of_event = await add_webhook(http, eventId=(await add(http))["id"])
    assert (await http.post(f"/api/webhook/{of_event}/secret")).status_code == 200


async def test_after_many_concurrent_rotations_two_secrets_are_stored(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_webhook(http)
    answers = await asyncio.gather(*(http.post(f"/api/webhook/{key}/secret/") for _ in range(10)))
    assert await topics(inner, f"webhook:{key}") == ["webhook.registered", *["webhook.amended"] * 10]
    remaining = await opened(inner, key)
    assert set(remaining.values()) < {answer.json()["secret"] for answer in answers}


async def test_a_repeat_shows_everything_but_the_secret(http: httpx.AsyncClient, inner: Core) -> None:
    for number, (path, body) in enumerate(
        (("/api/webhook/", WITH_SECRETS), ("/api/webook/event/", {**WITH_SECRETS, "eventId": (await add(http))["id"]}))
    ):
        first, again = [await http.post(path, json=body, headers={"Idempotency-Key": f"{number}"}) for _ in range(2)]
        assert again.json() == {**first.json(), "secret": None}
        assert (again.headers["idempotency-replayed"], again.headers["etag"]) == ("true", '"1"')
        rotate = f"/api/webhook/{first.json()['id']}/secret/"
        new, repeated = [await http.post(rotate, headers={"Idempotency-Key": f"r{number}"}) for _ in range(2)]
        assert (len(new.json()["secret"]), repeated.json()) == (50, {"secret": None})
        assert await topics(inner, f"webhook:{first.json()['id']}") == ["webhook.registered", "webhook.amended"]


async def test_no_secret_is_found_in_the_clear(
    http: httpx.AsyncClient,
    inner: Core,
    database_url: str,
    request_log: RequestLog,
    lines: io.StringIO,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(0)
    caplog.handler.setFormatter(JsonFormatter())
    made = await http.post("/api/webhook/", json=WITH_SECRETS, headers={"Idempotency-Key": "1"})
    key, signing = made.json()["id"], [made.json()["secret"]]
    answers = [made.text.replace(signing[0], "")]
    signing.append((await http.post(f"/api/webhook/{key}/secret/", headers={"Idempotency-Key": "2"})).json()["secret"])
    wrong = WITH_SECRETS[JSON].replace("X-Api-Key", "Host")
    for body in (
        {JSON: wrong},
        {JSON: wrong[:-1]},
        {"password": f"{MARK}\n"},
        {"password": [MARK]},
        {"webhookUrl": f"http://{MARK}@h"},
    ):
        refused = await http.put(f"/api/webhook/{key}", json=body)
        assert refused.status_code == 400
        answers.append(refused.text)
    answers.append((await http.put(f"/api/webhook/{key}", json={**WITH_SECRETS, "password": f"{MARK}-4"})).text)
    audit = (f"audit/webhook/{key}", f"audit/webhook/{key}/state?version=1", "audit/events/", "log/useraudit/")
    answers += [(await http.get(f"/api/{path}")).text for path in (f"webhook/{key}", "webhook", *audit)]
    answers.append((await http.post("/api/webhook/", json=WITH_SECRETS, headers={"Idempotency-Key": "1"})).text)
    dumped = tables(database_url)
    answers.append((await http.delete(f"/api/webhook/{key}")).text)
    request_log.flush()
    places = [*dumped.items(), *enumerate(answers), ("log", caplog.text), ("requests", lines.getvalue())]
    assert "hooks.test" in dumped["record_view"], "the search looks at what it should"
    assert b"hooks.test".hex() in dumped["events"]
    assert dumped["vault"].count("\n") == 4
    for secret in signing:
        assert [name for name, shown in places if secret in shown or secret.encode().hex() in str(shown)] == []
        assert [name for name, shown in places if decode_secret(secret).hex() in shown or secret[6:] in shown] == []
    for spelling in SPELLINGS:
        assert [name for name, shown in places if spelling in shown] == []


async def test_credentials_are_not_sent_to_a_new_address(http: httpx.AsyncClient, inner: Core) -> None:
    """Otherwise every operator could have those of another sent to a host of its own."""
    key = await add_webhook(http, **WITH_SECRETS)
    refused = await http.put(f"/api/webhook/{key}", json={"webhookUrl": "https://hooks.test:444/a"})
    fields = {"password", f"{JSON}.headers[1].value", f"{JSON}.headers[2].value"}
    assert set(fields_of(refused)) == fields
    assert MARK not in refused.text
    posted = await http.post("/api/webhook/", json={"id": key, "webhookUrl": "http://hooks.test/a"})
    assert set(fields_of(posted)) == fields
    assert (await http.get(f"/api/webhook/{key}")).json()["webhookUrl"] == WITH_SECRETS["webhookUrl"]
    brought = await http.put(f"/api/webhook/{key}", json={**WITH_SECRETS, "webhookUrl": "https://other.test/"})
    assert brought.status_code == 200
    assert len(await opened(inner, key)) == 4
