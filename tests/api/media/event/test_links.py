"""Links of Events: shown with the present name, refused without a target, and a linked record is not deleted."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.record.kinds.category import Category
from domain.record.kinds.channel import Channel
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.kinds.event_type import EventType
from domain.record.kinds.flow import Flow
from domain.record.kinds.infrastructure_profile import InfrastructureProfile
from domain.record.kinds.room import Room
from domain.record.record import Record
from tests.api.asking import UNKNOWN, add, add_room, assert_problem, event, fields_of, last, patch, replace, topics
from tests.support.feeding import configured, do, record

LINKS: dict[str, tuple[type[Record], str, str | None]] = {
    "roomId": (Room, "roomId", "room"),
    "eventTypeId": (EventType, "eventTypeId", "eventType"),
    "categoryId": (Category, "categoryId", "category"),
    "channelId": (Channel, "channelId", "channel"),
    "flowId": (Flow, "flowId", "flow"),
    "remixflowId": (Flow, "remixflowId", "remixflow"),
    "archiverflowId": (Flow, "archiverflowId", "archiverflow"),
    "infrastructureProfileId": (InfrastructureProfile, "infrastructureProfileId", "infrastructureProfile"),
}
"""The kind of record and the names of its id and its name in a response, by the name of the link in a body."""

every_link = pytest.mark.parametrize("field", LINKS)


def values(kind: type[Record], name: str) -> dict[str, Any]:
    if kind in (Channel, Flow):
        return configured(name)
    more: dict[type[Record], dict[str, Any]] = {
        Category: {"label": name},
        InfrastructureProfile: {"configuration_json": "{}"},
        EventType: {"colour": "#0a0"},
    }
    return {"name": name, **more.get(kind, {})}


async def target(inner: Core, field: str, name: str = "Old name", *, number: int = 71) -> UUID:
    kind = LINKS[field][0]
    return await record(inner, kind, number, **values(kind, name))


@every_link
async def test_a_link_is_shown_with_the_present_name(http: httpx.AsyncClient, inner: Core, field: str) -> None:
    kind, shown_id, shown_name = LINKS[field]
    key = await target(inner, field)
    made = await add(http, **{field: str(key)})
    assert (made[shown_id], made[str(shown_name)]) == (str(key), "Old name")
    await do(inner, kind.amend.on(key, {"name": "New name", **({"label": "New name"} if kind is Category else {})}))
    for shown in (await event(http, made["id"]), (await http.get("/api/event/")).json()["results"][0]):
        assert (shown[shown_id], shown[str(shown_name)]) == (str(key), "New name")
    assert (await http.get(f"/api/audit/event/{made['id']}/state?version=1")).json()["state"] == made
    assert (await http.get(f"/api/audit/event/{made['id']}/state")).json()["state"] == await event(http, made["id"])
    cleared = (await patch(http, made["id"], replace(f"/{field}", None))).json()
    assert (cleared[shown_id], cleared[str(shown_name)]) == (None, None)


@every_link
async def test_a_link_without_a_target_is_400_and_changes_nothing(http: httpx.AsyncClient, inner: Core, field: str) -> None:
    kind = LINKS[field][0]
    gone = await target(inner, field)
    await do(inner, kind.delete.on(gone))
    made = await add(http)
    before = await last(inner)
    for key in (UNKNOWN, str(gone)):
        assert fields_of(await http.post("/api/event/", json={field: key})) == [field]
        assert fields_of(await http.post("/api/event/", json={"Id": made["id"], "Title": "x", field: key})) == [field]
        assert fields_of(await patch(http, made["id"], replace("/Title", "x"), replace(f"/{field}", key))) == [field]
    assert await last(inner) == before


async def test_several_unknown_links_are_all_named(http: httpx.AsyncClient) -> None:
    sent = dict.fromkeys(LINKS, UNKNOWN)
    assert sorted(fields_of(await http.post("/api/event/", json=sent))) == sorted(LINKS)


async def test_an_event_shows_its_type_and_the_type_s_colour(http: httpx.AsyncClient, inner: Core) -> None:
    key = await record(inner, EventType, 31, name="Sport", colour="#00aa00")
    shown = await add(http, EventTypeId=str(key))
    assert (shown["eventType"], shown["eventTypeColour"]) == ("Sport", "#00aa00")
    await do(inner, EventType.amend.on(key, {"colour": None}))
    assert (await event(http, shown["id"]))["eventTypeColour"] is None
    plain = await add(http)
    assert (plain["eventType"], plain["eventTypeColour"]) == (None, None)


async def test_an_event_shows_its_category_with_all_custom_properties(http: httpx.AsyncClient, inner: Core) -> None:
    news = await record(inner, Category, 31, name="News and talk", label="News", description="d")
    await record(inner, Category, 32, name="Other", label="Other")
    first = await record(inner, CategoryProperty, 41, owner_id=news, category="b", key="k", value="1")
    second = await record(inner, CategoryProperty, 42, owner_id=news, category="a", key="z")
    await record(inner, CategoryProperty, 43, owner_id=UUID(int=32), category="a", key="z", value="not mine")
    expected = [
        {"id": str(second), "category": "a", "key": "z", "value": None},
        {"id": str(first), "category": "b", "key": "k", "value": "1"},
    ]
    made = await add(http, CategoryId=str(news))
    for shown in (made, await event(http, made["id"]), (await http.get("/api/event/")).json()["results"][0]):
        assert (shown["category"], shown["categoryId"], shown["customProperties"]) == ("News", str(news), expected)
        assert shown["categories"] == [
            {"id": str(news), "name": "News and talk", "label": "News", "description": "d", "customProperties": expected}
        ]
    assert (await event(http, (await add(http))["id"]))["categories"] == []


async def test_a_past_state_shows_the_category_and_properties_of_that_time(http: httpx.AsyncClient, inner: Core) -> None:
    news = await record(inner, Category, 31, name="News", label="News")
    first = await record(inner, CategoryProperty, 41, owner_id=news, category="a", key="k", value="1")
    made = await add(http, CategoryId=str(news))
    await do(inner, CategoryProperty.amend.on(first, {"value": "2"}))
    await record(inner, CategoryProperty, 42, owner_id=news, category="a", key="new", value="x")
    await do(inner, CategoryProperty.delete.on(first))
    await do(inner, Category.amend.on(news, {"label": "Talk"}))
    then = (await http.get(f"/api/audit/event/{made['id']}/state?version=1")).json()["state"]
    assert then == made
    assert (then["category"], [custom_property["value"] for custom_property in then["customProperties"]]) == ("News", ["1"])
    now = (await http.get(f"/api/audit/event/{made['id']}/state")).json()["state"]
    assert now == await event(http, made["id"])
    assert (now["category"], [custom_property["value"] for custom_property in now["customProperties"]]) == ("Talk", ["x"])


@every_link
async def test_a_linked_record_is_not_deleted(http: httpx.AsyncClient, inner: Core, field: str) -> None:
    """409 for every kind of record; 404 and 412 come first."""
    kind = LINKS[field][0]
    key = await target(inner, field)
    made = await add(http, Title="Final", **{field: str(key)})
    path = f"/api/{kind.KIND.replace('_', '')}/{key}"
    refused = await http.delete(path)
    assert_problem(refused, 409)
    assert f"event {made['id']} 'Final'" in refused.json()["detail"]
    assert_problem(await http.delete(path, headers={"If-Match": '"9"'}), 412)
    assert await topics(inner, kind.stream(key)) == [f"{kind.KIND}.registered"]
    await http.delete(f"/api/event/{made['id']}")
    assert (await http.delete(path)).status_code == 200
    assert await topics(inner, kind.stream(key)) == [f"{kind.KIND}.registered", f"{kind.KIND}.deleted"]
    assert (await http.put(f"/api/event/restore/{made['id']}")).json()[LINKS[field][1]] == str(key)
    assert (await event(http, made["id"]))[str(LINKS[field][2])] is None


async def test_a_refused_deletion_names_at_most_five_events(http: httpx.AsyncClient) -> None:
    room = await add_room(http)
    for number in range(9):
        await add(http, Title=f"Match {number}", RoomId=room)
    detail = (await http.delete(f"/api/room/{room}")).json()["detail"]
    assert detail.count("event ") == 5


async def test_of_a_link_and_a_deletion_at_the_same_time_one_is_refused(http: httpx.AsyncClient, inner: Core) -> None:
    for number in range(15):
        room, key = await add_room(http), (await add(http))["id"]
        giving, going = patch(http, key, replace("/RoomId", room)), http.delete(f"/api/room/{room}")
        given, gone = await asyncio.gather(giving, going)
        assert (given.status_code, gone.status_code) in ((200, 409), (400, 200)), number
        if given.status_code == 400:
            assert fields_of(given) == ["roomId"]
        shown = await event(http, key)
        assert shown["room"] == ("Main hall" if shown["roomId"] else None)
