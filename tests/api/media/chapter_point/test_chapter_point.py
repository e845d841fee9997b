"""Chapter points over HTTP; see docs/reference/api/chapter-points.md."""

from __future__ import annotations

from typing import Any

import httpx

from api.wiring.core import Core
from tests.api.asking import AWKWARD, UNKNOWN, add, assert_problem, fields_of, last, logged, new_id, topics, version_of
from tests.api.media.owners import CHAPTER_POINT, add_point


async def put(http: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await http.post("/api/chapterpoint/", json=fields)


async def get(http: httpx.AsyncClient, key: str) -> dict[str, Any]:
    answer = await http.get(f"/api/chapterpoint/{key}")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def test_a_point_is_added_changed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    event = (await add(http))["id"]
    added = await put(http, eventId=event, startTime="00:01:30", refreshIndex=True)
    key = added.json()["id"]
    shown = {
        "id": key,
        "eventId": event,
        "parentId": None,
        "referenceId": "",
        "title": "",
        "tag": None,
        "startTime": "00:01:30",
        "endTime": None,
        "chapterPointCustomProperties": [],
        "children": [],
    }
    assert (added.status_code, added.json(), added.headers["etag"]) == (200, shown, '"1"')
    more = {"referenceId": "r/1", "title": "Goal", "tag": "goal", "endTime": "00:02:00.5"}
    changed = await put(http, ID=key, **more)
    assert (changed.json(), changed.headers["etag"]) == ({**shown, **more}, '"2"')
    read = await http.get(f"/api/chapterpoint/{key}?noCache=1")
    assert (read.json(), version_of(read)) == (changed.json(), 2)
    assert await topics(inner, f"chapter_point:{key}") == ["chapter_point.registered", "chapter_point.amended"]

    before = await last(inner)
    again = await put(http, **{**changed.json(), "refreshIndex": None, "propertyModels": None, "parentId": None})
    assert (again.json(), again.headers["etag"]) == (changed.json(), '"2"')
    assert await last(inner) == before
    cleared = await put(http, id=key, referenceId="", title=None, tag="", endTime=None, startTime=None)
    assert cleared.json() == shown


async def test_an_unknown_id_makes_a_point_with_it(http: httpx.AsyncClient, inner: Core) -> None:
    event, key = (await add(http))["id"], new_id()
    assert fields_of(await put(http, id=key, title="x")) == ["eventId", "startTime"]
    assert fields_of(await put(http, eventId=event, startTime=None)) == ["startTime"]
    assert (await put(http, id=key, eventId=event, startTime="00:00:01", title="x")).json()["id"] == key
    await http.delete(f"/api/chapterpoint/{key}")
    assert fields_of(await put(http, id=key, title="x")) == ["eventId", "startTime"]
    assert (await put(http, id=key, eventId=event, startTime="00:00:02")).json()["title"] == ""
    assert (await topics(inner, f"chapter_point:{key}"))[-1] == "chapter_point.restored"


async def test_the_event_must_exist_and_never_changes(http: httpx.AsyncClient, inner: Core) -> None:
    event, other, deleted = [(await add(http))["id"] for _ in range(3)]
    await http.delete(f"/api/event/{deleted}")
    key = await add_point(http, event)
    before = await last(inner)
    for unknown in (UNKNOWN, deleted):
        assert_problem(await put(http, eventId=unknown, startTime="00:00:00"), 404)
        assert_problem(await put(http, id=key, eventId=unknown), 404)
        assert (await http.get(f"/api/chapterpoint/event/{unknown}")).json() == []
        assert (await http.get(f"/api/chapterpoint/customproperty/event/{unknown}")).json() == []
    assert_problem(await put(http, id=key, eventId=other, title="x"), 409)
    assert_problem(await http.post("/api/chapterpoint/", json={"id": key, "title": "x"}, headers={"If-Match": '"7"'}), 412)
    assert fields_of(await put(http, id=key, eventId=other, endTime="x")) == ["endTime"]
    assert fields_of(await put(http, eventId=UNKNOWN, startTime="00:00:02", endTime="00:00:01")) == ["endTime"]
    assert await last(inner) == before

    await http.delete(f"/api/event/{event}")
    assert_problem(await put(http, id=key, title="x"), 404)
    assert (await http.get(f"/api/chapterpoint/event/{event}")).json() == []
    assert (await get(http, key))["eventId"] == event
    await http.put(f"/api/event/restore/{event}")
    assert [point["id"] for point in (await http.get(f"/api/chapterpoint/event/{event}")).json()] == [key]


async def test_times_are_read_as_stream_times_and_kept_as_sent(http: httpx.AsyncClient, inner: Core) -> None:
    event = (await add(http))["id"]
    for start, end in [
        ("00:00:00", None),
        ("99:59:59.999", "99:59:59.999"),
        ("00:00:01.5", "00:00:01.50"),
        ("2031-01-02T03:04:05+01:00", "2031-01-02T02:04:05Z"),
        ("2031-01-02", "20310102T030405Z"),
        ("2031-01-02", "00:00:01"),
        ("00:00:09", "2001-01-01"),
    ]:
        shown = (await put(http, eventId=event, startTime=start, endTime=end)).json()
        assert (shown["startTime"], shown["endTime"]) == (start, end)
    key = await add_point(http, event, "00:00:10", endTime="00:00:20")
    before = await last(inner)
    wrong: Any
    for wrong in (
        "",
        "x",
        "0:0:1",
        "00:60:00",
        "00:00:60",
        "00:00:00.1234",
        "2031-02-30",
        "20310102",
        7,
        7.5,
        True,
        [],
        {},
        "1" * 65,
    ):
        for field in ("startTime", "endTime"):
            times = {"startTime": "00:00:00", field: wrong}
            assert fields_of(await put(http, eventId=event, **times)) == [field], wrong
    for sent in (
        {"endTime": "00:00:09.999"},
        {"startTime": "00:00:20.001"},
        {"startTime": "2031-01-02T00:00:00+01:00", "endTime": "2031-01-01T22:59:59Z"},
    ):
        assert fields_of(await put(http, id=key, **sent)) == ["endTime"]
        assert fields_of(await put(http, **{"eventId": event, "startTime": "00:00:10", "endTime": "00:00:09", **sent})) == [
            "endTime"
        ]
    assert await last(inner) == before


async def test_points_of_an_event_are_listed_by_start_each_below_its_parent(http: httpx.AsyncClient) -> None:
    event = (await add(http))["id"]
    late, moment, early, half = [
        await add_point(http, event, start) for start in ("00:10:00", "2031-01-02", "00:01:00", "00:01:00.500")
    ]
    second = await add_point(http, event, "00:12:00", parentId=late)
    first = await add_point(http, event, "00:11:00", parentId=late)
    below = await add_point(http, event, "00:11:30", parentId=first)
    await CHAPTER_POINT.put(http, below, value="v")
    await CHAPTER_POINT.put(http, early, value="w")
    await add_point(http, (await add(http))["id"])
    shown = (await http.get(f"/api/chapterpoint/event/{event}?noCache=true")).json()
    assert [point["id"] for point in shown] == [early, half, late, moment]
    assert [point["id"] for point in shown[2]["children"]] == [first, second]
    assert shown == [await get(http, key) for key in (early, half, late, moment)]
    assert shown[2]["children"][0] == await get(http, first)
    assert shown[2]["children"][0]["children"] == [await get(http, below)]
    values = (await http.get(f"/api/chapterpoint/customproperty/event/{event}")).json()
    assert [(value["chapterPointId"], value["value"]) for value in values] == [(early, "w"), (below, "v")]


async def test_a_parent_is_another_point_of_the_same_event_and_not_below(http: httpx.AsyncClient, inner: Core) -> None:
    event, other = [(await add(http))["id"] for _ in range(2)]
    top = await add_point(http, event)
    middle = await add_point(http, event, parentId=top)
    bottom = await add_point(http, event, parentId=middle)
    elsewhere = await add_point(http, other)
    gone = await add_point(http, event)
    await http.delete(f"/api/chapterpoint/{gone}")
    before = await last(inner)
    for parent in (top, middle, bottom, elsewhere, gone, UNKNOWN, "x", 7):
        assert fields_of(await put(http, id=top, parentId=parent)) == ["parentId"]
    for parent in (elsewhere, gone, UNKNOWN):
        assert fields_of(await put(http, eventId=event, startTime="00:00:00", parentId=parent)) == ["parentId"]
    key = new_id()
    assert fields_of(await put(http, id=key, eventId=event, startTime="00:00:00", parentId=key)) == ["parentId"]
    assert fields_of(await put(http, eventId=UNKNOWN, startTime="00:00:00", parentId=top)) == ["parentId"]
    assert await last(inner) == before
    assert (await put(http, id=bottom, parentId=top)).json()["parentId"] == top
    assert (await put(http, id=middle, parentId=bottom)).json()["parentId"] == bottom
    assert (await put(http, id=middle, parentId=None)).json()["parentId"] is None
    assert [child["id"] for child in (await get(http, top))["children"]] == [bottom]


async def test_points_nest_32_levels_deep_and_no_deeper(http: httpx.AsyncClient) -> None:
    event = (await add(http))["id"]
    chain = [await add_point(http, event)]
    for _ in range(31):
        chain.append(await add_point(http, event, parentId=chain[-1]))
    assert fields_of(await put(http, eventId=event, startTime="00:00:00", parentId=chain[-1])) == ["parentId"]
    above = await add_point(http, event)
    assert fields_of(await put(http, id=chain[0], parentId=above)) == ["parentId"]
    shown, depth = (await http.get(f"/api/chapterpoint/event/{event}")).json(), 0
    while shown:
        shown, depth = next(point for point in shown if point["id"] != above)["children"], depth + 1
    assert depth == 32
    await http.delete(f"/api/chapterpoint/{chain[5]}")
    assert (await put(http, id=chain[0], parentId=above)).status_code == 200


async def test_property_models_are_written_with_the_point_and_none_is_removed(http: httpx.AsyncClient, inner: Core) -> None:
    event = (await add(http))["id"]
    models = [
        {"category": "b", "key": "k", "value": "1"},
        {"category": "a", "key": "k"},
        {"category": "b", "key": "k", "value": "2"},
    ]
    added = await put(http, eventId=event, startTime="00:00:00", propertyModels=models)
    key = added.json()["id"]
    properties = added.json()["chapterPointCustomProperties"]
    a, b = [property["id"] for property in properties]
    assert properties == [CHAPTER_POINT.shown(a, key, "a", "k", None), CHAPTER_POINT.shown(b, key, "b", "k", "2")]
    assert added.json() == await get(http, key)
    assert len({event.cause["command_id"] for event in (await logged(inner))[-3:]}) == 1

    before = await last(inner)
    for same in (models, models[2:], [{"category": "b", "key": "k"}], [], None):
        assert (await put(http, id=key, propertyModels=same)).json() == added.json()
    assert await last(inner) == before
    changed = await put(
        http, id=key, title="x", PropertyModels=[{"Category": "b", "KEY": "k", "value": None}, {"category": "", "key": ""}]
    )
    assert [(property["category"], property["value"]) for property in changed.json()["chapterPointCustomProperties"]] == [
        ("", None),
        ("a", None),
        ("b", None),
    ]
    assert changed.json() == await get(http, key)

    before = await last(inner)
    wrong: Any
    for wrong in ({}, {"category": "a"}, {"category": "a", "key": None}, {"category": "a", "key": "k" * 301}, 7, None, [], "x"):
        answer = await put(http, id=key, title="y", propertyModels=[models[0], wrong])
        assert answer.status_code == 400, wrong
        assert all(field.startswith("propertyModels[1]") for field in fields_of(answer)), wrong
    assert (await put(http, id=key, propertyModels=[{**models[0], "key": f"{n}"} for n in range(1001)])).status_code == 400
    assert await last(inner) == before


async def test_a_delete_takes_the_properties_and_moves_the_children_up(http: httpx.AsyncClient, inner: Core) -> None:
    event = (await add(http))["id"]
    top = await add_point(http, event)
    key = await add_point(http, event, parentId=top, propertyModels=[{"category": "a", "key": "b", "value": "c"}])
    child = await add_point(http, event, parentId=key, propertyModels=[{"category": "a", "key": "b", "value": "d"}])
    deep = await add_point(http, event, parentId=child)
    shown = await get(http, key)
    assert_problem(await http.delete(f"/api/chapterpoint/{key}", headers={"If-Match": '"2"'}), 412)
    deleted = await http.delete(f"/api/chapterpoint/{key}", headers={"If-Match": '"1"'})
    assert (deleted.status_code, deleted.json()) == (200, shown)
    assert [shown["children"][0]["id"], shown["children"][0]["children"][0]["id"]] == [child, deep]
    happened = (await logged(inner))[-3:]
    assert [event.topic for event in happened] == [
        "chapter_point_property.deleted", "chapter_point.amended", "chapter_point.deleted",
    ]  # fmt: skip
    assert len({event.cause["command_id"] for event in happened}) == 1
    moved = await get(http, child)
    assert (moved["parentId"], moved["chapterPointCustomProperties"][0]["value"], moved["children"][0]["id"]) == (top, "d", deep)
    assert (await get(http, top))["children"] == [moved]
    for method, path in (
        ("GET", key),
        ("DELETE", key),
        ("GET", f"customproperty/{shown['chapterPointCustomProperties'][0]['id']}"),
    ):
        assert_problem(await http.request(method, f"/api/chapterpoint/{path}"), 404)
    await http.delete(f"/api/chapterpoint/{top}")
    assert (await get(http, child))["parentId"] is None
    assert [point["id"] for point in (await http.get(f"/api/chapterpoint/event/{event}")).json()] == [child]


async def test_unknown_points_are_404_and_malformed_ids_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    assert_problem(await http.get(f"/api/chapterpoint/{UNKNOWN}"), 404)
    assert_problem(await http.delete(f"/api/chapterpoint/{UNKNOWN}"), 404)
    for method, path, field in (("GET", "x", "id"), ("DELETE", "x", "id"), ("GET", "event/x", "eventId")):
        assert fields_of(await http.request(method, f"/api/chapterpoint/{path}")) == [field]
    for field in ("id", "eventId", "parentId"):
        assert fields_of(await put(http, **{"eventId": UNKNOWN, "startTime": "00:00:00", field: "x"})) == [field]
    assert await last(inner) == before


async def test_texts_are_kept_verbatim_and_bounded(http: httpx.AsyncClient, inner: Core) -> None:
    event = (await add(http))["id"]
    for text in (*AWKWARD, "'; DROP TABLE record_view; --", "\x01"):
        names = dict.fromkeys(("referenceId", "title", "tag"), text)
        shown = (await put(http, eventId=event, startTime="00:00:00", **names)).json()
        assert {name: shown[name] for name in names} == names
        assert await get(http, shown["id"]) == shown
    before = await last(inner)
    wrong: Any
    for name in ("referenceId", "title", "tag"):
        for wrong in ("x" * 601, 7, [], {}, True):
            assert fields_of(await put(http, eventId=event, startTime="00:00:00", **{name: wrong})) == [name]
    assert await last(inner) == before


async def test_a_past_state_has_the_properties_and_children_of_that_time(http: httpx.AsyncClient) -> None:
    event = (await add(http))["id"]
    key = await add_point(http, event, title="v1", propertyModels=[{"category": "a", "key": "b", "value": "1"}])
    states = [await get(http, key)]
    child = await add_point(http, event, parentId=key, title="child")
    await CHAPTER_POINT.put(http, child, value="of the child")
    await CHAPTER_POINT.put(http, key, "a", "b", value="2")
    await put(http, id=key, title="v2")
    states.append(await get(http, key))
    await put(http, id=child, title="renamed")
    await http.delete(f"/api/chapterpoint/{key}")
    states.append({**states[1], "chapterPointCustomProperties": [], "children": []})
    for version, shown in enumerate(states, 1):
        answer = await http.get(f"/api/audit/chapter_point/{key}/state?version={version}")
        assert answer.json()["state"] == shown, version
    assert states[1]["children"][0]["chapterPointCustomProperties"][0]["value"] == "of the child"
    was = (await http.get(f"/api/audit/chapter_point/{child}/state?version=1")).json()["state"]
    assert (was["parentId"], was["title"]) == (key, "child")


async def test_a_repeat_under_one_idempotency_key_gives_the_first_answer(http: httpx.AsyncClient, inner: Core) -> None:
    event = (await add(http))["id"]
    body = {"eventId": event, "startTime": "00:00:01", "propertyModels": [{"category": "a", "key": "b", "value": "1"}]}
    first = await http.post("/api/chapterpoint/", json=body, headers={"Idempotency-Key": "k"})
    key = first.json()["id"]
    await put(http, id=key, title="later", propertyModels=[{"category": "a", "key": "b", "value": "2"}])
    await add_point(http, event, parentId=key)
    before = await last(inner)
    again = await http.post("/api/chapterpoint/", json=body, headers={"Idempotency-Key": "k"})
    assert (again.json(), again.headers["etag"]) == (first.json(), '"1"')
    assert await last(inner) == before
