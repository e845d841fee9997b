"""Tags over HTTP: the answer, and what was appended."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from api.wiring.core import Core
from tests.api.asking import (
    AWKWARD,
    UNKNOWN,
    add,
    assert_problem,
    event,
    fields_of,
    last,
    logged,
    new_id,
    of_event,
    put_tag,
    topics,
)


async def put(http: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await http.put("/api/tag/", json=body)


async def retag(http: httpx.AsyncClient, key: str, *tags: Any) -> httpx.Response:
    return await http.put(f"/api/tag/event/{key}", json=list(tags))


async def test_a_tag_is_made_renamed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    made = await put(http, name="football")
    tag = made.json()
    assert (made.status_code, tag) == (201, {"id": tag["id"], "name": "football"})
    assert made.headers["location"] == f"/api/tag/{tag['id']}"
    answer = await http.get(made.headers["location"])
    assert (answer.json(), answer.headers["etag"]) == (tag, '"1"')

    renamed = await put(http, ID=tag["id"], NAME="soccer")
    assert (renamed.status_code, renamed.json()) == (201, {"id": tag["id"], "name": "soccer"})
    assert renamed.headers["location"] == made.headers["location"]
    assert await topics(inner, f"tag:{tag['id']}") == ["tag.registered", "tag.amended"]
    past = (await http.get(f"/api/audit/tag/{tag['id']}/state?version=1")).json()
    assert past["state"] == tag


async def test_a_known_name_gives_its_tag_and_no_event(http: httpx.AsyncClient, inner: Core) -> None:
    key = await put_tag(http, "football")
    before = await last(inner)
    for body in ({"name": "football"}, {"name": "football", "id": None}, {"name": "football", "id": key}):
        again = await put(http, **body)
        assert (again.status_code, again.json()["id"], again.headers["etag"]) == (201, key, '"1"')
        assert again.headers["location"] == f"/api/tag/{key}"
    assert await last(inner) == before
    assert (await put(http, name="Football")).json()["id"] != key  # names compare exactly


async def test_a_tag_is_made_with_the_id_that_was_given(http: httpx.AsyncClient, inner: Core) -> None:
    key = new_id()
    assert (await put(http, id=key, name="football")).json() == {"id": key, "name": "football"}
    before = await last(inner)
    assert_problem(await put(http, id=new_id(), name="football"), 409)
    other = await put_tag(http, "handball")
    assert_problem(await put(http, id=other, name="football"), 409)
    assert await last(inner) == before + 1
    assert (await http.get(f"/api/tag/{other}")).json()["name"] == "handball"


async def test_a_name_is_free_again_after_a_rename_or_delete(http: httpx.AsyncClient, inner: Core) -> None:
    key = await put_tag(http, "football")
    await put(http, id=key, name="soccer")
    assert await put_tag(http, "football") != key
    gone = await http.delete(f"/api/tag/{key}")
    assert (gone.status_code, gone.json()) == (200, {"id": key, "name": "soccer"})
    assert (await http.get(f"/api/tag/{key}")).status_code == 204
    assert_problem(await http.delete(f"/api/tag/{key}"), 404)
    assert await put_tag(http, "soccer") != key
    assert (await put(http, id=key, name="calcio")).status_code == 201
    assert await topics(inner, f"tag:{key}") == ["tag.registered", "tag.amended", "tag.deleted", "tag.restored"]


async def test_bad_names_and_ids_change_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    wrong: list[Any] = [None, "", " ", "\t\n", 7, True, [], {}, "x" * 601]
    for name in wrong:
        assert fields_of(await put(http, name=name)) == ["name"]
        assert fields_of(await put(http, name=name, id=UNKNOWN)) == ["name"]
        assert fields_of(await http.put(f"/api/tag/event/{UNKNOWN}", json=[{"name": name}])) == ["[0].name"]
    assert fields_of(await put(http)) == ["name"]
    assert fields_of(await put(http, name="x", id="7")) == ["id"]
    assert fields_of(await http.put("/api/tag/", json=None)) == ["body"]
    assert fields_of(await http.put("/api/tag/", json=[])) == ["body"]
    assert fields_of(await http.delete("/api/tag/x")) == ["id"]
    assert await last(inner) == before


async def test_a_tag_in_use_is_not_deleted_and_its_users_are_named(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await add(http, Title="Final", Tags=[{"name": "football"}])
    key = await put_tag(http, "football")
    refused = await http.delete(f"/api/tag/{key}")
    assert_problem(refused, 409)
    assert shown["id"] in refused.json()["detail"]
    assert_problem(await http.delete(f"/api/tag/{key}", headers={"If-Match": '"9"'}), 412)
    assert (await retag(http, shown["id"])).json() == []
    assert (await http.delete(f"/api/tag/{key}")).status_code == 200
    assert await topics(inner, f"tag:{key}") == ["tag.registered", "tag.deleted"]


async def test_exists_is_about_the_whole_exact_name(http: httpx.AsyncClient) -> None:
    for text in (*AWKWARD, "football", "event", "x" * 600):
        asked = f"/api/tag/exists/{quote(text, safe='')}"
        assert (await http.get(asked)).json() == {"exists": False}, text
        if text.strip():
            await put_tag(http, text)
            assert (await http.get(asked)).json() == (await http.get(f"{asked}/")).json() == {"exists": True}, text
    for other in ("Football", "foot", "footballs", "%25", "_", "x" * 5000):
        assert (await http.get(f"/api/tag/exists/{other}")).json() == {"exists": False}, other
    for wrong in ("%00", "a%00b", "%ff", "%ed%a0%80"):
        assert fields_of(await http.get(f"/api/tag/exists/{wrong}")) == ["text"]


async def test_the_tags_of_an_event_are_replaced(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http, Tags=[{"name": "a"}]))["id"]
    existing, wished = await put_tag(http, "b"), new_id()
    answer = await retag(http, key, {"name": "b"}, {"name": "c", "id": wished}, {"Name": "d"}, {"name": "b", "id": new_id()})
    tags = answer.json()
    assert answer.status_code == 200
    assert [tag["name"] for tag in tags] == ["b", "c", "d"]
    assert [tag["id"] for tag in tags[:2]] == [existing, wished]
    assert tags == (await http.get(f"/api/tag/event/{key}")).json()
    assert await of_event(inner, key) == ["registered", "tagged"]
    assert (await logged(inner, f"event:{key}"))[-1].data["tag_ids"] == [tag["id"] for tag in tags]

    before = await last(inner)
    assert (await retag(http, key, {"name": "b"}, {"name": "c"}, {"name": "d", "id": existing})).json() == tags
    assert await last(inner) == before  # the same again
    assert [tag["name"] for tag in (await retag(http, key, {"name": "d"}, {"name": "b"})).json()] == ["d", "b"]
    assert (await retag(http, key)).json() == []
    assert await of_event(inner, key) == ["registered", "tagged", "tagged", "tagged"]


async def test_an_id_of_another_name_is_not_taken_from_it(http: httpx.AsyncClient) -> None:
    key, football = (await add(http))["id"], await put_tag(http, "football")
    tags = (await retag(http, key, {"name": "handball", "id": football})).json()
    assert tags[0]["id"] != football
    assert (await http.get(f"/api/tag/{football}")).json()["name"] == "football"


async def test_tags_of_a_missing_event_are_not_replaced_and_no_tag_is_made(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    tag = {"If-Match": '"7"'}
    assert_problem(await http.put(f"/api/tag/event/{key}", json=[{"name": "a"}], headers=tag), 412)
    await http.delete(f"/api/event/{key}")
    before = await last(inner)
    for gone in (key, UNKNOWN):
        assert_problem(await retag(http, gone, {"name": "a"}), 404)
    for body in (b"null", b"", b"{}", b'{"name": "a"}', b"[null]", b'["a"]', b"[7]"):
        fields_of(await http.put(f"/api/tag/event/{key}", content=body, headers={"content-type": "application/json"}))
    assert fields_of(await retag(http, key, *({"name": f"{n}"} for n in range(1001)))) == ["body"]
    assert await last(inner) == before
    assert (await http.get("/api/tag/exists/a")).json() == {"exists": False}


async def test_a_thousand_tags_are_made_at_once(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    before = await last(inner)
    answer = await retag(http, key, *({"name": f"{n}"} for n in range(1000)))
    assert [tag["name"] for tag in answer.json()] == [f"{n}" for n in range(1000)]
    assert await last(inner) == before + 1000 + 1


async def test_a_renamed_tag_has_its_new_name_everywhere(http: httpx.AsyncClient) -> None:
    shown = await add(http, Tags=[{"name": "football"}])
    key = await put_tag(http, "football")
    await put(http, id=key, name="soccer")
    assert (await http.get(f"/api/tag/event/{shown['id']}")).json() == [{"id": key, "name": "soccer"}]
    assert (await http.get("/api/event/?tags=soccer")).json()["totalCount"] == 1
    assert (await http.get("/api/event/?tags=football")).json()["totalCount"] == 0


async def test_tags_come_in_the_order_in_which_they_were_given(http: httpx.AsyncClient) -> None:
    await add(http, Tags=[{"name": "b"}, {"name": "a"}])
    shown = await add(http, Tags=[{"name": "c"}, {"name": "a"}, {"name": "b"}])
    for path in (f"/api/tag/event/{shown['id']}", f"/api/tag/event/{shown['id']}/?noCache=true"):
        tags = (await http.get(path)).json()
        assert [tag["name"] for tag in tags] == ["c", "a", "b"]
        assert all(tag.keys() == {"id", "name"} for tag in tags)


async def test_events_with_a_tag_are_a_page_and_an_unknown_tag_has_none(http: httpx.AsyncClient) -> None:
    for day in (2, 1, 3):
        await add(http, Title=f"{day}", Tags=[{"name": "a"}, {"name": f"{day}"}], ScheduledStart=f"2031-01-0{day}")
    await add(http, Title="elsewhere", Tags=[{"name": "b"}])
    key = await put_tag(http, "a")
    for asked, titles, size in [
        ("", ["1", "2", "3"], 20),
        ("?order=DESC&noCache=true", ["3", "2", "1"], 20),
        ("?pageSize=2&pageNumber=2", ["3"], 2),
    ]:
        body = (await http.get(f"/api/tag/{key}/events/{asked}")).json()
        assert (body["pageSize"], body["totalCount"], [shown["title"] for shown in body["results"]]) == (size, 3, titles)
    assert body["results"][0] == await event(http, body["results"][0]["id"])
    assert (await http.get(f"/api/tag/{UNKNOWN}/events")).json() == {"pageSize": 20, "totalCount": 0, "results": []}
    assert fields_of(await http.get(f"/api/tag/{key}/events/?pageNumber=0")) == ["pageNumber"]


async def test_an_unknown_event_has_no_tags_and_no_event_has_documents(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    for path in (
        f"/api/tag/event/{UNKNOWN}",
        f"/api/document/event/{UNKNOWN}",
        f"/api/document/event/{key}",
        f"/api/tag/event/{key}",
    ):
        answer = await http.get(path)
        assert (answer.status_code, answer.json()) == (200, [])
    for path in ("/api/tag/event/x", "/api/document/event/x"):
        assert fields_of(await http.get(path)) == ["id"]
