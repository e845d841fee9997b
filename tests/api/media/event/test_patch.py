"""PATCH /event/{id} and /event/reference/{referenceid}. See docs/reference/api/events.md, "JSON Patch"."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx

from api.wiring.core import Core
from tests.api.asking import (
    AWKWARD,
    PATCH_TYPE,
    UNKNOWN,
    add,
    add_room,
    assert_problem,
    event,
    fields_of,
    last,
    of_event,
    patch,
    replace,
)
from tests.api.media.event.test_post import FLAGS, LIMITS, TEXTS, TIMES
from tests.support.clock import HandClock


async def tags_of(http: httpx.AsyncClient, key: str) -> list[str]:
    return [tag["name"] for tag in (await http.get(f"/api/tag/event/{key}")).json()]


async def test_every_writable_field_is_replaced_by_both_names_in_any_case(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    room = await add_room(http)
    table: dict[str, tuple[str, list[Any]]] = {
        **{name: (shown, ["one", "two", "three", "four"]) for name, shown in TEXTS.items()},
        **{
            name: (shown, [f"2031-01-{number:02}T0{day}:00:00.000Z" for day in range(1, 5)])
            for number, (name, shown) in enumerate(TIMES.items(), 1)
        },
        **{name: (shown, [True, False, True, False]) for name, shown in FLAGS.items()},
        **{name: (shown, [1, 2, 3, 4]) for name, shown in LIMITS.items()},
        "RoomId": ("roomId", [room, None, room, None]),
        "TaskEngineJson": ("taskEngineJson", ["[1]", "[2]", "[3]", "[4]"]),
        "DrmJson": ("drmJson", ["[1]", "[2]", "[3]", "[4]"]),
        "EventState": ("state", [4, 0, 10, 11]),
    }
    for name, (shown, values) in table.items():
        for path, value in zip((name, name.upper(), shown, shown.lower()), values, strict=True):
            response = await patch(http, key, replace(f"/{path}", value))
            assert response.status_code == 200, (path, response.text)
            assert response.json()[shown] == value, path
            assert await event(http, key) == response.json()


async def test_add_is_replace_and_remove_is_null(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await add(http, Title="Final", AutoStart=True, DvrLength=9, Tags=[{"name": "a"}])
    key = shown["id"]
    added = await patch(http, key, {"op": "add", "path": "/Title", "value": "Other"})
    assert added.json() == {**shown, "title": "Other"}
    steps = [{"op": "remove", "path": path} for path in ("/Title", "/autoStart", "/dvrLength", "/Tags")]
    removed = await patch(http, key, *steps)
    assert removed.json() == {**shown, "title": "", "autoStart": False, "dvrLength": 0, "dvrLengthUrlParam": 0}
    assert await tags_of(http, key) == []
    assert await of_event(inner, key) == [
        "registered",
        "described",
        "described",
        "automation_changed",
        "tagged",
        "streaming_configured",
    ]


async def test_the_patch_applies_if_its_tests_succeed(http: httpx.AsyncClient) -> None:
    room = await add_room(http)
    sent = {"Title": "Final", "AutoStart": True, "RoomId": room, "ScheduledStart": "2031-01-01T10:00:00Z", "VodEnableDrm": True}
    key = (await add(http, **sent, EventState=11, Tags=[{"name": "a"}]))["id"]
    tests = [{"op": "test", "path": f"/{name}", "value": value} for name, value in sent.items()]
    tests += [
        {"op": "test", "path": "/scheduledStart", "value": "2031-01-01T12:00:00+02:00"},
        {"op": "test", "path": "/state", "value": "VOD_PUBLIC"},
        {"op": "test", "path": "/vodDrm", "value": True},
        {"op": "test", "path": "/Tags", "value": [{"name": "a"}]},
        {"op": "test", "path": "/description", "value": None},
        {"op": "test", "path": "/refId", "value": ""},
        {"op": "test", "path": "/dvrLength", "value": 0},
    ]
    response = await patch(http, key, *tests, replace("/Title", "Other"), {"op": "test", "path": "/title", "value": "Other"})
    assert response.status_code == 200, response.text
    assert response.json()["title"] == "Other"


async def test_a_failed_test_is_409_and_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http, Title="Final", Tags=[{"name": "a"}]))["id"]
    before = await last(inner)
    for path, value in [
        ("/title", "Finale"),
        ("/title", None),
        ("/autoStart", True),
        ("/state", 1),
        ("/state", None),
        ("/dvrLength", 7),
        ("/scheduledStart", "2031-01-01"),
        ("/Tags", []),
        ("/Tags", [{"name": "a"}, {"name": "unheard of"}]),
        ("/roomId", UNKNOWN),
    ]:
        response = await patch(
            http, key, replace("/Title", "Other"), replace("/Title", "Final"), {"op": "test", "path": path, "value": value}
        )
        assert_problem(response, 409)
    assert await last(inner) == before


async def test_an_invalid_patch_is_400_and_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http, Title="Final"))["id"]
    before = await last(inner)
    valid = replace("/Title", "Other")
    for step, field in [
        ({"op": "move", "from": "/Title", "path": "/Description"}, "[1].op"),
        ({"op": "copy", "from": "/Title", "path": "/Description"}, "[1].op"),
        ({"op": "REPLACE", "path": "/Title", "value": 1}, "[1].op"),
        ({"op": "", "path": "/Title", "value": "x"}, "[1].op"),
        ({"path": "/Title", "value": "x"}, "[1].op"),
        ({"op": "replace", "value": "x"}, "[1].path"),
        ({"op": "replace", "path": "/Title"}, "[1].value"),
        ({"op": "add", "path": "/Title"}, "[1].value"),
        ({"op": "test", "path": "/Title"}, "[1].value"),
        *(
            (replace(path, "x"), "[1].path")
            for path in (
                "",
                "/",
                "Title",
                "//Title",
                "/Title/",
                "/Title/0",
                "/Tags/-",
                "/tags/0/name",
                "/odd",
                "/Title ",
                "/~1Title",
                "/~2",
                "/id",
                "/Id",
                "/contentId",
                "/stateString",
                "/mp4State",
                "/dateCreated",
                "/dateDeleted",
                "/actualLiveStart",
                "/displayStart",
                "/video",
                "/customProperties",
                "/room",
                "/channel",
                "/documentUrl",
                "/drmData",
            )
        ),
        (replace("/Title", 7), "[1].value"),
        (replace("/AutoStart", "maybe"), "[1].value"),
        (replace("/DvrLength", -1), "[1].value"),
        (replace("/ScheduledStart", "soon"), "[1].value"),
        (replace("/EventState", 99), "[1].value"),
        (replace("/DrmJson", "{"), "[1].value"),
        (replace("/Tags", [{"name": " "}]), "[1].value"),
        (replace("/RoomId", "x"), "[1].value"),
        (replace("/RoomId", UNKNOWN), "roomId"),
        (replace("/ChannelId", UNKNOWN), "channelId"),
        ("replace", "[1]"),
        (None, "[1]"),
    ]:
        assert fields_of(await patch(http, key, valid, step)) == [field], step
    for body in (b"", b"null", b"{}", b'"x"', b"[", json.dumps(valid).encode()):
        assert fields_of(await http.patch(f"/api/event/{key}", content=body, headers=PATCH_TYPE)) == ["body"], body
    assert await last(inner) == before
    assert (await event(http, key))["title"] == "Final"


async def test_an_empty_patch_is_200(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await add(http, Title="Final")
    before = await last(inner)
    response = await patch(http, shown["id"])
    assert (response.status_code, response.json(), response.headers["etag"]) == (200, shown, '"1"')
    assert await last(inner) == before


async def test_other_content_types_are_415(http: httpx.AsyncClient) -> None:
    key = (await add(http, Title="Final", RefId="r"))["id"]
    for address in (f"/api/event/{key}", "/api/event/reference/r"):
        for content_type in ("application/json", "text/plain", "application/merge-patch+json", "application/x-www-form-urlencoded"):
            response = await http.patch(address, content=b"[]", headers={"content-type": content_type})
            assert_problem(response, 415)
        fine = await http.patch(address, content=b"[]", headers={"content-type": "application/json-patch+json; charset=utf-8"})
        assert fine.status_code == 200


async def test_an_unknown_event_is_404_after_400(http: httpx.AsyncClient) -> None:
    for path in (UNKNOWN, "/api/event/reference/nothing"):
        assert_problem(await patch(http, path, replace("/Title", "x")), 404)
        assert_problem(await patch(http, path, replace("/odd", "x")), 400)
        assert_problem(await patch(http, path, replace("/RoomId", UNKNOWN)), 400)
        assert_problem(await patch(http, path, **{"If-Match": '"7"'}), 404)
    assert fields_of(await patch(http, "no-guid")) == ["id"]


async def test_a_percent_encoded_reference_id_finds_the_newest_event(http: httpx.AsyncClient, clock: HandClock) -> None:
    for reference in AWKWARD:
        old = await add(http, RefId=reference)
        clock.forward(seconds=1)
        new = await add(http, RefId=reference)
        address = f"/api/event/reference/{quote(reference, safe='')}"
        response = await patch(http, address, replace("/Title", reference))
        assert (response.status_code, response.json()["id"], response.json()["title"]) == (200, new["id"], reference)
        await http.delete(f"/api/event/{new['id']}")
        assert (await patch(http, address + "/", replace("/Title", "x"))).json()["id"] == old["id"]
        await http.delete(f"/api/event/{old['id']}")
        assert_problem(await patch(http, address, replace("/Title", "x")), 404)
