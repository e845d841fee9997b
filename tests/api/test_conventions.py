"""Conventions of all routes: ETags, Idempotency-Key, X-Transaction-ID, both slashes, a client reads its own writes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.http.app import Application
from api.http.routing import routes_of
from api.wiring.core import Core
from api.wiring.services import ROUTES
from domain.kernel.clock import iso, to_milliseconds
from tests.api.asking import UNKNOWN, add, add_room, assert_problem, event, fields_of, last, logged, patch, replace, version_of
from tests.support.application import introduce
from tests.support.clock import HandClock

LISTS = [spec for spec in routes_of(ROUTES) if spec.lists]


def test_an_empty_parameter_of_a_list_is_an_absent_one() -> None:
    """A search form sends all of its fields. Filters of custom properties find what is empty; other reads have no filters."""
    for spec in LISTS:
        query, parser = spec.signature.query, spec.query
        if query is None or parser is None or query.EMPTY_IS_SENT:
            continue
        names = [name for name in sorted(query.optional()) if name in {spelling.lower() for spelling in query.spellings().values()}]
        required = "".join(f"{name}=5&" for name in query.spellings().values() if name.lower() not in query.optional())
        unknown: list[Any] = []
        for empty in (*(f"{name}=" for name in names), "&".join(names)):
            assert parser.parse(f"{required}{empty}".encode(), unknown) == parser.parse(required.encode(), unknown), spec.where
        assert not unknown
    retained = {spec.documented_path for spec in LISTS if (query := spec.signature.query) is not None and query.EMPTY_IS_SENT}
    assert retained == {f"/api/{of}/customproperty/" for of in ("category", "chapterpoint")} | {
        "/api/media/destinationproperty/all/{destinationId}"
    }
    assert len(LISTS) > 40


async def test_fixed_segments_of_paths_match_in_any_case(http: httpx.AsyncClient, application: Application) -> None:
    for spec in (spec for spec in routes_of(ROUTES) if spec.surface.name in ("media", "audit", "engine", "key provider")):
        for spelled in (str.upper, str.lower, str.title):
            segments = [part if part.startswith("{") else spelled(part) for part in spec.documented_path.split("/")]
            scope: dict[str, Any] = {"raw_path": "/".join(segments).encode(), "method": spec.method}
            entry = application.trie.find(scope)
            assert entry.path == spec.documented_path, (segments, entry.path)
            assert list(scope["path_params"].values()) == [part for part in segments if part.startswith("{")]
    key = (await add(http, RefId="Cup"))["id"]
    shown = await http.get(f"/API/Event/{key}")
    assert (shown.status_code, shown.json()["id"]) == (200, key)
    assert (await http.get("/api/event/Reference", params={"id": "Cup"})).json()["id"] == key
    refused = await http.delete("/API/EVENT/")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, POST")
    for path in ("/Metrics", "/LiveZ", "/Console/", "/Media/x/y.mp4", "/Origin/x", "/API/events"):
        assert_problem(await http.get(path), 404)
    assert "detail" not in (await http.get("/ENGINE/nothing")).json()


async def test_the_empty_fields_of_a_search_form_find_everything(http: httpx.AsyncClient) -> None:
    await add(http, Title="only")
    listed = "search room eventType channel category eventState tags ids skipEvents from to fromModified toModified provisionState"
    form = dict.fromkeys([*listed.split(), "noScheduledEnd", "orderColumn", "order", "pageSize", "pageNumber", "noCache"], "")
    answer = await http.get("/api/event/", params=form)
    assert [shown["title"] for shown in answer.json()["results"]] == ["only"]
    assert "warning" not in answer.headers
    await add(http, Title="another")
    second = await http.get("/api/event/", params={**form, "pageSize": "1", "pageNumber": ""})
    assert 'pageNumber=2>; rel="next"' in second.headers["link"]
    publications = await http.get("/api/vodpublications/", params={"orderBy": "", "from": "", "pageSize": "", "targetFilter": ""})
    assert (publications.status_code, publications.json()["pageSize"]) == (200, 20)


async def test_what_keeps_an_empty_parameter(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    for path in ("event/reference", "event/external", "event/external/unique", "room/reference", "channel/reference"):
        assert fields_of(await http.get(f"/api/{path}", params={"id": ""})) == ["id"]
    assert fields_of(await http.get(f"/api/event/{key}", params={"in": ""})) == ["in"]
    assert (await http.delete("/api/asset/", params={"eventId": ""})).status_code == 400
    assert (await http.delete("/api/category/customproperty/", params={"categoryId": ""})).status_code == 400


@pytest.mark.parametrize("sent", ["2031-01-02T03:04:05+01:00", "2031-01-02T03:04:05.123+0100", "2031-01-02 03:04+01"])
async def test_an_offset_needs_no_escape_in_a_query(http: httpx.AsyncClient, sent: str) -> None:
    moment = to_milliseconds(datetime.fromisoformat(sent)).astimezone(UTC)
    key = (await add(http, ScheduledStart=iso(moment)))["id"]
    for bound in ("from", "to"):
        answer = await http.get(f"/api/event/?{bound}={sent.replace(' ', '%20')}")
        assert [shown["id"] for shown in answer.json()["results"]] == [key], answer.text
    video = await http.get(f"/api/event/{key}?processVideo=true&in={sent.replace(' ', 'T')}")
    assert video.json()["video"]["requestedStreamTime"]["inPointDateTime"] == iso(moment)
    for path in ("/api/log/?fromDate=", "/api/vodpublications/?to=", "/engine/jobs?from=", "/api/audit/events/?from="):
        headers = {"client": "admin"} if path.startswith("/engine") else {}
        assert (await http.get(f"{path}{sent.replace(' ', 'T')}", headers=headers)).status_code < 300, path


@pytest.mark.parametrize("sent", ["2031-01-02+03:04", "2031-01-02%2003:04"])
async def test_a_blank_between_date_and_time_stays_one(http: httpx.AsyncClient, sent: str) -> None:
    key = (await add(http, ScheduledStart="2031-01-02T03:04:00Z"))["id"]
    assert [shown["id"] for shown in (await http.get(f"/api/event/?from={sent}&to={sent}")).json()["results"]] == [key]
    assert (await http.get("/api/event/?from=2031-01-02T03:04:05++01:00")).status_code == 400
    answer = await http.post("/api/event/", json={"scheduledStart": "2031-01-02T03:04:05 01:00"})
    assert fields_of(answer) == ["scheduledStart"]


async def test_etags_are_versions_and_every_write_answers_the_new_one(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    for version, answer in enumerate(
        (
            await http.get(f"/api/event/{key}"),
            await http.post("/api/event/", json={"Id": key, "Title": "a"}),
            await patch(http, key, replace("/Title", "b")),
            await http.post(f"/api/event/stream/dvrwindowlength/{key}", json={"DvrWindowLength": 1}),
            await http.post("/api/event/flow/add/", json={"Id": key, "TaskEngineJson": "{}"}),
            await http.put(f"/api/event/state/{key}", json={"state": 10}),
            await http.put(f"/api/event/flow/protection/{key}", json={"Protection": 11}),
            await http.put(f"/api/event/forcestop/{key}"),
            await http.delete(f"/api/event/{key}"),
            await http.put(f"/api/event/restore/{key}"),
        ),
        1,
    ):
        assert (answer.status_code, version_of(answer)) == (200, version)
    for path in (key, "reference?id=r", "external?id=x"):
        await http.post("/api/event/", json={"Id": key, "RefId": "r", "ExternalId": "x"})
        assert version_of(await http.get(f"/api/event/{path}")) == 11


async def test_if_match_lets_only_the_current_version_through(http: httpx.AsyncClient, inner: Core) -> None:
    key, room = (await add(http, RefId="r", EventState=10))["id"], await add_room(http)
    before = await last(inner)

    async def writes(tag: str) -> list[httpx.Response]:
        headers = {"If-Match": tag}
        return [
            await http.post("/api/event/", json={"Id": key, "Title": "x"}, headers=headers),
            await patch(http, key, replace("/Title", "x"), **headers),
            await patch(http, "/api/event/reference/r", replace("/Title", "x"), **headers),
            await patch(http, key, {"op": "test", "path": "/Title", "value": "no"}, **headers),
            await http.post(f"/api/event/stream/dvrwindowlength/{key}", json={"DvrWindowLength": 1}, headers=headers),
            await http.post("/api/event/flow/add/", json={"Id": key, "TaskEngineJson": "{}"}, headers=headers),
            await http.put(f"/api/event/state/{key}", json={"state": 10}, headers=headers),
            await http.put(f"/api/event/flow/protection/{key}", json={"Protection": 4}, headers=headers),
            await http.put(f"/api/event/forcestop/{key}", headers=headers),
            await http.put(f"/api/event/restore/{key}", headers=headers),
            await http.delete(f"/api/event/{key}", headers=headers),
            await http.put(f"/api/room/{room}", json={"name": "x"}, headers=headers),
            await http.delete(f"/api/room/{room}", headers=headers),
        ]

    for tag in ('"99"', '"x"', "1", 'W/"2"', ""):
        for answer in await writes(tag):
            assert_problem(answer, 412)
    assert await last(inner) == before
    for tag in ('"2"', '"1", "2"', "*"):
        current = await http.get(f"/api/event/{key}")
        answer = await patch(http, key, {"op": "test", "path": "/refId", "value": "r"}, **{"If-Match": tag})
        assert (answer.status_code, version_of(answer)) == (200, version_of(current))


async def test_404_and_400_come_before_412(http: httpx.AsyncClient) -> None:
    headers = {"If-Match": '"99"'}
    for answer in (
        await patch(http, UNKNOWN, replace("/Title", "x"), **headers),
        await http.put(f"/api/event/state/{UNKNOWN}", json={"state": 1}, headers=headers),
        await http.put(f"/api/event/forcestop/{UNKNOWN}", headers=headers),
        await http.delete(f"/api/event/{UNKNOWN}", headers=headers),
        await http.put(f"/api/event/restore/{UNKNOWN}", headers=headers),
        await http.put(f"/api/room/{UNKNOWN}", json={"name": "x"}, headers=headers),
        await http.delete(f"/api/room/{UNKNOWN}", headers=headers),
    ):
        assert_problem(answer, 404)
    key = (await add(http))["id"]
    assert_problem(await patch(http, key, replace("/odd", "x"), **headers), 400)
    assert_problem(await http.put(f"/api/event/state/{key}", json={"state": 99}, headers=headers), 400)
    assert_problem(await http.post("/api/event/", json={"Id": key, "RoomId": UNKNOWN}, headers=headers), 400)


async def test_a_post_with_a_key_is_carried_out_once_and_told_the_same(http: httpx.AsyncClient, inner: Core) -> None:
    posts: list[tuple[str, Any]] = [
        ("/api/event/", {"Title": "Final", "Tags": [{"name": "a"}]}),
        ("/api/event/flow/add/", {"TaskEngineJson": "{}"}),
        ("/api/room/", {"name": "Main hall"}),
    ]
    for number, (path, body) in enumerate(posts):
        headers = {"Idempotency-Key": f"key {number}"}
        first = await http.post(path, json=body, headers=headers)
        after = await last(inner)
        again = await http.post(path, json=body, headers=headers)
        assert again.content == first.content
        assert again.status_code == first.status_code
        assert again.headers["idempotency-replayed"] == "true"
        for name in ("etag", "location", "content-type"):
            assert again.headers.get(name) == first.headers.get(name)
        assert_problem(await http.post(path, json={**body, "Title": "other", "name": "other"}, headers=headers), 409)
        assert await last(inner) == after


async def test_the_first_answer_stays_the_answer_whatever_happened_since(http: httpx.AsyncClient, inner: Core) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await http.post("/api/event/", json={"Title": "Final"}, headers=headers)
    await patch(http, first.json()["id"], replace("/Title", "Other"))
    await http.delete(f"/api/event/{first.json()['id']}")
    assert (await http.post("/api/event/", json={"Title": "Final"}, headers=headers)).content == first.content


async def test_a_repeat_shows_the_names_of_that_time(http: httpx.AsyncClient) -> None:
    room = (await http.post("/api/room/", json={"name": "Hall"})).json()["Id"]
    kind = (await http.post("/api/eventtype/", json={"name": "News", "colour": "#fff"})).json()["id"]
    category = (await http.post("/api/category/", json={"name": "Sport"})).json()["id"]
    owned = {"categoryId": category, "category": "a", "key": "b", "value": "1"}
    assert (await http.post("/api/category/customproperty/", json=owned)).status_code == 200
    headers = {"Idempotency-Key": "once", "Host": "first.example"}
    body = {"Title": "Final", "RoomId": room, "EventTypeId": kind, "CategoryId": category, "Tags": [{"name": "a"}]}
    first = await http.post("/api/event/", json=body, headers=headers)
    assert (first.json()["room"], first.json()["eventTypeColour"]) == ("Hall", "#fff")
    await http.put(f"/api/room/{room}", json={"name": "Plaza"})
    await http.put(f"/api/eventtype/{kind}", json={"colour": "#000"})
    await http.put(f"/api/category/{category}", json={"name": "Games"})
    assert (await http.post("/api/category/customproperty/", json={**owned, "value": "2"})).status_code == 200
    assert (await http.delete(f"/api/event/{first.json()['id']}")).status_code == 200
    assert (await http.delete(f"/api/room/{room}")).status_code == 200
    again = await http.post("/api/event/", json=body, headers={**headers, "Host": "second.example"})
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")


async def test_an_update_that_changes_nothing_is_kept_too(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http, Title="Final"))["id"]
    headers, body = {"Idempotency-Key": "no-op"}, {"Id": key, "Title": "Final"}
    first = await http.post("/api/event/", json=body, headers=headers)
    await patch(http, key, replace("/Title", "Other"))
    before = await last(inner)
    again = await http.post("/api/event/", json=body, headers=headers)
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    assert await last(inner) == before
    assert (await event(http, key))["title"] == "Other"


async def test_a_key_belongs_to_its_client(http: httpx.AsyncClient, inner: Core) -> None:
    other = {"API-KEY": await introduce(inner, "studio", "operator"), "Idempotency-Key": "k"}
    ours = await http.post("/api/event/", json={"Title": "ours"}, headers={"Idempotency-Key": "k"})
    theirs = await http.post("/api/event/", json={"Title": "theirs"}, headers=other)
    assert (ours.json()["title"], theirs.json()["title"]) == ("ours", "theirs")
    assert ours.json()["id"] != theirs.json()["id"]


async def test_a_refusal_is_not_kept(http: httpx.AsyncClient) -> None:
    headers, body = {"Idempotency-Key": "k"}, {"Title": "Final", "RoomId": UNKNOWN}
    assert_problem(await http.post("/api/event/", json=body, headers=headers), 400)
    assert (await http.post("/api/event/", json={"Title": "Final"}, headers=headers)).status_code == 200


async def test_many_repeats_at_once_are_carried_out_once(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    headers = {"Idempotency-Key": "k"}
    answers = await asyncio.gather(*(http.post("/api/event/", json={"Title": "Final"}, headers=headers) for _ in range(20)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 200}) == 1
    assert await last(inner) == before + 1


async def test_the_replay_of_a_new_key_shows_no_key(http: httpx.AsyncClient, inner: Core) -> None:
    headers = {"Idempotency-Key": "k"}
    first = await http.post("/api/client/", json={"name": "studio", "roles": ["viewer"]}, headers=headers)
    again = await http.post("/api/client/", json={"name": "studio", "roles": ["viewer"]}, headers=headers)
    assert again.json() == {**first.json(), "key": None}
    assert (again.status_code, again.headers["cache-control"], again.headers["location"]) == (201, "no-store", "/api/client/studio")
    headers = {"Idempotency-Key": "k2"}
    first = await http.post("/api/client/studio/keys/", headers=headers)
    again = await http.post("/api/client/studio/keys/", headers=headers)
    assert first.json()["key"]
    assert again.json() == {**first.json(), "key": None}
    retained = await inner.database.rows("SELECT result::text FROM idempotency_keys")
    assert len(retained) == 2
    assert all("mlk_" not in row[0] for row in retained)


async def test_the_transaction_id_is_the_correlation_id_of_all_that_a_request_causes(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    body = {"Title": "Final", "EventState": 2, "Tags": [{"name": "a"}]}
    answer = await http.post("/api/event/", json=body, headers={"X-Transaction-ID": "order 66"})
    assert answer.headers["x-transaction-id"] == "order 66"
    made_up = (await http.put(f"/api/event/state/{answer.json()['id']}", json={"state": 4})).headers["x-transaction-id"]
    assert UUID(made_up)
    events = (await logged(inner))[before:]
    assert [entry.topic for entry in events] == ["tag.registered", "event.registered", "event.state_changed", "event.state_changed"]
    assert [entry.cause["correlation_id"] for entry in events] == ["order 66"] * 3 + [made_up]
    assert {entry.cause["actor"] for entry in events} == {"admin"}


async def test_every_declared_path_answers_with_and_without_its_trailing_slash(
    http: httpx.AsyncClient, application: Application
) -> None:
    application.drain()  # a stream that never ends does so at once
    for declaration in (spec for spec in routes_of(ROUTES) if spec.method == "GET" and spec.status != 302):
        path = (
            declaration.documented_path.replace("{aggregate}", "event")
            .replace("{id}", UNKNOWN)
            .replace("{name}", "admin")
            .rstrip("/")
        )
        path = path.replace("{client_name}", "admin")
        bare, slashed = [await http.get(entry, headers={"client": "admin"}) for entry in (path, path + "/")]
        assert bare.status_code == slashed.status_code != 405, path
        assert bare.headers.get("content-type") == slashed.headers.get("content-type")
        assert "location" not in {**bare.headers, **slashed.headers}
        assert bare.status_code in (200, 204, 400, 404) or (path, bare.status_code) == ("/console/session", 401)
        assert "There is nothing at this path." not in bare.text


async def test_head_answers_every_get_without_a_body(http: httpx.AsyncClient) -> None:
    key = (await add(http, Title="Final"))["id"]
    for path in (f"/api/event/{key}", "/api/event/", "/api/room/", "/livez", "/docs", "/api/audit/events/"):
        get, head = await http.get(path), await http.head(path)
        assert (head.status_code, head.content, head.headers.get("etag")) == (200, b"", get.headers.get("etag"))


async def test_whoever_asks_after_a_write_has_answered_sees_it(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    viewer = {"API-KEY": await introduce(inner, "viewer", "viewer")}

    async def write_and_read(number: int) -> None:
        shown = await add(http, Title=f"title {number}", RefId=f"r{number}")
        for no_cache in ("", "noCache=true", "noCache=false"):
            by_id = await http.get(f"/api/event/{shown['id']}?{no_cache}", headers=viewer)
            assert by_id.json() == shown
            assert (await http.get(f"/api/event/reference?id=r{number}&{no_cache}", headers=viewer)).json() == shown
            listed = (await http.get(f"/api/event/?search=title {number}&pageSize=1000&{no_cache}", headers=viewer)).json()
            assert shown in listed["results"]

    await asyncio.gather(*(write_and_read(number) for number in range(20)))


async def test_an_unknown_path_is_404_and_a_wrong_method_405_with_or_without_a_key(http: httpx.AsyncClient) -> None:
    for headers in ({}, {"API-KEY": "wrong"}):
        for path in ("/api/nothing", "/api", "/api/event/x/y/z", "/nothing", "/api/audit", "/api/audit/nothing"):
            assert_problem(await http.get(path, headers=headers), 404)
        for method, path, allowed in [
            ("PUT", "/api/event/", "GET, HEAD, POST"),
            ("POST", f"/api/event/{UNKNOWN}", "DELETE, GET, HEAD, PATCH"),
            ("DELETE", "/api/room", "GET, HEAD, POST"),
            ("GET", "/api/event/flow/add/", "POST"),
            ("POST", "/api/audit/verify", "GET, HEAD"),
            ("POST", "/livez", "GET, HEAD"),
        ]:
            answer = await http.request(method, path, headers=headers)
            assert_problem(answer, 405)
            assert answer.headers["allow"] == allowed


def test_every_protected_post_can_be_repeated_under_its_key() -> None:
    """A route without `respond` would ignore the Idempotency-Key without a word."""
    specs = [spec for spec in routes_of(ROUTES) if spec.method == "POST" and spec.permission.roles]
    assert [spec.where for spec in specs if spec.surface.keeps_answers and not spec.keeps_answer] == []
