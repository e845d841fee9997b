"""Categories over HTTP; see docs/reference/api/categories.md."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from api.wiring.core import Core
from tests.api.asking import AWKWARD, UNKNOWN, add, assert_problem, fields_of, last, logged, new_id, topics, version_of
from tests.api.media.owners import CATEGORY, add_category


async def test_a_category_is_added_changed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    added = await http.post("/api/category/", json={"name": "Sport", "label": "sport", "description": "Games"})
    key = added.json()["id"]
    assert (added.status_code, added.headers["etag"]) == (200, '"1"')
    shown = {"id": key, "name": "Sport", "label": "sport", "description": "Games", "customProperties": []}
    assert added.json() == shown
    changed = await http.put(f"/api/category/{key}", json={"NAME": "Sports", "description": None})
    assert changed.json() == {**shown, "name": "Sports", "description": None}
    read = await http.get(f"/api/category/{key}?noCache=true")
    assert (read.json(), version_of(read)) == (changed.json(), 2)
    assert await topics(inner, f"category:{key}") == ["category.registered", "category.amended"]
    assert (await logged(inner, f"category:{key}"))[1].data.keys() - {"timestamp"} == {"name", "description"}
    before = await last(inner)
    again = await http.put(f"/api/category/{key}", json={"name": "Sports", "label": None}, headers={"If-Match": '"2"'})
    assert (again.json(), again.headers["etag"]) == (changed.json(), '"2"')
    assert_problem(await http.put(f"/api/category/{key}", json={"name": "x"}, headers={"If-Match": '"1"'}), 412)
    assert await last(inner) == before


async def test_a_missing_label_takes_the_name_and_a_missing_name_the_label(http: httpx.AsyncClient, inner: Core) -> None:
    for body, name, label in [
        ({"name": "A"}, "A", "A"),
        ({"label": "B"}, "B", "B"),
        ({"name": "C", "label": None}, "C", "C"),
        ({"name": "D", "label": "d"}, "D", "d"),
    ]:
        shown = (await http.post("/api/category/", json=body)).json()
        assert (shown["name"], shown["label"], shown["description"]) == (name, label, None)
    before = await last(inner)
    for body in ({}, {"name": None, "label": None}, {"description": "x"}):
        assert fields_of(await http.post("/api/category/", json=body)) == ["name", "label"]
    wrong: list[Any] = ["", "  ", 7, [], True, {}, "x" * 601]
    for value in wrong:
        for field in ("name", "label"):
            assert fields_of(await http.post("/api/category/", json={"name": "E", field: value})) == [field]
            assert fields_of(await http.put(f"/api/category/{UNKNOWN}", json={field: value})) == [field]
    assert await last(inner) == before


async def test_a_label_is_used_once_and_free_after_a_delete(http: httpx.AsyncClient, inner: Core) -> None:
    key, other = await add_category(http, "Sport"), await add_category(http, "News")
    before = await last(inner)
    for body in ({"name": "Sport"}, {"name": "x", "label": "Sport"}):
        assert fields_of(await http.post("/api/category/", json=body)) == ["label"]
    assert fields_of(await http.put(f"/api/category/{other}", json={"label": "Sport"})) == ["label"]
    assert await last(inner) == before
    assert (await http.put(f"/api/category/{other}", json={"name": "Sport"})).json()["label"] == "News"
    await add_category(http, "sport")
    await http.delete(f"/api/category/{key}")
    await add_category(http, "Sport")
    assert [shown["label"] for shown in (await http.get("/api/category")).json()].count("Sport") == 1


async def test_of_many_requests_for_a_label_one_gets_it(http: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(http.post("/api/category/", json={"name": f"{n}", "label": "Sport"}) for n in range(12)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 11
    assert {tuple(fields_of(answer)) for answer in answers if answer.status_code == 400} == {("label",)}
    keys = [await add_category(http, f"free {n}") for n in range(4)]
    answers = await asyncio.gather(*(http.put(f"/api/category/{key}", json={"label": "News"}) for key in keys))
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]
    labels = [shown["label"] for shown in (await http.get("/api/category/")).json()]
    assert (labels.count("Sport"), labels.count("News")) == (1, 1)


async def test_categories_are_listed_by_name_with_their_properties(http: httpx.AsyncClient) -> None:
    assert (await http.get("/api/category/")).json() == []
    keys = {name: await add_category(http, name) for name in ("Sport", "Film", "News")}
    shown = await CATEGORY.put(http, keys["News"], value="v")
    listed = (await http.get("/api/category/")).json()
    assert [record["name"] for record in listed] == ["Film", "News", "Sport"]
    assert [record["customProperties"] for record in listed] == [[], [shown], []]
    for text in AWKWARD:
        body = {"name": "x", "label": text + "!", "description": text}
        assert (await http.post("/api/category/", json=body)).json()["label"] == text + "!"


async def test_events_of_a_category_are_a_page_and_an_unknown_one_has_none(http: httpx.AsyncClient) -> None:
    key = await add_category(http)
    for day in (2, 1, 3):
        await add(http, Title=f"{day}", CategoryId=key, ScheduledStart=f"2031-01-0{day}")
    await add(http, Title="elsewhere", CategoryId=await add_category(http, "News"))
    for asked, titles, size in [("", "123", 20), ("?order=DESC", "321", 20), ("?pageSize=2&pageNumber=2", "3", 2)]:
        body = (await http.get(f"/api/category/{key}/events/{asked}")).json()
        assert (body["pageSize"], body["totalCount"], "".join(shown["title"] for shown in body["results"])) == (size, 3, titles)
    assert (await http.get(f"/api/category/{UNKNOWN}/events")).json() == {"pageSize": 20, "totalCount": 0, "results": []}


async def test_a_delete_takes_the_properties_in_one_append(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_category(http)
    for name in ("a", "b"):
        await CATEGORY.put(http, key, name, value=name)
    shown = (await http.get(f"/api/category/{key}")).json()
    assert_problem(await http.delete(f"/api/category/{key}", headers={"If-Match": '"7"'}), 412)
    deleted = await http.delete(f"/api/category/{key}", headers={"If-Match": '"1"'})
    assert (deleted.status_code, deleted.json()) == (200, shown)
    assert len(shown["customProperties"]) == 2
    happened = (await logged(inner))[-3:]
    assert [event.topic for event in happened] == ["category_property.deleted"] * 2 + ["category.deleted"]
    assert len({event.cause["command_id"] for event in happened}) == 1
    for event in shown["customProperties"]:
        assert_problem(await http.get(f"/api/category/customproperty/{event['id']}"), 404)
    assert_problem(await http.get(f"/api/category/{key}"), 404)
    assert_problem(await http.put(f"/api/category/{key}", json={"name": "x"}), 404)
    assert_problem(await http.delete(f"/api/category/{key}"), 404)
    assert (await http.get("/api/category/")).json() == []
    assert fields_of(await http.post("/api/event/", json={"CategoryId": key})) == ["categoryId"]


async def test_a_category_in_use_is_not_deleted_and_its_users_are_named(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_category(http)
    retained = await CATEGORY.put(http, key, value="v")
    event = await add(http, Title="Final", CategoryId=key)
    before = await last(inner)
    refused = await http.delete(f"/api/category/{key}")
    assert_problem(refused, 409)
    assert event["id"] in refused.json()["detail"]
    assert await last(inner) == before
    assert (await http.get(f"/api/category/{key}")).json()["customProperties"] == [retained]
    await http.delete(f"/api/event/{event['id']}")
    assert (await http.delete(f"/api/category/{key}")).status_code == 200


async def test_unknown_categories_are_404_and_malformed_ids_400(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    assert_problem(await http.get(f"/api/category/{UNKNOWN}"), 404)
    assert_problem(await http.put(f"/api/category/{UNKNOWN}", json={"name": "x"}), 404)
    assert_problem(await http.delete(f"/api/category/{UNKNOWN}"), 404)
    for method, path in (("GET", "x"), ("PUT", "x"), ("DELETE", "x"), ("GET", "x/events/")):
        assert fields_of(await http.request(method, f"/api/category/{path}", json={"name": "x"})) == ["id"]
    assert await last(inner) == before


async def test_a_category_is_shown_with_the_properties_that_it_had_then(http: httpx.AsyncClient) -> None:
    key = await add_category(http)
    first = (await http.get(f"/api/category/{key}")).json()
    await CATEGORY.put(http, key, value="1")
    await http.put(f"/api/category/{key}", json={"description": "x"})
    second = (await http.get(f"/api/category/{key}")).json()
    await http.post(f"/api/category/customproperty/bulk/{key}", json=[{"id": new_id(), "category": "later", "key": "k"}])
    await http.delete(f"/api/category/{key}")
    for version, shown in ((1, first), (2, second), (3, {**second, "customProperties": []})):
        assert (await http.get(f"/api/audit/category/{key}/state?version={version}")).json()["state"] == shown
