"""DELETE /event/{id} and PUT /event/restore/{id}. See docs/reference/api/events.md."""

from __future__ import annotations

import httpx

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, add_room, assert_problem, event, fields_of, last, of_event, patch, replace
from tests.support.clock import HandClock


async def ids(http: httpx.AsyncClient, address: str, **parameters: str) -> list[str]:
    return [shown["id"] for shown in (await http.get(address, params=parameters)).json()["results"]]


async def test_a_deleted_event_is_only_in_the_list_of_deleted_events(
    http: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    room = await add_room(http)
    shown = await add(http, Title="Final", RefId="r", ExternalId="x", RoomId=room, Tags=[{"name": "a"}])
    key = shown["id"]
    clock.forward(minutes=1)
    deleted = await http.delete(f"/api/event/{key}")
    at = "2031-01-02T12:01:00.000Z"
    assert (deleted.status_code, deleted.json()) == (200, {**shown, "dateDeleted": at, "dateModified": at})
    for path in (f"/api/event/{key}", "/api/event/reference?id=r", "/api/event/external?id=x"):
        missing = await http.get(path)
        assert (missing.status_code, missing.content) == (204, b"")
    for path in ("/api/event/", f"/api/room/{room}/events/"):
        response = (await http.get(path)).json()
        assert (response["totalCount"], response["results"]) == (0, [])
    for asked in ({"search": "final"}, {"tags": "a"}, {"room": "Main hall"}):
        assert await ids(http, "/api/event/", **asked) == []
        assert await ids(http, "/api/event/deleted/", **asked) == [key]
    assert (await http.get("/api/event/deleted/")).json() == {"pageSize": 20, "totalCount": 1, "results": [deleted.json()]}
    assert (await http.get("/api/event/external/unique?id=x")).json()["IsUnique"] is True
    assert (await http.get(f"/api/tag/event/{key}")).json() == []
    assert await of_event(inner, key) == ["registered", "deleted"]


async def test_other_writes_to_a_deleted_event_are_404(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http, EventState=10, RefId="r"))["id"]
    await http.delete(f"/api/event/{key}")
    before = await last(inner)
    for response in (
        await http.delete(f"/api/event/{key}"),
        await patch(http, key, replace("/Title", "x")),
        await patch(http, "/api/event/reference/r", replace("/Title", "x")),
        await http.put(f"/api/event/state/{key}", json={"state": 1}),
        await http.put(f"/api/event/state/{key}", json={"state": 10}),
        await http.put(f"/api/event/forcestop/{key}"),
        await http.put(f"/api/event/flow/protection/{key}", json={"Protection": 11}),
        await http.post(f"/api/event/stream/dvrwindowlength/{key}", json={"DvrWindowLength": 1}),
        await http.post("/api/event/flow/add/", json={"Id": key, "TaskEngineJson": "{}"}),
    ):
        assert_problem(response, 404)
    assert_problem(await http.post("/api/event/", json={"Id": key}), 409)
    assert await last(inner) == before


async def test_a_restored_event_is_as_before(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    shown = await add(http, Title="Final", RefId="r", Tags=[{"name": "a"}], EventState=4)
    key = shown["id"]
    await http.delete(f"/api/event/{key}")
    clock.forward(minutes=1)
    restored = await http.put(f"/api/event/restore/{key}")
    assert (restored.status_code, restored.json()) == (200, {**shown, "dateModified": "2031-01-02T12:01:00.000Z"})
    assert await event(http, key) == restored.json()
    assert await ids(http, "/api/event/") == [key]
    assert await ids(http, "/api/event/deleted/") == []
    assert await of_event(inner, key) == ["registered", "state_changed", "deleted", "restored"]


async def test_restoring_an_event_that_is_not_deleted_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await add(http, Title="Final")
    before = await last(inner)
    response = await http.put(f"/api/event/restore/{shown['id']}")
    assert (response.status_code, response.json()) == (200, shown)
    assert await last(inner) == before


async def test_unknown_ids_are_404_and_malformed_ones_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for send, path in ((http.delete, "/api/event/"), (http.put, "/api/event/restore/")):
        assert_problem(await send(path + UNKNOWN), 404)
        assert fields_of(await send(path + "x")) == ["id"]
    assert await last(inner) == before
