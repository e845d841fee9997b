"""GET /event/ and /event/deleted/ with every parameter. See docs/reference/api/events.md."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.api.asking import AWKWARD, UNKNOWN, add, add_room, fields_of, new_id
from tests.support.clock import HandClock

DAYS = ["2031-05-01T10:00:00.000Z", "2031-05-02T10:00:00.000Z", "2031-05-03T10:00:00.000Z"]


async def titles_of(http: httpx.AsyncClient, **parameters: Any) -> list[str]:
    """The titles of a list of Events. Asserts that `totalCount` fits."""
    response = await http.get("/api/event/", params=parameters)
    assert response.status_code == 200, response.text
    body = response.json()
    assert body.keys() == {"pageSize", "totalCount", "results"}
    titles = [shown["title"] for shown in body["results"]]
    if "pageNumber" not in parameters and "pageSize" not in parameters:
        assert body["totalCount"] == len(titles)
    return titles


async def add_three(http: httpx.AsyncClient, **fields: Any) -> list[str]:
    return [(await add(http, Title=f"day {n}", ScheduledStart=day, **fields))["id"] for n, day in enumerate(DAYS, 1)]


async def test_an_empty_list_has_its_shape(http: httpx.AsyncClient) -> None:
    for path in ("/api/event/", "/api/event", "/api/event/deleted/", "/api/event/deleted"):
        assert (await http.get(path)).json() == {"pageSize": 20, "totalCount": 0, "results": []}


async def test_from_and_to_are_inclusive_and_drop_events_without_a_start(http: httpx.AsyncClient) -> None:
    await add_three(http)
    await add(http, Title="some day")
    assert await titles_of(http) == ["day 1", "day 2", "day 3", "some day"]
    assert await titles_of(http, **{"from": DAYS[1]}) == ["day 2", "day 3"]
    assert await titles_of(http, to=DAYS[1]) == ["day 1", "day 2"]
    assert await titles_of(http, **{"from": DAYS[1], "to": DAYS[1]}) == ["day 2"]
    assert await titles_of(http, **{"from": "2031-05-02T12:00:00.000+02:00", "to": DAYS[1]}) == ["day 2"]
    assert await titles_of(http, FROM="2031-05-02T10:00:00.001Z") == ["day 3"]
    assert await titles_of(http, **{"from": DAYS[2], "to": DAYS[0]}) == []


async def test_modified_bounds_are_inclusive(http: httpx.AsyncClient, clock: HandClock) -> None:
    for minute in range(3):
        await add(http, Title=f"minute {minute}")
        clock.forward(minutes=1)
    at = "2031-01-02T12:01:00.000Z"
    assert set(await titles_of(http, fromModified=at)) == {"minute 1", "minute 2"}
    assert set(await titles_of(http, toModified=at)) == {"minute 0", "minute 1"}
    assert await titles_of(http, fromModified=at, tomodified=at) == ["minute 1"]


async def test_pages_are_cut_ordered_and_counted(http: httpx.AsyncClient) -> None:
    await add_three(http)
    for size, number, titles in [
        (1, 1, ["day 1"]),
        (1, 3, ["day 3"]),
        (2, 2, ["day 3"]),
        (2, 3, []),
        (3, 1, ["day 1", "day 2", "day 3"]),
    ]:
        body = (await http.get("/api/event/", params={"pageSize": size, "pageNumber": number})).json()
        assert (body["pageSize"], body["totalCount"], [shown["title"] for shown in body["results"]]) == (size, 3, titles)


async def test_a_page_is_1000_at_most_and_says_so(http: httpx.AsyncClient) -> None:
    for path in ("/api/event/", "/api/event/deleted/"):
        for parameters, used in ((1000, 1000), (1001, 1000), (5000, 1000), (10**15, 1000), (2**63 - 1, 1000), (1, 1)):
            assert (await http.get(path, params={"pageSize": parameters})).json()["pageSize"] == used


async def test_a_page_number_far_beyond_the_end_is_empty(http: httpx.AsyncClient) -> None:
    await add_three(http)
    for number in (10**15, 2**63 - 1):
        body = (await http.get("/api/event/", params={"pageNumber": number, "pageSize": 1000})).json()
        assert (body["totalCount"], body["results"]) == (3, [])


async def test_an_invalid_value_of_each_parameter_is_400(http: httpx.AsyncClient) -> None:
    wrong = {
        "from": ["soon", "0000-01-01", "99999-01-01", "1700000000"],
        "to": ["x"],
        "fromModified": ["x"],
        "toModified": ["2031-13-01"],
        "pageSize": ["0", "-1", "x", "1.5", str(2**63), "1e3"],
        "pageNumber": ["0", "-1", "x", str(10**30)],
        "eventState": ["LIVE", "26", "-1", "0,x", "1 2"],
        "provisionState": ["8", "SCHEDULE", "0,9"],
        "noScheduledEnd": ["maybe", "2"],
        "containsVuflow": ["x"],
        "ids": ["x", f"{UNKNOWN},x"],
        "skipEvents": ["x", f"{UNKNOWN},x"],
        "order": ["UP", "1", "ASCENDING"],
        "orderColumn": ["Titel", "title,state", "id; DROP TABLE events", "e.title"],
        "noCache": ["x"],
    }
    for path in ("/api/event/", "/api/event/deleted/"):
        for name, values in wrong.items():
            for value in values:
                response = await http.get(path, params={name: value})
                assert [field.partition("[")[0] for field in fields_of(response)] == [name], (name, value)


async def test_a_state_is_a_number_or_a_name_and_any_of_several_matches(http: httpx.AsyncClient) -> None:
    for state in ("PRE_LIVE", "LIVE_PUBLISHED", "STOPPED"):
        await add(http, Title=state, EventState=state)
    assert await titles_of(http, eventState="2") == ["LIVE_PUBLISHED"]
    assert set(await titles_of(http, eventState="live_published, 4")) == {"LIVE_PUBLISHED", "STOPPED"}
    assert set(await titles_of(http, eventState=["0", "STOPPED"])) == {"PRE_LIVE", "STOPPED"}
    assert await titles_of(http, eventState="25") == []
    assert len(await titles_of(http, eventState="")) == 3


async def test_no_event_has_a_provision_state(http: httpx.AsyncClient) -> None:
    await add_three(http)
    for state in ("0", "SCHEDULED", "provisioned,7"):
        assert await titles_of(http, provisionState=state) == []


async def test_a_tag_is_a_whole_name_and_any_of_several_matches(http: httpx.AsyncClient) -> None:
    await add(http, Title="a", Tags=[{"name": "sport"}])
    await add(http, Title="b", Tags=[{"name": "Sport"}, {"name": "live show"}])
    await add(http, Title="c")
    assert await titles_of(http, tags="sport") == ["a"]
    assert set(await titles_of(http, tags="sport, live show")) == {"a", "b"}
    assert set(await titles_of(http, tags=["sport", "live show"])) == {"a", "b"}
    for none in ("spor", "sp%", "sp_rt", "unheard of"):
        assert await titles_of(http, tags=none) == []


async def test_a_room_is_a_whole_name_that_two_rooms_may_have(http: httpx.AsyncClient) -> None:
    first, second = await add_room(http, "Hall"), await add_room(http, "Hall")
    await add(http, Title="a", RoomId=first)
    await add(http, Title="b", RoomId=second)
    await add(http, Title="c", RoomId=await add_room(http, "hall"))
    assert set(await titles_of(http, room="Hall")) == {"a", "b"}
    assert await titles_of(http, room="Hal") == []
    assert await titles_of(http, room="Hall\t") == []
    await http.put(f"/api/room/{first}", json={"name": "Annex"})
    assert await titles_of(http, room="Annex") == ["a"]


async def test_filters_on_names_that_no_event_has_find_nothing(http: httpx.AsyncClient) -> None:
    await add_three(http)
    for name in ("eventType", "channel", "category"):
        assert await titles_of(http, **{name: "anything"}) == []
    assert await titles_of(http, category=["a", "b"]) == []


async def test_search_looks_in_five_fields_in_any_case(http: httpx.AsyncClient) -> None:
    shown = await add(
        http, Title="The FINAL of É", RefId="Ref/1", ExternalId="ext-%-9", Description="down\\under_", Thumbnail="thumb"
    )
    await add(http, Title="other")
    for text in ("final", "FINAL OF é", "ref/1", "EXT-%", "n\\u", "under_", shown["id"][:13].upper(), shown["contentId"]):
        assert await titles_of(http, search=text) == ["The FINAL of É"], text
    for text in ("%", "_", "\\"):
        assert await titles_of(http, search=text) == ["The FINAL of É"], text
    for text in ("f%l", "f_nal", "thumb", "final ref", "' OR 1=1 --"):
        assert await titles_of(http, search=text) == [], text
    assert len(await titles_of(http, search="")) == 2


async def test_special_characters_are_plain_text_in_filters(http: httpx.AsyncClient) -> None:
    for text in AWKWARD:
        room = await add_room(http, f"room {text}")
        await add(http, Title=f"title {text}", RoomId=room, Tags=[{"name": f"tag {text}"}])
    for text in AWKWARD:
        assert await titles_of(http, room=f"room {text}") == [f"title {text}"]
        assert await titles_of(http, tags=f"tag {text}".rstrip() if text == " " else f"tag {text}") == (
            [] if text == " " else [f"title {text}"]
        )
        assert f"title {text}" in await titles_of(http, search=f"TITLE {text}")


async def test_no_scheduled_end_filters_only_when_true(http: httpx.AsyncClient) -> None:
    await add(http, Title="open")
    await add(http, Title="closed", ScheduledEnd=DAYS[0])
    for true in ("true", "TRUE", "1"):
        assert await titles_of(http, noScheduledEnd=true) == ["open"]
    for false in ("false", "0"):
        assert set(await titles_of(http, noScheduledEnd=false)) == {"open", "closed"}
        assert set(await titles_of(http, containsVuflow=false)) == {"open", "closed"}
    assert await titles_of(http, containsVuflow="true") == []


async def test_skipped_events_are_left_out_and_not_counted(http: httpx.AsyncClient) -> None:
    keys = await add_three(http)
    assert await titles_of(http, skipEvents=f"{keys[0]}, {keys[2].upper()}") == ["day 2"]
    assert await titles_of(http, skipEvents=[keys[0], keys[1]]) == ["day 3"]
    assert len(await titles_of(http, skipEvents=UNKNOWN)) == 3


async def test_several_events_are_read_by_their_ids_at_once(http: httpx.AsyncClient) -> None:
    keys = await add_three(http)
    assert await titles_of(http, ids=f"{keys[2].upper()}, {keys[0]}, {UNKNOWN}") == ["day 1", "day 3"]
    assert await titles_of(http, ids=[keys[0], keys[1]], skipEvents=keys[0], search="day") == ["day 2"]
    assert await titles_of(http, ids=UNKNOWN) == []


async def test_filters_combine_with_and(http: httpx.AsyncClient) -> None:
    keys = await add_three(http, EventState=2, Tags=[{"name": "a"}])
    await add(http, Title="day 2", ScheduledStart=DAYS[1], Tags=[{"name": "b"}])
    parameters = {"from": DAYS[0], "to": DAYS[1], "eventState": "2,4", "tags": "a,b", "search": "day", "skipEvents": keys[0]}
    assert await titles_of(http, **parameters) == ["day 2"]


COLUMNS: dict[str, list[Any]] = {
    "Title": ["A", "B", "C"],
    "State": [1, 2, 4],
    "RefId": ["r1", "r2", "r3"],
    "ExternalId": ["x1", "x2", "x3"],
    "DisplayLiveStart": DAYS,
    "DisplayLiveEnd": DAYS,
    "Room": ["Attic", "Bar", "Cellar"],
}
FIELD = {"State": "EventState", "DisplayLiveStart": "PublishedStart", "DisplayLiveEnd": "PublishedEnd", "Room": "RoomId"}


@pytest.mark.parametrize("column", COLUMNS)
async def test_each_order_column_orders_both_ways_with_nulls_last(http: httpx.AsyncClient, column: str) -> None:
    values = COLUMNS[column]
    keys = []
    for index in (1, 0, 2):
        value = await add_room(http, str(values[index])) if column == "Room" else values[index]
        keys.append((index, (await add(http, **{FIELD.get(column, column): value}))["id"]))
    ascending = [key for _, key in sorted(keys)]
    nulls = [] if column == "State" else sorted([(await add(http))["id"], (await add(http))["id"]], key=UUID)

    async def order(**parameters: str) -> list[str]:
        body = (await http.get("/api/event/", params={"orderColumn": column, **parameters})).json()
        return [shown["id"] for shown in body["results"]]

    assert await order() == ascending + nulls
    assert await order(order="asc", orderColumn=column.lower()) == ascending + nulls
    assert await order(order="DESC", orderColumn=column.upper()) == ascending[::-1] + nulls[::-1]


async def test_columns_without_values_order_by_id(http: httpx.AsyncClient) -> None:
    keys = sorted(await add_three(http), key=UUID)
    for column in ("EventType", "Channel", "Vuflow"):
        for direction, ordered in (("ASC", keys), ("DESC", keys[::-1])):
            body = (await http.get("/api/event/", params={"orderColumn": column, "order": direction})).json()
            assert [shown["id"] for shown in body["results"]] == ordered


async def test_the_default_order_is_the_schedule_and_ties_go_by_id(http: httpx.AsyncClient) -> None:
    keys = sorted([(await add(http, ScheduledStart=DAYS[0]))["id"] for _ in range(5)], key=UUID)
    late = (await add(http, ScheduledStart=DAYS[1]))["id"]
    open_ended = (await add(http))["id"]
    pages = []
    for number in range(1, 8):
        body = (await http.get("/api/event/", params={"pageSize": 1, "pageNumber": number})).json()
        pages += [shown["id"] for shown in body["results"]]
    assert pages == [*keys, late, open_ended]
    body = (await http.get("/api/event/?order=DESC")).json()
    assert [shown["id"] for shown in body["results"]] == [late, *keys[::-1], open_ended]


async def test_lists_show_no_video(http: httpx.AsyncClient) -> None:
    await add(http, EventState=2)
    body = (await http.get("/api/event/?processVideo=true")).json()
    assert [shown["video"] for shown in body["results"]] == [None]


async def test_the_list_of_deleted_events_has_the_same_filters(http: httpx.AsyncClient) -> None:
    keys = await add_three(http, Tags=[{"name": "a"}], EventState=2)
    for key in keys[1:]:
        await http.delete(f"/api/event/{key}")
    for parameters, titles in [
        ({}, ["day 2", "day 3"]),
        ({"from": DAYS[2]}, ["day 3"]),
        ({"order": "DESC", "orderColumn": "Title"}, ["day 3", "day 2"]),
        ({"skipEvents": keys[1], "tags": "a", "eventState": "2"}, ["day 3"]),
        ({"search": "day 2", "noCache": "true"}, ["day 2"]),
        ({"pageSize": "1", "pageNumber": "2"}, ["day 3"]),
        ({"skipEvents": new_id(), "eventState": "4"}, []),
    ]:
        body = (await http.get("/api/event/deleted/", params=parameters)).json()
        assert [shown["title"] for shown in body["results"]] == titles, parameters
        assert all(shown["dateDeleted"] for shown in body["results"])
