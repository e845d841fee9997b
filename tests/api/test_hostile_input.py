"""Hostile input to every route is answered with a 4xx and a problem body, and appends nothing.

The requests are generated from the declarations, so that a new route is attacked from its first day.
"""

from __future__ import annotations

import json
import random
import re
import string
from pathlib import Path
from typing import Any, get_origin

import httpx
import pytest

from api.http.routing import Route, routes_of
from api.kernel.wire import wire_names
from api.speke.surface import KEY_PROVIDER
from api.wiring.core import Core
from api.wiring.services import ROUTES
from tests.api.asking import (
    UNKNOWN,
    add,
    add_room,
    engine_error,
    event,
    last,
    patch,
    replace,
)
from tests.api.media.webhook.callbacks_given import add_callback
from tests.api.valid_bodies import (
    CALLBACK,
    COMPOSED,
    COMPOSED_FOR_ENCODER,
    DESTINATION_PROPERTY,
    EVENT,
    EVENT_WEBHOOK,
    VALID,
    model_in,
    things,
)

DECLARATIONS = {
    f"{spec.method} {spec.documented_path}": spec
    for spec in routes_of(ROUTES)
    if spec.surface is not KEY_PROVIDER and spec.documented_path != "/console/{path}"
}
"""The key provider takes XML and answers in plain text; tests/api/speke attacks it. Any path below the console is a page of it."""
ANYTHING_GOES = {"POST /api/log/exception/"}
"""Takes any JSON and any text; tests/api/media/test_log_exceptions.py attacks it."""
SIGNED = {"POST /api/provision/callback/{template}/{infrastructure}"}
"""401 whatever is sent, unless a service has signed it; tests/api/media/provision/test_callback.py attacks it."""
ANY_TEXT = {
    "GET /api/tag/exists/{text}",
    "DELETE /api/vodpublications/all/{contentId}",
    "GET /api/vodpublications/transactionId/{transactionId}",
    "GET /api/media/vodpublication/transactionId/{transactionId}",
    "GET /api/media/livepublication/transactionId/{transactionId}",
}
"""Answer for any text in their paths. tests/api/media/test_tag.py attacks the first; the second deletes what it finds; the others
find what was sent with this transaction id."""
WITH_BODY = {
    name: entry for name, entry in DECLARATIONS.items() if entry.signature.body is not None and name not in ANYTHING_GOES | SIGNED
}

NOTHING = object()
ODD = b'{"odd": 1}'
TAKES_ODD = {("POST /api/compose/", "event"), ("PUT /api/compose/event/{eventId}", "loudness")}
"""Objects of which every member may be absent. Members that nobody knows are ignored."""
WRONG_FOR_EVERY_FIELD = [
    ODD,
    b"[[1]]",
    b"[{}]",
    b"1e400",
    b"-1e400",
    b"NaN",
    b"1" + b"0" * 80,
    b"9" * 5000,
    b'"\\u0000"',
    b'"a\\ud800b"',
    b'"\\udc00"',
    b'"\x00"',
    b'"\xff\xfe"',
    b'"\xed\xa0\x80"',
    b"[" * 10_000 + b"]" * 10_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    b"",
    b"'x'",
    b"undefined",
]
NO_BODY_AT_ALL = [
    b" ",
    b"{",
    b"}",
    b'"text"',
    b"7",
    b"true",
    b"\x00",
    b"\xff\xfe{\x00}\x00",
    b"\xed\xa0\x80",
    b'{"a": 1} {"b": 2}',
    b"{'a': 1}",
    b"<?xml version='1.0'?>",
    b"a=1&b=2",
    b"[" * 10_000 + b"]" * 10_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    b"[" * 100_000,
]
BAD_PATHS = [
    "%00", "%ff", "%ed%a0%80", "%c0%af", "a%00b", "%2e%2e%2fetc", "'%3B%20DROP%20TABLE%20events%3B--", "%25s", "{}", "x" * 5000,
    "%F0%9F%8E%AC", "-1", "1e999", UNKNOWN + "0", "%0d%0aX-Evil%3A%201",
]  # fmt: skip
BAD_QUERIES = ["%ff", "%00", "%", "%zz", "a%ed%a0%80", "%c0%af", "%F0%28"]


@pytest.fixture
async def ids(http: httpx.AsyncClient, inner: Core, media_root: Path) -> dict[str, str]:
    service = {"template": "aws", "infrastructure": "0" * 32, "level": "0", "place": "000"}
    return {**await things(http, media_root), **service, CALLBACK: await add_callback(inner)}


def address(declaration: Route, ids: dict[str, str]) -> str:
    ids = {**ids, "id": ids.get(resource(declaration), ids["id"])}
    if declaration.documented_path.startswith("/api/compose/") and ids["eventId"] == EVENT:
        ids["eventId"] = COMPOSED_FOR_ENCODER if "/encoder/" in declaration.documented_path else COMPOSED
    return re.sub(r"\{\+?(\w+)\}", lambda record: ids[record[1]], declaration.documented_path)


def resource(declaration: Route) -> str:
    """Return the resource that `{id}` belongs to: the segment before it, such as `room`. Webhooks are three families with one
    such segment."""
    if declaration.documented_path.endswith("/webhook/{id}/callback/"):
        return CALLBACK
    if declaration.documented_path.endswith("/webhook/{id}/event/"):
        return EVENT_WEBHOOK
    if declaration.documented_path.endswith("/destinationproperty/id/{id}"):
        return DESTINATION_PROPERTY
    return declaration.documented_path.partition("/{id}")[0].rpartition("/")[2]


def media_type(declaration: Route) -> str:
    return declaration.rules.body_types[0][0]


def wrapped(declaration: Route, body: bytes) -> bytes:
    return b"[" + body + b"]" if takes_list(declaration) else body


def takes_list(declaration: Route) -> bool:
    body = declaration.signature.body_type
    return get_origin(getattr(body, "__origin__", None) or body) is list


def spoilt(valid: dict[str, Any], name: str, raw: bytes) -> bytes:
    """The valid body with one member's value replaced by raw bytes."""
    members = [
        json.dumps(key).encode() + b":" + json.dumps(value).encode() for key, value in valid.items() if key.lower() != name.lower()
    ]
    return b"{" + b",".join([*members, json.dumps(name).encode() + b":" + raw]) + b"}"


def fields(declaration: Route) -> list[str]:
    model = next(model_in(declaration.signature.body_type))
    return [wire_names(model, name)[0] for name in model.model_fields]


async def send(http: httpx.AsyncClient, declaration: Route, path: str, body: bytes) -> httpx.Response:
    headers = {"content-type": media_type(declaration), "client": "admin"}
    return await http.request(declaration.method, path, content=body, headers=headers)


def refused(answer: httpx.Response, *context: object) -> None:
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text[:300], *context)
    assert len(answer.content) < 20_000, context
    if answer.request.url.path.startswith("/engine"):
        assert engine_error(answer, answer.status_code)
        return
    assert answer.headers["content-type"] == "application/problem+json", context
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["transactionId"] == answer.headers["x-transaction-id"]


def test_every_route_with_a_body_is_attacked() -> None:
    assert sorted(VALID) == sorted(WITH_BODY)


async def test_the_bodies_that_are_spoilt_would_be_carried_out(http: httpx.AsyncClient, ids: dict[str, str]) -> None:
    for name, declaration in WITH_BODY.items():
        body = wrapped(declaration, json.dumps(VALID[name]).encode())
        assert (await send(http, declaration, address(declaration, ids), body)).status_code in (200, 201), name


async def test_no_field_takes_what_it_cannot_mean(http: httpx.AsyncClient, inner: Core, ids: dict[str, str]) -> None:
    before = await last(inner)
    for name, declaration in WITH_BODY.items():
        path = address(declaration, ids)
        for field in fields(declaration):
            for raw in WRONG_FOR_EVERY_FIELD:
                if raw == ODD and (name, field) in TAKES_ODD:
                    continue
                body = wrapped(declaration, spoilt(VALID[name], field, raw))
                refused(await send(http, declaration, path, body), name, field, raw[:20])
    assert await last(inner) == before


async def test_no_field_may_be_there_in_two_spellings(http: httpx.AsyncClient, inner: Core, ids: dict[str, str]) -> None:
    before = await last(inner)
    for name, declaration in WITH_BODY.items():
        for field in fields(declaration):
            value = json.dumps(VALID[name].get(field)).encode()
            twice = spoilt(VALID[name], field, value)[:-1] + b"," + json.dumps(field.upper()).encode() + b":" + value + b"}"
            refused(await send(http, declaration, address(declaration, ids), wrapped(declaration, twice)), name, field)
    assert await last(inner) == before


async def test_what_is_no_body_is_refused(http: httpx.AsyncClient, inner: Core, ids: dict[str, str]) -> None:
    before = await last(inner)
    for name, declaration in WITH_BODY.items():
        optional = declaration.signature.body.default is None  # type: ignore[union-attr]
        other = [b"{}", b"[7]", b"[[]]", b"[null]"] if takes_list(declaration) else [b"[]", b"[{}]"]
        for body in (*NO_BODY_AT_ALL, *other, *([] if optional else [b"", b"null"])):
            refused(await send(http, declaration, address(declaration, ids), body), name, body[:20])
    assert await last(inner) == before


async def test_ten_megabytes_are_413_to_every_write(http: httpx.AsyncClient, inner: Core, ids: dict[str, str]) -> None:
    before = await last(inner)
    huge = b'{"Title": "' + b"x" * 10_000_000 + b'"}'

    async def in_pieces() -> Any:
        for _ in range(20):
            yield b" " * 500_000

    for name, declaration in DECLARATIONS.items():
        if declaration.method != "GET" and not declaration.documented_path.startswith(
            "/origin/"
        ):  # which takes segments of any size
            answer = await send(http, declaration, address(declaration, ids), huge)
            refused(answer, name)
            assert answer.status_code == 413, name
        if name in WITH_BODY:
            headers = {"content-type": media_type(declaration), "client": "admin"}
            answer = await http.request(declaration.method, address(declaration, ids), content=in_pieces(), headers=headers)
            assert answer.status_code == 413, name
    assert await last(inner) == before


async def test_a_mebibyte_is_just_not_too_much(http: httpx.AsyncClient) -> None:
    frame = len(b'{"Description": ""}')
    text = "".join(random.Random(7).choices(string.ascii_letters, k=1024 * 1024 - frame))
    answer = await http.post("/api/event/", content=json.dumps({"Description": text}).encode())
    assert answer.status_code == 200
    assert (await event(http, answer.json()["id"]))["description"] == text
    assert (await http.post("/api/event/", content=json.dumps({"Description": text + "x"}).encode())).status_code == 413


async def test_what_is_indexed_may_have_600_characters_of_any_script(http: httpx.AsyncClient, inner: Core) -> None:
    """The characters are random and do not compress: an index entry of PostgreSQL holds about 2,700 bytes."""
    text = "".join(chr(random.Random(7 + n).randrange(0x20000, 0x2A000)) for n in range(600))
    room = await add_room(http, text, referenceId=text)
    shown = await add(http, Title=text, RefId=text, ExternalId=text, RoomId=room, Tags=[{"name": text}])
    for asked in ({"room": text}, {"tags": text}, {"search": text}, {"orderColumn": "Title"}):
        assert (await http.get("/api/event/", params=asked)).json()["results"] == [shown]
    before = await last(inner)
    longer = text + "x"
    for body in ({"Title": longer}, {"RefId": longer}, {"ExternalId": longer}, {"Tags": [{"name": longer}]}):
        assert (await http.post("/api/event/", json=body)).status_code == 400
        if "Tags" not in body:
            name, value = next(iter(body.items()))
            assert (await patch(http, shown["id"], replace(f"/{name}", value))).status_code == 400
    for body in ({"name": longer}, {"name": "x", "referenceId": longer}):
        assert (await http.post("/api/room/", json=body)).status_code == 400
        assert (await http.put(f"/api/room/{room}", json=body)).status_code == 400
    assert await last(inner) == before


async def test_more_tags_or_steps_than_anybody_needs_are_400(http: httpx.AsyncClient, inner: Core, ids: dict[str, str]) -> None:
    before = await last(inner)
    many = [{"name": f"tag {n}"} for n in range(1001)]
    steps = [replace("/Title", f"{n}") for n in range(1001)]
    refused(await http.post("/api/event/", json={"Tags": many}))
    refused(await patch(http, ids["id"], replace("/Tags", many)))
    refused(await patch(http, ids["id"], *steps))
    assert await last(inner) == before
    assert (await http.post("/api/event/", json={"Tags": many[:1000]})).status_code == 200
    assert (await patch(http, ids["id"], *steps[:1000])).json()["title"] == "999"


async def test_other_content_types_are_415_everywhere(http: httpx.AsyncClient, inner: Core, ids: dict[str, str]) -> None:
    before = await last(inner)
    for name, declaration in WITH_BODY.items():
        body = wrapped(declaration, json.dumps(VALID[name]).encode())
        for content_type in (
            "text/plain",
            "application/xml",
            "application/x-ndjson",
            "nonsense",
            "application/json; charset=utf-16",
        ):
            answer = await http.request(
                declaration.method,
                address(declaration, ids),
                content=body,
                headers={"content-type": content_type, "client": "admin"},
            )
            refused(answer, name, content_type)
            assert answer.status_code == 415, (name, content_type)
    assert await last(inner) == before


async def test_no_path_segment_breaks_anything(http: httpx.AsyncClient, inner: Core, ids: dict[str, str]) -> None:
    before = await last(inner)
    for name, declaration in DECLARATIONS.items():
        for parameter in () if name in ANY_TEXT else declaration.signature.path:
            for bad in BAD_PATHS:
                path = address(
                    declaration, {**ids, parameter[1]: bad, **({resource(declaration): bad} if parameter[1] == "id" else {})}
                )
                body = wrapped(declaration, json.dumps(VALID[name]).encode()) if name in VALID else b""
                refused(await send(http, declaration, path, body), name, bad[:30])
    assert await last(inner) == before


async def test_no_query_breaks_anything(http: httpx.AsyncClient, inner: Core, ids: dict[str, str]) -> None:
    before = await last(inner)
    for name, declaration in DECLARATIONS.items():
        model = declaration.signature.query
        if model is None:
            continue
        names = [wire_names(model, field)[0] for field in model.model_fields]
        for parameter in (*names, "unheard-of"):
            for bad in BAD_QUERIES:
                for query in (f"{parameter}={bad}", f"{bad}={parameter}"):
                    # The body is sent as bytes, because a client library would correct the escapes.
                    path = f"{address(declaration, ids)}?{query}".encode()
                    url, headers = http.base_url.copy_with(raw_path=path), {"client": "admin"}
                    answer = await http.send(http.build_request("GET", url, headers=headers))
                    refused(answer, name, query)
    assert await last(inner) == before


SQL = [
    "'; DROP TABLE event_view; --", "' OR '1'='1", "Robert'); DELETE FROM events;--", '"; SELECT 1; --', "%s %(limit)s %% {} {0}",
    "$1 $2", "E'\\n'", "\\", "\\\\", "\\x00", "''", '""', "--", "/* x */", "%", "_", "a,b", "tab\tand\r\nlines",
    "\x01\x1f\x7f", "line\u2028\u2029",
    "\ufeffbom", "e\u0301", "\U0010ffff", "null", "NULL", "[]", "{}", "0", "false", "-1", "A" * 599,
]  # fmt: skip


async def test_texts_are_stored_verbatim_and_found_as_plain_text(http: httpx.AsyncClient, inner: Core) -> None:
    for text in SQL:
        room = await add_room(http, text, referenceId=text)
        names = ("Title", "RefId", "ExternalId", "Description", "Thumbnail", "AdditionalStreamingOptions")
        shown = await add(http, RoomId=room, Tags=[{"name": text}], DrmJson=json.dumps(text), **dict.fromkeys(names, text))
        assert await event(http, shown["id"]) == shown
        for name in ("title", "refId", "externalId", "description", "thumbnail", "additionalStreamingOptions", "room"):
            assert shown[name] == text, name
        assert shown["drmJson"] == json.dumps(text)
        assert [tag["name"] for tag in (await http.get(f"/api/tag/event/{shown['id']}")).json()] == [text]
        assert (await http.get("/api/event/reference", params={"id": text})).json() == shown
        assert (await http.get("/api/event/external", params={"id": text})).json() == shown
        assert (await http.get("/api/event/external/unique", params={"id": text})).json()["Value"] == text
        assert (await http.get("/api/room/reference", params={"id": text})).json()["Name"] == text
        for asked in ({"room": text}, {"search": text}, *([] if "," in text or text.strip() != text else [{"tags": text}])):
            result = (await http.get("/api/event/", params={**asked, "pageSize": "1000"})).json()
            assert shown in result["results"], (asked, text)
            assert asked.keys() == {"search"} or result["totalCount"] == 1, (asked, text)
        for asked in ({"actor": text}, {"type": text}, {"aggregate": text}, {"id": text}, {"transactionId": text}):
            assert (await http.get("/api/audit/events/", params=asked)).json()["results"] == []
        patched = await patch(http, shown["id"], {"op": "test", "path": "/title", "value": text}, replace("/Title", text + "x"))
        assert patched.json()["title"] == text + "x"
    assert (await http.get("/api/audit/verify")).json()["valid"] is True


async def test_absurd_numbers_in_pages_are_refused_or_harmless(http: httpx.AsyncClient, ids: dict[str, str]) -> None:
    for path in ("/api/event/", "/api/event/deleted/", f"/api/room/{ids['room']}/events/"):
        for name in ("pageSize", "pageNumber"):
            for absurd in ("0", "-1", "9" * 20, "9" * 5000, "1e9", "0x10", "１", "1_0", "NaN", "+1", " 1", "true"):
                refused(await http.get(path, params={name: absurd}), path, name, absurd)
            for large in (2**31, 2**40, 10**15, 2**63 - 1):
                assert (
                    await http.get(path, params={name: large, "pageSize" if name == "pageNumber" else "x": 1000})
                ).status_code == 200


async def test_headers_of_any_kind_break_nothing(http: httpx.AsyncClient, inner: Core, ids: dict[str, str]) -> None:
    before = await last(inner)
    key = http.headers["API-KEY"].encode()
    for name in (b"x-transaction-id", b"idempotency-key", b"client", b"content-type", b"content-encoding", b"api-key"):
        for value in (b"\xff\xfe", b"x" * 70_000, b"\x01", b"\xe6\x97\xa5"):
            sent = [(b"api-key", key), (b"content-type", b"application/json")]
            sent = [*(pair for pair in sent if pair[0] != name), (name, value)]
            refused(await http.post("/api/event/", content=b'{"Title": "x"}', headers=sent), name, value[:9])
    for name in (b"if-match", b"host", b"accept", b"content-length"):
        answer = await http.get(f"/api/event/{ids['id']}", headers=[(b"api-key", key), (name, b"\xff\xfe")])
        assert answer.status_code in (200, 400)
    assert await last(inner) == before


ODD_PATHS = [
    "/%00", "//", "/api//room/", "/api/%2f", "/api/room/%2e%2e/x", "/api/event/%2F/%00/x", "/api/room%00",
    "/engine/%00", "/engine/%2e%2e/api", "/%00/speke", "/%ff/speke/heartbeat", "/%2e/speke", "/" + "a/" * 5000,
]  # fmt: skip


async def test_odd_paths_and_methods_are_4xx(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for path in ODD_PATHS:
        for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "TRACE", "ODD"):
            url = http.base_url.copy_with(raw_path=path.encode())
            answer = await http.send(http.build_request(method, url, headers={"client": "admin"}))
            assert answer.status_code in (400, 401, 404, 405), (method, path[:30], answer.status_code)
    assert await last(inner) == before
