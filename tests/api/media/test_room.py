"""Rooms over HTTP: the answer, and what was appended."""

from __future__ import annotations

from typing import Any

import httpx

from api.wiring.core import Core
from tests.api.asking import AWKWARD, UNKNOWN, add, add_room, assert_problem, fields_of, last, logged, topics
from tests.support.clock import HandClock


async def test_a_room_is_added_changed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    added = await http.post("/api/room/", json={"name": "Main hall", "referenceId": "hall/1"})
    room = added.json()
    assert added.status_code == 201
    assert room == {"Id": room["Id"], "Name": "Main hall", "ReferenceId": "hall/1"}
    assert added.headers["location"] == f"/api/room/{room['Id']}"
    assert (await http.get(added.headers["location"])).json() == room

    changed = await http.put(f"/api/room/{room['Id']}", json={"NAME": "Great hall"})
    assert changed.json() == {"Id": room["Id"], "Name": "Great hall", "ReferenceId": "hall/1"}
    assert (await http.get("/api/room/reference", params={"id": "hall/1"})).json()["Name"] == "Great hall"
    assert await topics(inner, f"room:{room['Id']}") == ["room.registered", "room.amended"]
    assert [event.data.keys() - {"timestamp"} for event in await logged(inner, f"room:{room['Id']}")][1] == {"name"}


async def test_the_same_change_twice_leaves_one_event(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_room(http)
    first = await http.put(f"/api/room/{key}", json={"name": "Great hall"})
    second = await http.put(f"/api/room/{key}", json={"name": "Great hall"})
    assert (first.headers["etag"], second.headers["etag"]) == ('"2"', '"2"')
    assert await topics(inner, f"room:{key}") == ["room.registered", "room.amended"]


async def test_a_room_in_use_is_not_deleted_and_its_users_are_named(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_room(http)
    event = await add(http, Title="Final", RoomId=key)
    refused = await http.delete(f"/api/room/{key}")
    assert_problem(refused, 409)
    assert event["id"] in refused.json()["detail"]
    assert_problem(await http.delete(f"/api/room/{key}", headers={"If-Match": '"9"'}), 412)
    assert await topics(inner, f"room:{key}") == ["room.registered"]

    await http.delete(f"/api/event/{event['id']}")
    deleted = await http.delete(f"/api/room/{key}")
    assert (deleted.status_code, deleted.json()["Name"]) == (200, "Main hall")
    assert await topics(inner, f"room:{key}") == ["room.registered", "room.deleted"]


async def test_a_deleted_room_is_gone(http: httpx.AsyncClient) -> None:
    key = await add_room(http, referenceId="r")
    await http.delete(f"/api/room/{key}")
    for path in (key, "reference?id=r"):
        answer = await http.get(f"/api/room/{path}")
        assert (answer.status_code, answer.content) == (204, b"")
    assert (await http.get("/api/room/")).json() == []
    assert_problem(await http.put(f"/api/room/{key}", json={"name": "x"}), 404)
    assert_problem(await http.delete(f"/api/room/{key}"), 404)
    assert fields_of(await http.post("/api/event/", json={"RoomId": key})) == ["roomId"]


async def test_a_name_is_required_and_cannot_be_cleared(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_room(http, referenceId="r")
    before = await last(inner)
    wrong: list[Any] = ["", "  ", 7, [], True]
    for name in wrong:
        assert fields_of(await http.post("/api/room/", json={"name": name})) == ["name"]
        assert fields_of(await http.put(f"/api/room/{key}", json={"name": name})) == ["name"]
    assert fields_of(await http.post("/api/room/", json={})) == ["name"]
    assert fields_of(await http.post("/api/room/", json={"name": None})) == ["name"]
    assert (await http.put(f"/api/room/{key}", json={"name": None})).json()["Name"] == "Main hall"
    assert (await http.put(f"/api/room/{key}", json={})).status_code == 200
    assert await last(inner) == before
    assert (await http.put(f"/api/room/{key}", json={"referenceId": None})).json()["ReferenceId"] == ""
    assert (await http.get("/api/room/reference?id=r")).status_code == 204


async def test_references_of_any_character_are_found_and_the_latest_wins(http: httpx.AsyncClient, clock: HandClock) -> None:
    for text in AWKWARD:
        old = await add_room(http, "old", referenceId=text)
        clock.forward(seconds=1)
        new = await add_room(http, "new", referenceId=text)
        for slash in ("", "/"):
            answer = await http.get(f"/api/room/reference{slash}", params={"id": text, "noCache": "true"})
            assert (answer.json()["Id"], answer.json()["ReferenceId"]) == (new, text)
        await http.delete(f"/api/room/{new}")
        assert (await http.get("/api/room/reference", params={"id": text})).json()["Id"] == old
    assert fields_of(await http.get("/api/room/reference?id=")) == ["id"]


async def test_rooms_are_listed_by_name(http: httpx.AsyncClient) -> None:
    for name in ("Cellar", "Attic", "Bar"):
        await add_room(http, name)
    assert [room["Name"] for room in (await http.get("/api/room?noCache=1")).json()] == ["Attic", "Bar", "Cellar"]


async def test_events_of_a_room_are_a_page_and_an_unknown_room_has_none(http: httpx.AsyncClient) -> None:
    key = await add_room(http)
    days = [(await add(http, Title=f"{day}", RoomId=key, ScheduledStart=f"2031-01-0{day}"))["title"] for day in (2, 1, 3)]
    await add(http, Title="elsewhere", RoomId=await add_room(http))
    for asked, titles, size in [
        ("", ["1", "2", "3"], 20),
        ("?order=DESC&noCache=true", ["3", "2", "1"], 20),
        ("?pageSize=2&pageNumber=2", ["3"], 2),
        ("?pageSize=5000", ["1", "2", "3"], 1000),
    ]:
        body = (await http.get(f"/api/room/{key}/events/{asked}")).json()
        assert (body["pageSize"], body["totalCount"], [shown["title"] for shown in body["results"]]) == (size, len(days), titles)
        assert {shown["room"] for shown in body["results"]} == {"Main hall"}
    assert (await http.get(f"/api/room/{UNKNOWN}/events")).json() == {"pageSize": 20, "totalCount": 0, "results": []}
    assert fields_of(await http.get(f"/api/room/{key}/events/?pageSize=0")) == ["pageSize"]


async def test_a_renamed_room_shows_its_new_name_everywhere(http: httpx.AsyncClient) -> None:
    key = await add_room(http)
    shown = await add(http, RoomId=key)
    await http.put(f"/api/room/{key}", json={"name": "Great hall"})
    assert (await http.get(f"/api/event/{shown['id']}")).json()["room"] == "Great hall"
    assert (await http.get("/api/event/")).json()["results"][0]["room"] == "Great hall"


async def test_unknown_rooms_are_404_to_writes_and_malformed_ids_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    assert_problem(await http.put(f"/api/room/{UNKNOWN}", json={"name": "x"}), 404)
    assert_problem(await http.delete(f"/api/room/{UNKNOWN}"), 404)
    assert fields_of(await http.put("/api/room/x", json={"name": "x"})) == ["id"]
    assert (await http.get(f"/api/room/{UNKNOWN}")).status_code == 204
    assert await last(inner) == before
