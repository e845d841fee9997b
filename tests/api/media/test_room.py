"""Rooms over HTTP: the answer, and what was appended."""

from __future__ import annotations

import httpx

from api.wiring import Core
from projections.log.tail import read


async def topics(inner: Core, stream: str) -> list[str]:
    return [event.topic for event in await read(inner.database, 0, limit=1000) if event.stream == stream]


async def test_a_room_is_added_changed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    added = await http.post("/api/room/", json={"name": "Main hall", "referenceId": "hall/1"})
    room = added.json()
    assert added.status_code == 201
    assert room == {"Id": room["Id"], "Name": "Main hall", "ReferenceId": "hall/1"}
    assert added.headers["location"] == f"/api/room/{room['Id']}"

    changed = await http.put(f"/api/room/{room['Id']}", json={"NAME": "Great hall"})
    assert changed.json() == {"Id": room["Id"], "Name": "Great hall", "ReferenceId": "hall/1"}
    assert (await http.get("/api/room/reference", params={"id": "hall/1"})).json()["Name"] == "Great hall"
    assert await topics(inner, f"room:{room['Id']}") == ["room.registered", "room.amended"]


async def test_the_same_change_twice_leaves_one_event(http: httpx.AsyncClient, inner: Core) -> None:
    room = (await http.post("/api/room", json={"name": "Main hall"})).json()
    first = await http.put(f"/api/room/{room['Id']}", json={"name": "Great hall"})
    second = await http.put(f"/api/room/{room['Id']}", json={"name": "Great hall"})
    assert (first.headers["etag"], second.headers["etag"]) == ('"2"', '"2"')
    assert await topics(inner, f"room:{room['Id']}") == ["room.registered", "room.amended"]


async def test_a_room_in_use_is_not_deleted_and_its_users_are_named(http: httpx.AsyncClient) -> None:
    room = (await http.post("/api/room/", json={"name": "Main hall"})).json()
    event = (await http.post("/api/event/", json={"Title": "Final", "RoomId": room["Id"]})).json()
    refused = await http.delete(f"/api/room/{room['Id']}")
    assert refused.status_code == 409
    assert event["id"] in refused.json()["detail"]

    await http.delete(f"/api/event/{event['id']}")
    assert (await http.delete(f"/api/room/{room['Id']}")).status_code == 200
    assert (await http.get(f"/api/room/{room['Id']}")).status_code == 204
