"""Event types over HTTP: the answer, and what was appended."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from api.wiring.core import Core
from tests.api.asking import (
    AWKWARD,
    UNKNOWN,
    add,
    add_event_type,
    assert_problem,
    event,
    fields_of,
    last,
    logged,
    of_event,
    topics,
)
from tests.support.clock import HandClock

PATH = "/api/eventtype"


async def classify(http: httpx.AsyncClient, event_id: str, type_id: str | None) -> httpx.Response:
    return await http.put(f"{PATH}/event/{event_id}", json={"eventTypeId": type_id})


async def test_a_type_is_added_changed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    added = await http.post(f"{PATH}/", json={"name": "Match", "referenceId": "m/1", "colour": "#A0f"})
    first = added.json()
    assert (added.status_code, "location" in added.headers) == (200, False)
    assert first == {"id": first["id"], "name": "Match", "referenceId": "m/1", "colour": "#A0f"}
    assert (await http.get(f"{PATH}/{first['id']}")).json() == first

    changed = await http.put(f"{PATH}/{first['id']}", json={"NAME": "Game", "Colour": "#00ff7F"})
    assert changed.json() == {"id": first["id"], "name": "Game", "referenceId": "m/1", "colour": "#00ff7F"}
    assert (await http.get(f"{PATH}/reference", params={"id": "m/1"})).json() == changed.json()
    assert await topics(inner, f"event_type:{first['id']}") == ["event_type.registered", "event_type.amended"]
    assert (await logged(inner, f"event_type:{first['id']}"))[1].data.keys() - {"timestamp"} == {"name", "colour"}
    past = await http.get(f"/api/audit/event_type/{first['id']}/state?version=1")
    assert past.json()["state"] == first


async def test_the_same_change_twice_leaves_one_event(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_event_type(http)
    answers = [await http.put(f"{PATH}/{key}", json={"colour": "#fff"}) for _ in range(2)]
    assert [answer.headers["etag"] for answer in answers] == ['"2"', '"2"']
    assert await topics(inner, f"event_type:{key}") == ["event_type.registered", "event_type.amended"]


async def test_a_missing_value_is_shown_as_the_empty_text_and_can_be_sent_back(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_event_type(http)
    bare = {"id": key, "name": "Match", "referenceId": "", "colour": ""}
    assert (await http.get(f"{PATH}/{key}")).json() == bare
    before = await last(inner)
    assert (await http.put(f"{PATH}/{key}", json=bare)).json() == bare
    assert await last(inner) == before
    for cleared in ("", None):
        await http.put(f"{PATH}/{key}", json={"referenceId": "r", "colour": "#fff"})
        assert (await http.put(f"{PATH}/{key}", json={"referenceId": cleared, "colour": cleared})).json() == bare
    assert_problem(await http.get(f"{PATH}/reference?id=r"), 404)


async def test_bad_input_names_its_field_and_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_event_type(http, colour="#123")
    before = await last(inner)
    colours: list[Any] = [
        "#12",
        "#1234",
        "123",
        "#12345",
        "#1234567",
        "#ggg",
        "red",
        " #123",
        "#123 ",
        "#123\n",
        123,
        ["#123"],
        "＃123",
    ]
    for colour in colours:
        assert fields_of(await http.post(f"{PATH}/", json={"name": "x", "colour": colour})) == ["colour"], colour
        assert fields_of(await http.put(f"{PATH}/{key}", json={"colour": colour})) == ["colour"], colour
    names: list[Any] = ["", " ", 7, True, [], "x" * 601]
    for name in names:
        assert fields_of(await http.post(f"{PATH}/", json={"name": name})) == ["name"]
        assert fields_of(await http.put(f"{PATH}/{key}", json={"name": name})) == ["name"]
    for missing in ({}, {"name": None}, {"colour": "#fff"}):
        assert fields_of(await http.post(f"{PATH}/", json=missing)) == ["name"]
    assert (await http.put(f"{PATH}/{key}", json={"name": None})).json()["name"] == "Match"
    assert await last(inner) == before


async def test_types_are_listed_by_name(http: httpx.AsyncClient) -> None:
    assert (await http.get(f"{PATH}/")).json() == []
    for name in ("Talk", "Concert", "Match"):
        await add_event_type(http, name)
    assert [record["name"] for record in (await http.get(f"{PATH}?noCache=1")).json()] == ["Concert", "Match", "Talk"]


async def test_references_of_any_character_are_found_and_the_latest_wins(http: httpx.AsyncClient, clock: HandClock) -> None:
    for text in AWKWARD:
        old = await add_event_type(http, "old", referenceId=text)
        clock.forward(seconds=1)
        new = await add_event_type(http, "new", referenceId=text)
        for slash in ("", "/"):
            answer = await http.get(f"{PATH}/reference{slash}", params={"id": text, "noCache": "true"})
            assert (answer.json()["id"], answer.json()["referenceId"]) == (new, text)
        await http.delete(f"{PATH}/{new}")
        assert (await http.get(f"{PATH}/reference", params={"id": text})).json()["id"] == old
    assert fields_of(await http.get(f"{PATH}/reference?id=")) == ["id"]
    assert_problem(await http.get(f"{PATH}/reference?id=unknown"), 404)


async def test_the_type_of_an_event_is_set_and_taken_away(http: httpx.AsyncClient, inner: Core) -> None:
    key, match = (await add(http, Title="Final"))["id"], await add_event_type(http, colour="#fff")
    shown = (await classify(http, key, match)).json()
    assert shown == await event(http, key)
    assert (shown["eventTypeId"], shown["eventType"], shown["eventTypeColour"]) == (match, "Match", "#fff")
    assert (await classify(http, key, match)).status_code == 200
    assert await of_event(inner, key) == ["registered", "classified"]
    await http.put(f"{PATH}/{match}", json={"name": "Game", "colour": ""})
    assert (await event(http, key))["eventType"] == "Game"

    cleared = (await classify(http, key, None)).json()
    assert (cleared["eventTypeId"], cleared["eventType"], cleared["eventTypeColour"]) == (None, None, None)
    assert await of_event(inner, key) == ["registered", "classified", "classified"]


async def test_deleted_types_and_deleted_events_cannot_be_linked(http: httpx.AsyncClient, inner: Core) -> None:
    key, match = (await add(http))["id"], await add_event_type(http)
    await http.delete(f"{PATH}/{match}")
    before = await last(inner)
    for unknown in (match, UNKNOWN, key):
        assert fields_of(await classify(http, key, unknown)) == ["eventTypeId"]
        assert fields_of(await classify(http, UNKNOWN, unknown)) == ["eventTypeId"]  # 400 comes before 404
    for body in ({}, {"eventTypeId": ""}, {"eventTypeId": 7}, {"eventTypeId": [match]}):
        assert fields_of(await http.put(f"{PATH}/event/{key}", json=body)) == ["eventTypeId"]
    assert_problem(await classify(http, UNKNOWN, None), 404)
    assert_problem(await http.put(f"{PATH}/event/{key}", json={"eventTypeId": None}, headers={"If-Match": '"9"'}), 412)
    assert await last(inner) == before
    await http.delete(f"/api/event/{key}")
    assert_problem(await classify(http, key, None), 404)


async def test_a_type_in_use_is_not_deleted_and_its_users_are_named(http: httpx.AsyncClient, inner: Core) -> None:
    match = await add_event_type(http, referenceId="m")
    shown = await add(http, Title="Final", EventTypeId=match)
    refused = await http.delete(f"{PATH}/{match}")
    assert_problem(refused, 409)
    assert shown["id"] in refused.json()["detail"]
    await classify(http, shown["id"], None)
    deleted = await http.delete(f"{PATH}/{match}")
    assert (deleted.status_code, deleted.json()["referenceId"]) == (200, "m")
    assert await topics(inner, f"event_type:{match}") == ["event_type.registered", "event_type.deleted"]
    assert_problem(await http.get(f"{PATH}/{match}"), 404)
    assert_problem(await http.delete(f"{PATH}/{match}"), 404)
    assert_problem(await http.put(f"{PATH}/{match}", json={"name": "x"}), 404)
    assert (await http.get(f"{PATH}/")).json() == []


async def test_a_type_is_deleted_or_given_to_an_event_but_never_both(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    for _ in range(10):
        match = await add_event_type(http)
        given, deleted = await asyncio.gather(classify(http, key, match), http.delete(f"{PATH}/{match}"))
        assert (given.status_code, deleted.status_code) in ((200, 409), (400, 200))
        assert ((await event(http, key))["eventTypeId"] == match) is (given.status_code == 200)
        await classify(http, key, None)


async def test_events_of_a_type_are_a_page_and_an_unknown_type_has_none(http: httpx.AsyncClient) -> None:
    match = await add_event_type(http)
    for day in (2, 1, 3):
        await add(http, Title=f"{day}", EventTypeId=match, ScheduledStart=f"2031-01-0{day}")
    await add(http, Title="elsewhere", EventTypeId=await add_event_type(http))
    for asked, titles, size in [
        ("", ["1", "2", "3"], 20),
        ("?order=DESC&noCache=true", ["3", "2", "1"], 20),
        ("?pageSize=2&pageNumber=2", ["3"], 2),
    ]:
        body = (await http.get(f"{PATH}/{match}/events/{asked}")).json()
        assert (body["pageSize"], body["totalCount"], [shown["title"] for shown in body["results"]]) == (size, 3, titles)
    assert (await http.get(f"{PATH}/{UNKNOWN}/events")).json() == {"pageSize": 20, "totalCount": 0, "results": []}
    assert fields_of(await http.get(f"{PATH}/{match}/events/?order=up")) == ["order"]
