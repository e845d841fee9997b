"""State changes, forced stop, protection, DVR window and flow tasks. See docs/reference/api/events.md."""

from __future__ import annotations

from typing import Any

import httpx

from api.wiring.core import Core
from domain.event.values import EventState
from tests.api.asking import UNKNOWN, add, assert_problem, event, fields_of, last, logged, new_id, of_event, version_of
from tests.support.clock import HandClock

NOON = "2031-01-02T12:00:00.000Z"
ONE = "2031-01-02T13:00:00.000Z"
TWO = "2031-01-02T14:00:00.000Z"


async def change_state(http: httpx.AsyncClient, key: str, state: object) -> httpx.Response:
    return await http.put(f"/api/event/state/{key}", json={"state": state})


async def test_every_state_is_reached_by_number_and_by_name(http: httpx.AsyncClient, inner: Core) -> None:
    numbers = "0 PRE_LIVE, 1 LIVE_UNPUBLISHED, 2 LIVE_PUBLISHED, 3 SUSPENDED, 4 STOPPED, 5 INSTANT_VOD, 6 INSTANT_VOD_BACKUP, \
7 INSTANT_VOD_DELETE, 8 PRE_VOD, 9 VOD_INGESTING, 10 VOD_PRIVATE, 11 VOD_PUBLIC, 12 REMIX_GENERATING, 13 REMIX_PRIVATE, \
14 REMIX_PUBLIC, 15 REMIX_ERROR, 16 VOD_ERROR, 17 ARCHIVER_PRIVATE, 18 ARCHIVER_PUBLIC, 19 COMPOSE_GENERATING, \
20 COMPOSE_PUBLIC, 21 COMPOSE_PRIVATE, 22 COMPOSE_WAITING, 23 COMPOSE_ERROR, 24 LIVE_STARTING, 25 LIVE_STOPPING"
    table = [(int(number), name) for number, name in (entry.split(" ") for entry in numbers.split(", "))]
    by_number, by_name = (await add(http, EventState=4))["id"], (await add(http, EventState=4))["id"]
    for number, name in table:
        for key, given in ((by_number, number), (by_name, name.lower())):
            before = await last(inner)
            response = await change_state(http, key, given)
            assert response.status_code == 200, response.text
            assert (response.json()["state"], response.json()["stateString"]) == (number, name)
            assert await event(http, key) == response.json()
            changed = (await logged(inner))[before:]
            assert [(entry.topic, entry.data["state"], entry.data["trigger"]) for entry in changed] == [
                ("event.state_changed", number, "operator")
            ]
    assert len(table) == len(EventState)


async def test_the_state_is_taken_under_the_name_that_other_writes_have(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    for body in ({"EventState": "STOPPED"}, {"eventState": 4, "state": "stopped"}, {"state": None, "EVENTSTATE": "4"}):
        response = await http.put(f"/api/event/state/{key}", json=body, headers={"Prefer": "handling=strict"})
        assert (response.status_code, response.json().get("state")) == (200, 4), response.text
    before = await last(inner)
    for wrong, field in (
        ({"EventState": 1, "state": 4}, "state"),
        ({}, "state"),
        ({"eventState": None}, "state"),
        ({"EventState": "LIVE"}, "eventState"),
    ):
        for target in (key, UNKNOWN):
            assert fields_of(await http.put(f"/api/event/state/{target}", json=wrong)) == [field]
    assert await last(inner) == before


async def test_the_same_state_again_is_200_without_an_event(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    key = (await add(http))["id"]
    first = await change_state(http, key, 2)
    clock.forward(hours=1)
    before = await last(inner)
    again = await change_state(http, key, "LIVE_PUBLISHED")
    assert (again.status_code, again.json(), again.headers["etag"]) == (200, first.json(), first.headers["etag"])
    assert await last(inner) == before


async def test_times_follow_the_states(http: httpx.AsyncClient, clock: HandClock) -> None:
    key = (await add(http))["id"]
    names = ("actualLiveStart", "actualLiveEnd", "publishedStart", "publishedEnd")

    async def times_after(state: int) -> tuple[str | None, ...]:
        shown = (await change_state(http, key, state)).json()
        return tuple(shown[name] for name in names)

    assert await times_after(1) == (NOON, None, None, None)
    clock.forward(hours=1)
    assert await times_after(2) == (NOON, None, ONE, None)
    clock.forward(hours=1)
    assert await times_after(4) == (NOON, TWO, ONE, TWO)
    clock.forward(hours=1)
    assert await times_after(2) == (NOON, TWO, ONE, TWO)


async def test_an_invalid_state_is_400_and_an_unknown_event_404(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    before = await last(inner)
    for body in ({}, {"state": 26}, {"state": "LIVE"}, {"state": None}, {"state": True}, {"state": [2]}):
        assert fields_of(await http.put(f"/api/event/state/{key}", json=body)) == ["state"]
        assert fields_of(await http.put(f"/api/event/state/{UNKNOWN}", json=body)) == ["state"]
    assert_problem(await change_state(http, UNKNOWN, 2), 404)
    assert fields_of(await change_state(http, "x", 2)) == ["id"]
    assert await last(inner) == before


async def test_a_forced_stop_is_always_recorded(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    key = (await add(http, EventState=2))["id"]
    clock.forward(hours=1)
    response = await http.put(f"/api/event/forcestop/{key}")
    shown = response.json()
    assert (response.status_code, shown["state"], shown["actualLiveEnd"], shown["publishedEnd"]) == (200, 4, ONE, ONE)
    clock.forward(hours=1)
    again = await http.put(f"/api/event/forcestop/{key}", json={"ignored": True})
    assert (again.status_code, again.json()["actualLiveEnd"]) == (200, ONE)
    assert await of_event(inner, key) == ["registered", "state_changed", "force_stopped", "force_stopped"]
    assert_problem(await http.put(f"/api/event/forcestop/{UNKNOWN}"), 404)


async def test_a_forced_stop_of_a_stopped_event_changes_neither_etag_nor_date(
    http: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    key = (await add(http, EventState=2))["id"]
    stopped = await http.put(f"/api/event/forcestop/{key}")
    assert stopped.headers["etag"] == '"3"'
    clock.forward(hours=1)
    again = await http.put(f"/api/event/forcestop/{key}", headers={"If-Match": '"3"'})
    answer = await http.get(f"/api/event/{key}")
    for response in (again, answer):
        assert (response.status_code, response.json(), version_of(response)) == (200, stopped.json(), 3)
    listed = await http.get("/api/event/", params={"fromModified": "2031-01-02T12:30:00Z"})
    assert listed.json()["totalCount"] == 0
    past = (await http.get(f"/api/audit/event/{key}/state?version=4")).json()["state"]
    assert past["dateModified"] == stopped.json()["dateModified"]
    assert_problem(await http.put(f"/api/event/state/{key}", json={"state": 2}, headers={"If-Match": '"4"'}), 412)
    started = await http.put(f"/api/event/state/{key}", json={"state": 2}, headers={"If-Match": '"3"'})
    assert (started.status_code, started.headers["etag"]) == (200, '"5"')
    assert started.json()["dateModified"] == ONE
    assert await of_event(inner, key) == ["registered", "state_changed", "force_stopped", "force_stopped", "state_changed"]


async def test_protection_changes_between_private_and_public(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await add(http, EventState="VOD_PRIVATE")
    address = f"/api/event/flow/protection/{shown['contentId']}"
    public = await http.put(address, json={"Protection": "VOD_PUBLIC"})
    assert (public.status_code, public.json()["state"]) == (200, 11)
    before = await last(inner)
    assert (await http.put(address, json={"protection": 11})).status_code == 200
    assert await last(inner) == before
    private = await http.put(
        address.upper().replace("/API/EVENT/FLOW/PROTECTION", "/api/event/flow/protection"), json={"PROTECTION": 10}
    )
    assert private.json()["stateString"] == "VOD_PRIVATE"
    assert [entry.data.get("trigger") for entry in await logged(inner, f"event:{shown['id']}")][2:] == ["protection", "protection"]


async def test_protection_is_409_for_other_states_and_404_for_unknown_content(http: httpx.AsyncClient, inner: Core) -> None:
    vod, live = (await add(http, EventState=11))["id"], (await add(http, EventState=2))["id"]
    before = await last(inner)
    assert_problem(await http.put(f"/api/event/flow/protection/{vod}", json={"Protection": "STOPPED"}), 409)
    for number in (10, 11):
        assert_problem(await http.put(f"/api/event/flow/protection/{live}", json={"Protection": number}), 409)
        for content_id in (UNKNOWN, "no-guid", "%2F", "日本"):
            assert_problem(await http.put(f"/api/event/flow/protection/{content_id}", json={"Protection": number}), 404)
    for body in ({}, {"Protection": 26}, {"Protection": "x"}, {"Protection": None}):
        assert fields_of(await http.put(f"/api/event/flow/protection/{UNKNOWN}", json=body)) == ["protection"]
    assert await last(inner) == before


async def test_the_dvr_window_is_set_and_shown_as_url_parameter(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    address = f"/api/event/stream/dvrwindowlength/{key}"
    shown = (await http.post(address, json={"DvrWindowLength": 1800})).json()
    assert (shown["dvrLength"], shown["dvrLengthUrlParam"]) == (1800, 1800)
    before = await last(inner)
    assert (await http.post(address, json={"dvrwindowlength": 1800})).status_code == 200
    for value in (-1, "x", 1.5, None, True, 2**70, [1]):
        assert fields_of(await http.post(address, json={"DvrWindowLength": value}))[0].lower() == "dvrwindowlength", value
    assert fields_of(await http.post(address, json={})) == ["dvrWindowLength"]
    assert_problem(await http.post(f"/api/event/stream/dvrwindowlength/{UNKNOWN}", json={"DvrWindowLength": 1}), 404)
    assert await last(inner) == before
    assert (await http.post(address, json={"DvrWindowLength": 0})).json()["dvrLength"] == 0
    assert await of_event(inner, key) == ["registered", "streaming_configured", "streaming_configured"]


async def test_a_flow_task_without_an_id_adds_an_event(http: httpx.AsyncClient, inner: Core) -> None:
    for extra in ({}, {"Id": None}):
        response = await http.post("/api/event/flow/add/", json={"TaskEngineJson": '{"task": 1}', "RefreshIndex": True, **extra})
        shown = response.json()
        assert (response.status_code, shown["taskEngineJson"], shown["state"]) == (200, '{"task": 1}', 0)
        assert await of_event(inner, shown["id"]) == ["registered"]
        assert await event(http, shown["id"]) == shown


async def test_a_flow_task_and_states_are_set_on_an_event(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http, Title="Final"))["id"]
    body = {"Id": key, "TaskEngineJson": "[]", "EventState": "VOD_INGESTING", "Mp4State": "GENERATING"}
    shown = (await http.post("/api/event/flow/add", json=body)).json()
    assert (shown["title"], shown["taskEngineJson"], shown["stateString"]) == ("Final", "[]", "VOD_INGESTING")
    assert (shown["mp4State"], shown["mp4StateString"]) == (2, "GENERATING")
    assert await of_event(inner, key) == ["registered", "flow_task_changed", "state_changed", "mp4_state_changed"]
    assert (await logged(inner, f"event:{key}"))[2].data["trigger"] == "flow"
    before = await last(inner)
    assert (await http.post("/api/event/flow/add", json=body)).status_code == 200
    assert await last(inner) == before


async def test_mp4_states_have_these_numbers_and_names(http: httpx.AsyncClient) -> None:
    for number, name in ((1, "AVAILABLE"), (2, "GENERATING"), (4, "FAILED"), (0, "NONE")):
        for given in (number, name):
            response = await http.post("/api/event/flow/add", json={"TaskEngineJson": "{}", "Mp4State": given})
            assert (response.json()["mp4State"], response.json()["mp4StateString"]) == (number, name)
    assert fields_of(await http.post("/api/event/flow/add", json={"TaskEngineJson": "{}", "Mp4State": 3})) == ["mp4State"]


async def test_an_invalid_flow_task_is_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    wrong: list[dict[str, Any]] = [
        {},
        {"TaskEngineJson": None},
        {"TaskEngineJson": "{"},
        {"TaskEngineJson": {}},
        {"TaskEngineJson": "{", "Id": UNKNOWN},
    ]
    for body in wrong:
        assert fields_of(await http.post("/api/event/flow/add", json=body))[0].lower() == "taskenginejson", body
    for key in (UNKNOWN, new_id()):
        assert_problem(await http.post("/api/event/flow/add", json={"TaskEngineJson": "{}", "Id": key}), 404)
    assert await last(inner) == before
