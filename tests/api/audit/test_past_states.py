"""GET /api/audit/{aggregate}/{id}/state: as a GET showed it, at any moment of the past."""

from __future__ import annotations

from datetime import datetime, timedelta

import httpx

from api.wiring.core import Core
from domain.kernel.clock import iso
from tests.api.asking import add, add_room, assert_problem, event, fields_of, last, new_id, patch, replace
from tests.support.clock import HandClock


async def recorded(inner: Core, position: int) -> datetime:
    row = await inner.database.row("SELECT recorded_at FROM events WHERE position = %s", (position,))
    assert row is not None
    at: datetime = row[0]
    return at


async def a_later_millisecond(inner: Core) -> None:
    """Wait until the database's clock shows a later millisecond than the last event."""
    shown = iso(await recorded(inner, await last(inner)))
    while True:
        row = await inner.database.row("SELECT clock_timestamp()")
        if row is not None and iso(row[0]) > shown:
            return


async def test_every_version_is_shown_as_a_get_showed_it_then(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    key = (await add(http, Title="Final", Tags=[{"name": "a"}]))["id"]
    room = await add_room(http, "Old name")
    shown = [await event(http, key)]
    moments = [iso(await recorded(inner, await last(inner)))]
    for path, value in (("/RoomId", room), ("/Title", "Other"), ("/EventState", 2), ("/DrmJson", '{"drm_data": [1]}')):
        await a_later_millisecond(inner)
        clock.forward(minutes=1)
        await patch(http, key, replace(path, value))
        shown.append(await event(http, key))
        moments.append(iso(await recorded(inner, await last(inner))))
    assert len({str(entry) for entry in shown}) == 5
    history = (await http.get(f"/api/audit/event/{key}")).json()
    for version, then in enumerate(shown, 1):
        for asked in ({"version": version}, {"at": moments[version - 1]}):
            answer = (await http.get(f"/api/audit/event/{key}/state", params=asked)).json()
            assert answer == {
                "aggregate": "event",
                "id": key,
                "version": version,
                "position": history[version - 1]["position"],
                "recordedAt": history[version - 1]["recordedAt"],
                "state": then,
            }, asked
    now = (await http.get(f"/api/audit/event/{key}/state")).json()
    assert (now["version"], now["state"]) == (5, await event(http, key))


async def test_a_room_has_the_name_that_it_had_then(http: httpx.AsyncClient, inner: Core) -> None:
    room = await add_room(http, "Old name")
    key = (await add(http, RoomId=room))["id"]
    await a_later_millisecond(inner)
    before = iso(await recorded(inner, await last(inner)))
    await http.put(f"/api/room/{room}", json={"name": "New name"})
    renamed = iso(await recorded(inner, await last(inner)))
    await a_later_millisecond(inner)
    for asked, name in (
        ({"version": "1"}, "Old name"),
        ({"at": before}, "Old name"),
        ({"at": renamed}, "New name"),
        ({"at": "9999-12-31"}, "New name"),
        ({}, "New name"),
    ):
        answer = (await http.get(f"/api/audit/event/{key}/state", params=asked)).json()
        assert (answer["version"], answer["state"]["roomId"], answer["state"]["room"]) == (1, room, name), asked
    assert (await http.get(f"/api/audit/room/{room}/state?version=1")).json()["state"]["Name"] == "Old name"
    assert (await http.get(f"/api/audit/room/{room}/state")).json()["state"]["Name"] == "New name"


async def test_a_deleted_room_has_no_name_any_more(http: httpx.AsyncClient) -> None:
    room = await add_room(http, "Hall")
    key = (await add(http, RoomId=room))["id"]
    await http.delete(f"/api/event/{key}")
    await http.delete(f"/api/room/{room}")
    shown = (await http.get("/api/event/deleted/")).json()["results"][0]
    assert (shown["roomId"], shown["room"]) == (room, None)
    assert (await http.get(f"/api/audit/event/{key}/state")).json()["state"] == shown
    assert (await http.get(f"/api/audit/event/{key}/state?version=1")).json()["state"]["room"] == "Hall"


async def test_an_aggregate_is_404_before_its_first_event(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    created = await recorded(inner, await last(inner))
    for asked, reported in (
        ({"at": iso(created - timedelta(milliseconds=1))}, f"The event {key} did not exist before {iso(created)}."),
        ({"at": "0001-01-01"}, f"The event {key} did not exist before {iso(created)}."),
        ({"version": "2"}, f"The event {key} has no version 2; the newest is 1."),
        ({"version": str(2**63 - 1)}, f"The event {key} has no version {2**63 - 1}; the newest is 1."),
    ):
        answer = await http.get(f"/api/audit/event/{key}/state", params=asked)
        assert_problem(answer, 404)
        assert answer.json()["detail"] == reported
    never = new_id()
    for query in ("", "?version=1", "?at=2031-01-01"):
        answer = await http.get(f"/api/audit/event/{never}/state{query}")
        assert_problem(answer, 404)
        assert answer.json()["detail"] == f"There is no event {never}."


async def test_a_version_together_with_a_time_and_invalid_values_are_400(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    assert fields_of(await http.get(f"/api/audit/event/{key}/state?version=1&at=2031-01-01")) == ["at"]
    for name, values in {"version": ["0", "-1", "x", "1.5", ""], "at": ["soon", "", "1700000000", "99999-01-01"]}.items():
        for value in values:
            assert fields_of(await http.get(f"/api/audit/event/{key}/state", params={name: value})) == [name]


async def test_rooms_tags_and_clients_have_states_too(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http, Tags=[{"name": "sport"}]))["id"]
    tag = (await http.get(f"/api/tag/event/{key}")).json()[0]
    assert (await http.get(f"/api/audit/tag/{tag['id']}/state")).json()["state"] == tag
    room = await add_room(http, referenceId="r")
    shown = (await http.get(f"/api/room/{room}")).json()
    await http.put(f"/api/room/{room}", json={"name": "x", "referenceId": None})
    assert (await http.get(f"/api/audit/room/{room}/state?version=1")).json()["state"] == shown
    client = (await http.get("/api/audit/client/admin/state?version=1")).json()["state"]
    assert (client["name"], client["roles"], client["keys"]) == ("admin", ["admin"], [])


async def test_addresses_in_a_past_state_use_the_host_of_the_request(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    state = (await http.get(f"/api/audit/event/{key}/state", headers={"Host": "elsewhere:8443"})).json()["state"]
    assert state["tagUrl"] == f"http://elsewhere:8443/api/tag/event/{key}"
