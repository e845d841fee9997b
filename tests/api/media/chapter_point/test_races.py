"""Requests at the same time on the chapter points of one Event: no point is lost, and none has a deleted parent."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from api.wiring.core import Core
from tests.api.asking import add, new_id, topics
from tests.api.media.owners import add_point


async def ids_shown(http: httpx.AsyncClient, event: str) -> list[str]:
    """Every point of the Event, parents first."""
    result: list[str] = []
    waiting: list[dict[str, Any]] = (await http.get(f"/api/chapterpoint/event/{event}")).json()
    while waiting:
        point = waiting.pop()
        result.append(point["id"])
        waiting += point["children"]
    return result


async def test_one_new_id_posted_by_many_makes_one_point(http: httpx.AsyncClient, inner: Core) -> None:
    event, key = (await add(http))["id"], new_id()
    models = [{"category": "a", "key": "b"}]
    answers = await asyncio.gather(
        *(
            http.post(
                "/api/chapterpoint/",
                json={"id": key, "eventId": event, "startTime": "00:00:00", "title": f"{n}", "propertyModels": models},
            )
            for n in range(10)
        )
    )
    assert {answer.status_code for answer in answers} == {200}
    assert await topics(inner, f"chapter_point:{key}") == ["chapter_point.registered"] + ["chapter_point.amended"] * 9
    shown = (await http.get(f"/api/chapterpoint/{key}")).json()
    assert len(shown["chapterPointCustomProperties"]) == 1


async def test_a_point_is_deleted_while_children_come_and_go(http: httpx.AsyncClient, inner: Core) -> None:
    for _ in range(4):
        event = (await add(http))["id"]
        top = await add_point(http, event)
        key = await add_point(http, event, parentId=top)
        children = [await add_point(http, event, parentId=key) for _ in range(2)]
        deleted, moved, removed, *added = await asyncio.gather(
            http.delete(f"/api/chapterpoint/{key}"),
            http.post("/api/chapterpoint/", json={"id": children[0], "parentId": None}),
            http.delete(f"/api/chapterpoint/{children[1]}"),
            *(http.post("/api/chapterpoint/", json={"eventId": event, "startTime": "00:00:00", "parentId": key}) for _ in range(3)),
        )
        assert {deleted.status_code, moved.status_code, removed.status_code} == {200}
        assert {answer.status_code for answer in added} <= {200, 400}
        standing = {top, children[0], *(answer.json()["id"] for answer in added if answer.status_code == 200)}
        assert sorted(await ids_shown(http, event)) == sorted(standing)
        links = await inner.database.rows("SELECT owner FROM links WHERE target = %s", (f"chapter_point:{key}",))
        assert links == []


async def test_parent_and_child_are_deleted_at_once(http: httpx.AsyncClient) -> None:
    event = (await add(http))["id"]
    chain = [await add_point(http, event)]
    for _ in range(4):
        chain.append(await add_point(http, event, parentId=chain[-1]))
    answers = await asyncio.gather(*(http.delete(f"/api/chapterpoint/{key}") for key in chain[:-1]))
    assert {answer.status_code for answer in answers} <= {200, 409}
    remaining = [key for key, answer in zip(chain[:-1], answers, strict=True) if answer.status_code == 409]
    assert sorted(await ids_shown(http, event)) == sorted([*remaining, chain[-1]])


async def test_two_points_put_below_each_other_at_once_are_not_lost(http: httpx.AsyncClient) -> None:
    event = (await add(http))["id"]
    first, second = [await add_point(http, event) for _ in range(2)]
    answers = await asyncio.gather(
        http.post("/api/chapterpoint/", json={"id": first, "parentId": second}),
        http.post("/api/chapterpoint/", json={"id": second, "parentId": first}),
    )
    assert {answer.status_code for answer in answers} <= {200, 400}
    assert sorted(await ids_shown(http, event)) == sorted([first, second])
    for key in (first, second):
        assert (await http.get(f"/api/chapterpoint/{key}")).status_code == 200
    assert (await http.post("/api/chapterpoint/", json={"id": first, "parentId": None})).status_code == 200
    assert len(await ids_shown(http, event)) == 2


async def test_two_points_that_are_put_below_each_other_at_once_make_no_circle(http: httpx.AsyncClient) -> None:
    for _ in range(5):
        event = (await add(http))["id"]
        first, other = await add_point(http, event), await add_point(http, event)
        answers = await asyncio.gather(
            http.post("/api/chapterpoint/", json={"id": first, "parentId": other}),
            http.post("/api/chapterpoint/", json={"id": other, "parentId": first}),
        )
        assert sorted(answer.status_code for answer in answers) == [200, 400]
        assert len(await ids_shown(http, event)) == 2
