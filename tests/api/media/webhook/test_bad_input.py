"""Invalid input of webhooks: 400 naming the field, on every route, and nothing is appended."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, add_webhook, assert_problem, fields_of, last

URL = "https://hooks.test/a"
JSON = "additionalPropertiesJson"


def headers(*entries: Any) -> str:
    return json.dumps({"headers": [{"name": name, "value": value} for name, value in entries]})


VALUES: dict[str, list[Any]] = {
    "webhookUrl": ["", " ", 7, [], True, "hooks.test", "ftp://a", "http://", "http://a:b@c", "http://a#b", "http://a b", "http://a:0",
                   "https://hooks.test/" + "a" * 2048, "http://h/\u00e4", "file:///etc/passwd", "http://h\r\nX: y"],
    "useHttpBasicAuthentication": ["", "yes", 2, [], {}],
    "useJsonBody": ["", "yes", 2, [], {}],
    "username": ["a:b", "a\nb", "\x7f", 7, [], "x" * 601],
    "password": ["a\nb", "\x7f", 7, [], {}, "x" * 1025],
    "disabledAt": ["", "soon", 7, True, [], "2031-13-01"],
    JSON: ["x", "{", "[]", "null", "7", 7, {}, {"headers": []}, '{"headers":[],"headers":[]}', '{"headers":NaN}'],
}  # fmt: skip
TEXTS: list[tuple[str, str]] = [
    ("headers", "{}"),
    ("headers", '{"headers": 7}'),
    ("more", '{"headers": [], "more": 1}'),
    ("headers[0].more", '{"headers": [{"name": "a", "value": "b", "more": 1}]}'),
    ("headers[0].name", '{"headers": [{"value": "b"}]}'),
    ("headers[0].value", '{"headers": [{"name": "a"}]}'),
    ("headers[0].name", headers(("", "a"))),
    ("headers[0].value", headers(("a", ""))),
    ("headers[0].value", headers(("a", None))),
    ("headers[0].value", headers(("Authorization", None))),
    ("headers[1].value", headers(("X-A", "a"), ("X-B", "b\r\nX-Evil: 1"))),
]
RESERVED = ["Host", "content-type", "Content-Length", "Connection", "Transfer-Encoding", "Webhook-Id", "Proxy-Authorization"]
NO_NAMES = ["a\r\nb", "a b", "\u00e4"]
BASIC = {"useHttpBasicAuthentication": True}
WRONG: list[tuple[str, dict[str, Any]]] = [
    *((name, {name: value}) for name, values in VALUES.items() for value in values),
    *((f"{JSON}.{place}", {JSON: text}) for place, text in TEXTS),
    *((f"{JSON}.headers[1].name", {JSON: headers(("X-A", "a"), (name, "b"))}) for name in RESERVED + NO_NAMES),
    *(("username", {**BASIC, **more}) for more in ({}, {"username": ""}, {"username": None})),
    (f"{JSON}.headers[0].name", {JSON: headers(("Authorization", "Bearer 1")), **BASIC, "username": "u"}),
]


@pytest.fixture
async def event_id(http: httpx.AsyncClient) -> str:
    return str((await add(http, Title="Final"))["id"])


async def test_bad_input_is_reported_by_field_on_every_route(http: httpx.AsyncClient, inner: Core, event_id: str) -> None:
    key, hook = await add_webhook(http), await add_webhook(http, eventId=event_id)
    before = await last(inner)
    for field, body in WRONG:
        whole = {"webhookUrl": URL, **body}
        answers = [
            await http.post("/api/webhook/", json=whole),
            await http.post("/api/webhook/", json={"id": key, **body}),
            await http.post("/api/webook/event/", json={"eventId": event_id, **whole}),
            await http.post("/api/webhook/event/", json={"eventId": event_id, **whole}),
            await http.put(f"/api/webhook/{key}", json=body),
            await http.put(f"/api/webhook/{hook}/event/", json=body),
        ]
        assert {tuple(fields_of(answer)) for answer in answers} == {(field,)}, body
    assert await last(inner) == before
    assert len(await inner.database.rows("SELECT owner FROM vault")) == 2


async def test_malformed_ids_are_400_and_unknown_ones_404(http: httpx.AsyncClient, inner: Core, event_id: str) -> None:
    before = await last(inner)
    malformed: list[Any] = [7, "x", "", [], UNKNOWN + "0"]
    for wrong in malformed:
        assert fields_of(await http.post("/api/webhook/", json={"id": wrong, "webhookUrl": URL})) == ["id"]
        for path in ("/api/webook/event/", "/api/webhook/event/"):
            assert fields_of(await http.post(path, json={"eventId": wrong, "webhookUrl": URL})) == ["eventId"]
    assert_problem(await http.post("/api/webhook/", json={"id": UNKNOWN, "webhookUrl": URL}), 404)
    assert_problem(await http.post("/api/webook/event/", json={"id": UNKNOWN, "eventId": event_id, "webhookUrl": URL}), 404)
    assert_problem(await http.put(f"/api/webhook/{UNKNOWN}", json={"useJsonBody": True}), 404)
    assert_problem(await http.put(f"/api/webhook/{UNKNOWN}/event/", json={"eventId": UNKNOWN}), 404)
    assert_problem(await http.delete(f"/api/webhook/{UNKNOWN}"), 404)
    assert_problem(await http.post(f"/api/webhook/{UNKNOWN}/secret/"), 404)
    assert fields_of(await http.put(f"/api/webhook/{UNKNOWN}", json={"webhookUrl": "x"})) == ["webhookUrl"]
    for method, path in (("GET", "x"), ("PUT", "x"), ("DELETE", "x"), ("GET", "x/event"), ("PUT", "x/event"), ("POST", "x/secret")):
        assert fields_of(await http.request(method, f"/api/webhook/{path}", json={})) == ["id"]
    for path in ("/api/webhook/event/x", "/api/webhook/notify/x"):
        assert fields_of(await http.request("POST" if "notify" in path else "GET", path)) == ["eventId"]
    assert await last(inner) == before


async def test_a_new_webhook_needs_an_address(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for body in ({}, {"webhookUrl": None}, {"useJsonBody": True}):
        assert fields_of(await http.post("/api/webhook/", json=body)) == ["webhookUrl"]
    for content_type in ("text/plain", "application/x-www-form-urlencoded"):
        assert_problem(await http.post("/api/webhook/", content=b"{}", headers={"content-type": content_type}), 415)
    assert await last(inner) == before
