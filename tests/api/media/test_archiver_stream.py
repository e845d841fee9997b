"""Archiver streams over HTTP: the answer, and what was appended."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add_archiver_stream, assert_problem, fields_of, last, logged, topics
from tests.support.clock import HandClock

PATH = "/api/archiverstream"
BODY: dict[str, Any] = {
    "profileId": "profile/1",
    "captureId": "capture 1",
    "startTime": "2031-01-02T03:00:00.000Z",
    "endTime": "2031-01-02T05:00:00.000Z",
    "ismUrl": "https://origin.test/a.isml",
}
CREATED = "2031-01-02T12:00:00.000Z"
BARE = {**BODY, "expiresAt": None, "uploaded": False, "createdAt": CREATED, "updatedAt": CREATED, "streamingFormats": []}


async def test_a_stream_is_added_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    added = await http.post(f"{PATH}/", json=BODY)
    assert (added.status_code, added.json()) == (201, {"id": 1, **BARE})
    assert added.headers["location"] == f"{PATH}/1"
    answer = await http.get(added.headers["location"])
    assert (answer.json(), answer.headers["etag"]) == (added.json(), '"1"')

    more = {
        "expiresAt": "2032-01-01T01:00:00+01:00",
        "uploaded": True,
        "streamingFormats": ["dash", "HLS", "Dash", "smooth", "hds"],
    }
    full = await http.post(PATH, json={**BODY, **more})
    assert full.json() == {
        **BARE,
        "id": 2,
        "expiresAt": "2032-01-01T00:00:00.000Z",
        "uploaded": True,
        "streamingFormats": ["DASH", "HLS", "SMOOTH", "HDS"],
    }
    assert await topics(inner, "archiver_stream:2") == ["archiver_stream.registered"]


async def test_a_put_changes_the_fields_that_it_has(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    key = await add_archiver_stream(http, **BODY)
    clock.forward(minutes=1)
    changed = await http.put(f"{PATH}/{key}", json={"UPLOADED": True, "endTime": "2031-01-02T06:00:00Z", "createdAt": "2000-01-01"})
    wanted = {"id": key, **BARE, "uploaded": True, "endTime": "2031-01-02T06:00:00.000Z", "updatedAt": "2031-01-02T12:01:00.000Z"}
    assert (changed.status_code, changed.json()) == (200, wanted)
    clock.forward(minutes=1)
    for body in ({}, {"uploaded": True, "id": 99}, wanted, dict.fromkeys(BODY)):
        assert (await http.put(f"{PATH}/{key}", json=body)).json() == wanted
    assert await topics(inner, f"archiver_stream:{key}") == ["archiver_stream.registered", "archiver_stream.amended"]
    assert (await logged(inner, f"archiver_stream:{key}"))[1].data.keys() - {"timestamp"} == {"end_time", "uploaded"}
    past = (await http.get(f"/api/audit/archiver_stream/{key}/state?version=1")).json()
    assert (past["id"], past["state"]) == (f"{key}", {"id": key, **BARE})


async def test_null_clears_only_optional_fields(http: httpx.AsyncClient) -> None:
    key = await add_archiver_stream(http, **BODY, expiresAt="2032-01-01", uploaded=True, streamingFormats=["HLS"])
    cleared = await http.put(f"{PATH}/{key}", json={"expiresAt": None, "uploaded": None, "streamingFormats": None})
    assert cleared.json() == {"id": key, **BARE}
    for name in BODY:
        assert fields_of(await http.post(f"{PATH}/", json={**BODY, name: None})) == [name]
        assert fields_of(await http.post(f"{PATH}/", json={other: BODY[other] for other in BODY if other != name})) == [name]


async def test_bad_input_names_its_field_and_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_archiver_stream(http)
    before = await last(inner)
    wrong: dict[str, list[Any]] = {
        "profileId": ["", " ", 7, [], True],
        "captureId": ["", 7],
        "ismUrl": ["", "\t", 7],
        "startTime": ["", "soon", 7, True],
        "endTime": ["", "12:00:00", []],
        "expiresAt": ["", "never", 7],
        "uploaded": ["perhaps", 2, []],
        "streamingFormats": ["HLS", ["MSS"], [""], [7], [None], {}],
    }
    for name, values in wrong.items():
        for value in values:
            for answer in (
                await http.post(f"{PATH}/", json={**BODY, name: value}),
                await http.put(f"{PATH}/{key}", json={name: value}),
            ):
                assert {field.partition("[")[0] for field in fields_of(answer)} == {name}, (name, value)
    for content_type in ("text/plain", "application/x-www-form-urlencoded"):
        for method, path in (("POST", f"{PATH}/"), ("PUT", f"{PATH}/{key}")):
            assert_problem(await http.request(method, path, content=b"{}", headers={"content-type": content_type}), 415)
    assert await last(inner) == before


async def test_a_write_without_a_content_type_is_refused(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_archiver_stream(http, **BODY)
    before = await last(inner)
    for method, path in (("POST", f"{PATH}/"), ("PUT", f"{PATH}/{key}")):
        assert_problem(await http.request(method, path, content=json.dumps(BODY).encode()), 415)
        assert_problem(await http.request(method, path), 415)
    assert await last(inner) == before


async def test_a_recording_does_not_end_before_it_starts(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_archiver_stream(http, **BODY)
    before = await last(inner)
    assert fields_of(await http.post(f"{PATH}/", json={**BODY, "endTime": "2031-01-02T02:59:59.999Z"})) == ["endTime"]
    for body in (
        {"endTime": "2031-01-02T02:00:00Z"},
        {"startTime": "2031-01-02T05:00:00.001Z"},
        {"startTime": "2031-01-03", "endTime": "2031-01-02"},
        {"startTime": "2031-01-03", "endTime": None},
    ):
        assert fields_of(await http.put(f"{PATH}/{key}", json=body, headers={"If-Match": '"9"'})) == ["endTime"]
    assert fields_of(await http.put(f"{PATH}/99", json={"startTime": "2031-01-03", "endTime": "2031-01-02"})) == ["endTime"]
    assert await last(inner) == before
    assert (await http.put(f"{PATH}/{key}", json={"startTime": BODY["endTime"]})).status_code == 200
    assert (await http.put(f"{PATH}/{key}", json={"startTime": "2032-01-01", "endTime": "2032-01-02"})).status_code == 200


async def test_streams_are_listed_by_number(http: httpx.AsyncClient) -> None:
    assert (await http.get(PATH)).json() == []
    keys = [await add_archiver_stream(http) for _ in range(11)]
    assert [record["id"] for record in (await http.get(f"{PATH}/")).json()] == keys == list(range(1, 12))


async def test_a_deleted_stream_is_gone_and_its_number_with_it(http: httpx.AsyncClient, inner: Core) -> None:
    keys = [await add_archiver_stream(http, **BODY) for _ in range(2)]
    assert_problem(await http.delete(f"{PATH}/2", headers={"If-Match": '"2"'}), 412)
    deleted = await http.delete(f"{PATH}/2")
    assert (deleted.status_code, deleted.json()) == (200, {"id": keys[1], **BARE})
    assert_problem(await http.get(f"{PATH}/2"), 404)
    assert_problem(await http.delete(f"{PATH}/2"), 404)
    assert_problem(await http.put(f"{PATH}/2", json={"uploaded": True}), 404)
    assert [record["id"] for record in (await http.get(PATH)).json()] == [1]
    assert await add_archiver_stream(http) == 3
    assert await topics(inner, "archiver_stream:2") == ["archiver_stream.registered", "archiver_stream.deleted"]


async def test_expiry_deletes_nothing(http: httpx.AsyncClient, clock: HandClock) -> None:
    key = await add_archiver_stream(http, expiresAt="2031-01-02T12:00:00Z")
    clock.forward(days=1)
    assert (await http.get(f"{PATH}/{key}")).status_code == 200
    assert len((await http.get(PATH)).json()) == 1


async def test_unknown_numbers_are_404_and_other_ids_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for unknown in ("1", "0", "-1", str(2**63 - 1)):
        assert_problem(await http.get(f"{PATH}/{unknown}"), 404)
        assert_problem(await http.put(f"{PATH}/{unknown}", json={}), 404)
        assert_problem(await http.delete(f"{PATH}/{unknown}"), 404)
    for malformed in (UNKNOWN, "x", "1.0", "1e3", "%EF%BC%91", str(2**63), "9" * 5000):
        assert fields_of(await http.get(f"{PATH}/{malformed}")) == ["id"]
        assert fields_of(await http.delete(f"{PATH}/{malformed}")) == ["id"]
    assert await last(inner) == before


async def test_many_added_at_once_have_numbers_of_their_own(http: httpx.AsyncClient) -> None:
    keys = await asyncio.gather(*(add_archiver_stream(http) for _ in range(30)))
    assert sorted(keys) == list(range(1, 31))


async def test_a_stream_sent_twice_under_one_key_is_added_once(http: httpx.AsyncClient) -> None:
    answers = [await http.post(PATH, json=BODY, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert [answer.headers["location"] for answer in answers] == [f"{PATH}/1"] * 2
    assert len((await http.get(PATH)).json()) == 1
