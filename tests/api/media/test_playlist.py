"""Playlists and their items over HTTP: the answer, and what was appended."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from api.wiring.core import Core
from tests.api.asking import (
    UNKNOWN,
    add,
    add_playlist,
    add_playlist_item,
    assert_problem,
    fields_of,
    last,
    logged,
    new_id,
    topics,
)

PATH = "/api/playlist"
NOON = "2031-01-02T12:00:00.000Z"


async def items(http: httpx.AsyncClient, playlist: str) -> list[dict[str, Any]]:
    answer = await http.get(f"{PATH}/{playlist}/playlistItems/")
    assert answer.status_code == 200
    shown: list[dict[str, Any]] = answer.json()
    return shown


async def test_a_playlist_is_added_renamed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    added = await http.post(f"{PATH}/", json={"name": "Best of"})
    first = added.json()
    assert (added.status_code, first) == (200, {"id": first["id"], "name": "Best of"})
    answer = await http.get(f"{PATH}/{first['id']}")
    assert (answer.json(), answer.headers["etag"]) == (first, '"1"')
    for _ in range(2):
        renamed = await http.put(f"{PATH}/{first['id']}", json={"Name": "Worst of"})
        assert (renamed.status_code, renamed.json(), renamed.headers["etag"]) == (200, {**first, "name": "Worst of"}, '"2"')
    assert await topics(inner, f"playlist:{first['id']}") == ["playlist.registered", "playlist.amended"]
    assert (await http.get(f"/api/audit/playlist/{first['id']}/state?version=1")).json()["state"] == first


async def test_a_put_to_a_new_id_makes_a_playlist(http: httpx.AsyncClient, inner: Core) -> None:
    key = new_id()
    before = await last(inner)
    for body in ({}, {"name": None}):
        assert fields_of(await http.put(f"{PATH}/{key}", json=body)) == ["name"]
    assert_problem(await http.put(f"{PATH}/{key}", json={"name": "Mine"}, headers={"If-Match": '"1"'}), 412)
    assert await last(inner) == before
    assert (await http.put(f"{PATH}/{key}", json={"name": "Mine"})).json() == {"id": key, "name": "Mine"}
    for body in ({}, {"name": None}):
        assert (await http.put(f"{PATH}/{key}", json=body)).json() == {"id": key, "name": "Mine"}
    assert await topics(inner, f"playlist:{key}") == ["playlist.registered"]


async def test_two_puts_to_one_new_id_make_one_playlist(http: httpx.AsyncClient, inner: Core) -> None:
    key = new_id()
    answers = await asyncio.gather(*(http.put(f"{PATH}/{key}", json={"name": f"{n}"}) for n in range(10)))
    succeeded = [answer for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert await topics(inner, f"playlist:{key}") == ["playlist.registered"] + ["playlist.amended"] * (len(succeeded) - 1)


async def test_playlists_are_listed_by_name_and_none_is_204(http: httpx.AsyncClient) -> None:
    for path in ("/", "", f"/{UNKNOWN}"):
        answer = await http.get(f"{PATH}{path}")
        assert (answer.status_code, answer.content) == (204, b"")
    for name in ("b", "c", "a"):
        await add_playlist(http, name)
    assert [record["name"] for record in (await http.get(f"{PATH}/")).json()] == ["a", "b", "c"]
    assert_problem(await http.delete(f"{PATH}/{UNKNOWN}"), 405)


async def test_bad_names_and_ids_change_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_playlist(http)
    before = await last(inner)
    wrong: list[Any] = ["", " ", 7, True, [], "x" * 601]
    for name in wrong:
        assert fields_of(await http.post(f"{PATH}/", json={"name": name})) == ["name"]
        for other in (key, UNKNOWN):
            assert fields_of(await http.put(f"{PATH}/{other}", json={"name": name})) == ["name"]
    for body in ({}, {"name": None}):
        assert fields_of(await http.post(f"{PATH}/", json=body)) == ["name"]
    assert fields_of(await http.put(f"{PATH}/x", json={"name": "x"})) == ["id"]
    assert await last(inner) == before


async def test_an_event_is_put_into_a_playlist(http: httpx.AsyncClient, inner: Core) -> None:
    playlist, event = await add_playlist(http), (await add(http))["id"]
    added = await http.post(f"{PATH}/{playlist}/playlistItems/", json={"EventId": event, "startTime": "2031-01-02T13:00:00+01:00"})
    item = added.json()
    assert added.status_code == 201
    assert item == {"id": item["id"], "playlistId": playlist, "eventId": event, "startTime": NOON}
    assert added.headers["location"] == f"{PATH}/{playlist}/playlistItems/{item['id']}"
    answer = await http.get(added.headers["location"])
    assert (answer.json(), answer.headers["etag"]) == (item, '"1"')
    assert await items(http, playlist) == [item]
    assert [event.topic for event in await logged(inner, f"playlist_item:{item['id']}")] == ["playlist_item.registered"]


async def test_items_are_in_the_order_of_their_start_and_of_one_playlist_only(http: httpx.AsyncClient) -> None:
    playlist, other = await add_playlist(http), await add_playlist(http)
    event = (await add(http))["id"]
    for minute in (3, 1, 2, 1):
        await add_playlist_item(http, playlist, event, f"2031-01-02T12:0{minute}:00.000Z")
    elsewhere = await add_playlist_item(http, other, event)
    shown = await items(http, playlist)
    assert [item["startTime"][15:16] for item in shown] == ["1", "1", "2", "3"]
    assert shown[0]["id"] < shown[1]["id"]
    assert [item["id"] for item in await items(http, other)] == [elsewhere]
    assert await items(http, UNKNOWN) == []
    assert fields_of(await http.get(f"{PATH}/x/playlistItems/")) == ["id"]


async def test_the_event_and_the_playlist_of_an_item_must_exist(http: httpx.AsyncClient, inner: Core) -> None:
    playlist, gone, event = await add_playlist(http), (await add(http))["id"], (await add(http))["id"]
    await http.delete(f"/api/event/{gone}")
    before = await last(inner)
    for key in (playlist, UNKNOWN):
        path = f"{PATH}/{key}/playlistItems/"
        for unknown in (gone, UNKNOWN, "x", "", None, 7):
            assert fields_of(await http.post(path, json={"eventId": unknown, "startTime": NOON})) == ["eventId"]
        for time in (None, "", "12:00:00", "tomorrow", 7):
            assert fields_of(await http.post(path, json={"eventId": event, "startTime": time})) == ["startTime"]
        assert fields_of(await http.post(path, json={})) == ["eventId", "startTime"]
    assert_problem(await http.post(f"{PATH}/{UNKNOWN}/playlistItems/", json={"eventId": event, "startTime": NOON}), 404)
    assert await last(inner) == before


async def test_an_item_is_taken_out_and_shown_as_it_last_was(http: httpx.AsyncClient, inner: Core) -> None:
    playlist, other, event = await add_playlist(http), await add_playlist(http), (await add(http))["id"]
    key = await add_playlist_item(http, playlist, event, NOON)
    path = f"{PATH}/{playlist}/playlistItems/{key}"
    for wrong in (f"{PATH}/{other}/playlistItems/{key}", f"{PATH}/{UNKNOWN}/playlistItems/{key}", path[: -len(key)] + UNKNOWN):
        assert_problem(await http.get(wrong), 404)
        assert_problem(await http.delete(wrong), 404)
    assert_problem(await http.delete(path, headers={"If-Match": '"2"'}), 412)
    deleted = await http.delete(path)
    assert (deleted.status_code, deleted.json()) == (
        200,
        {"id": key, "playlistId": playlist, "eventId": event, "startTime": NOON},
    )
    assert_problem(await http.get(path), 404)
    assert_problem(await http.delete(path), 404)
    assert await items(http, playlist) == []
    assert await topics(inner, f"playlist_item:{key}") == ["playlist_item.registered", "playlist_item.deleted"]
    assert (await http.get(f"/api/audit/playlist_item/{key}/state?version=1")).json()["state"] == deleted.json()


async def test_an_item_outlives_its_event(http: httpx.AsyncClient) -> None:
    """A deleted Event can be restored; its place in a playlist is kept for it."""
    playlist, event = await add_playlist(http), (await add(http))["id"]
    key = await add_playlist_item(http, playlist, event)
    assert (await http.delete(f"/api/event/{event}")).status_code == 200
    assert [item["id"] for item in await items(http, playlist)] == [key]


async def test_an_item_sent_twice_under_one_key_is_added_once(http: httpx.AsyncClient, inner: Core) -> None:
    playlist, event = await add_playlist(http), (await add(http))["id"]
    body = {"eventId": event, "startTime": NOON}
    answers = [await http.post(f"{PATH}/{playlist}/playlistItems/", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[0].headers["location"] == answers[1].headers["location"]
    assert len(await items(http, playlist)) == 1
