"""Requests at the same time that want one tag name: a name belongs to one tag only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import add, assert_problem, logged, new_id, put_tag, topics
from tests.api.serving import serving

CALLERS = 20


@pytest.fixture
async def other(http: httpx.AsyncClient, second: Core, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a second process on the same database."""
    async with serving(second, database_url, lambda value: {}) as client:
        yield client


async def names(inner: Core) -> list[str]:
    """The name of every tag that was ever made."""
    return [event.data["name"] for event in await logged(inner) if event.topic == "tag.registered"]


async def test_many_requests_for_one_new_name_make_one_tag(http: httpx.AsyncClient, other: httpx.AsyncClient, inner: Core) -> None:
    for name in ("football", "handball", "hockey"):
        answers = await asyncio.gather(
            *((http, other)[n % 2].put("/api/tag/", json={"name": name}) for n in range(CALLERS)),
        )
        assert {answer.status_code for answer in answers} == {201}
        assert len({(answer.json()["id"], answer.headers["location"], answer.headers["etag"]) for answer in answers}) == 1
    assert await names(inner) == ["football", "handball", "hockey"]


async def test_two_ids_for_one_new_name_make_one_tag(http: httpx.AsyncClient, other: httpx.AsyncClient, inner: Core) -> None:
    for _ in range(5):
        name, keys = new_id(), (new_id(), new_id())
        answers = await asyncio.gather(
            *(at.put("/api/tag/", json={"id": key, "name": name}) for at, key in zip((http, other), keys, strict=True))
        )
        assert sorted(answer.status_code for answer in answers) == [201, 409]
        assert (await names(inner)).count(name) == 1


async def test_a_rename_and_a_new_tag_of_one_name_give_one_tag(
    http: httpx.AsyncClient, other: httpx.AsyncClient, inner: Core
) -> None:
    """If the rename is second, it is refused; if the new tag is second, the answer is the renamed tag."""
    for turn in range(10):
        key, name = await put_tag(http, f"old {turn}"), f"new {turn}"
        renamed, made = await asyncio.gather(
            http.put("/api/tag/", json={"id": key, "name": name}), other.put("/api/tag/", json={"name": name})
        )
        assert made.status_code == 201
        if renamed.status_code == 201:
            assert made.json() == renamed.json()
        else:
            assert_problem(renamed, 409)
            assert made.json()["id"] != key
            assert (await http.get(f"/api/tag/{key}")).json()["name"] == f"old {turn}"


async def test_a_request_for_the_old_name_does_not_undo_a_rename(
    http: httpx.AsyncClient, other: httpx.AsyncClient, inner: Core
) -> None:
    for turn in range(10):
        key = await put_tag(http, f"old {turn}")
        renamed, asked = await asyncio.gather(
            http.put("/api/tag/", json={"id": key, "name": f"new {turn}"}), other.put("/api/tag/", json={"name": f"old {turn}"})
        )
        assert renamed.status_code == 201
        assert asked.status_code in (201, 409)
        assert (await http.get(f"/api/tag/{key}")).json()["name"] == f"new {turn}"
        assert await topics(inner, f"tag:{key}") == ["tag.registered", "tag.amended"]


async def test_an_event_and_a_request_for_one_new_tag_share_it(
    http: httpx.AsyncClient, other: httpx.AsyncClient, inner: Core
) -> None:
    key = (await add(http))["id"]
    for turn in range(5):
        wanted = [{"name": f"tag {turn}"}]
        shown, made, replaced = await asyncio.gather(
            add(http, Tags=wanted), other.put("/api/tag/", json=wanted[0]), http.put(f"/api/tag/event/{key}", json=wanted)
        )
        assert (made.status_code, replaced.status_code) == (201, 200)
        assert [made.json()] == replaced.json() == (await http.get(f"/api/tag/event/{shown['id']}")).json()
    assert await names(inner) == [f"tag {turn}" for turn in range(5)]


async def test_a_tag_is_deleted_or_given_to_an_event_but_never_both(
    http: httpx.AsyncClient, other: httpx.AsyncClient, inner: Core
) -> None:
    """If the Event is second, it makes a new tag."""
    event = (await add(http))["id"]
    for turn in range(10):
        key = await put_tag(http, f"tag {turn}")
        deleted, replaced = await asyncio.gather(
            http.delete(f"/api/tag/{key}"), other.put(f"/api/tag/event/{event}", json=[{"name": f"tag {turn}"}])
        )
        assert replaced.status_code == 200
        assert deleted.status_code in (200, 409)
        assert (replaced.json()[0]["id"] == key) is (deleted.status_code == 409)
        assert (await http.get(f"/api/tag/event/{event}")).json() == replaced.json()
