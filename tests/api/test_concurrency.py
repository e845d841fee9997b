"""Fifty callers at the same Event: everybody is told the truth, and the versions add up."""

from __future__ import annotations

import asyncio

import httpx

from api.wiring.core import Core
from tests.api.asking import add, event, logged, of_event, patch, replace

CALLERS = 50


async def test_fifty_patches_of_different_values_are_all_there_or_refused(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    answers = await asyncio.gather(*(patch(http, key, replace("/Title", f"title {n}")) for n in range(CALLERS)))
    succeeded = [answer for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409, 412}
    assert succeeded
    versions = await of_event(inner, key)
    assert len(versions) == 1 + len(succeeded)
    assert sorted(answer.headers["etag"] for answer in succeeded) == sorted(f'"{n}"' for n in range(2, len(versions) + 1))
    titles = [entry.data["title"] for entry in (await logged(inner, f"event:{key}"))[1:]]
    assert sorted(titles) == sorted(answer.json()["title"] for answer in succeeded)
    assert (await event(http, key))["title"] == titles[-1]


async def test_of_fifty_patches_for_one_version_one_succeeds(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    for version in (1, 2, 3):
        tag = {"If-Match": f'"{version}"'}
        answers = await asyncio.gather(
            *(patch(http, key, replace("/Title", f"title {version} {n}"), **tag) for n in range(CALLERS))
        )
        assert sorted(answer.status_code for answer in answers) == [200] + [412] * (CALLERS - 1)
    assert len(await of_event(inner, key)) == 4


async def test_fifty_who_agree_change_it_once(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http))["id"]
    answers = await asyncio.gather(*(patch(http, key, replace("/Title", "agreed")) for _ in range(CALLERS)))
    assert [(answer.status_code, answer.headers["etag"]) for answer in answers] == [(200, '"2"')] * CALLERS
    assert await of_event(inner, key) == ["registered", "described"]


async def test_a_patch_that_reads_before_it_writes_loses_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    """A counter kept in the title, raised by GET and PATCH with If-Match until each caller has had its turn."""
    key = (await add(http, Title="0"))["id"]

    async def raise_it() -> None:
        while True:
            seen = await http.get(f"/api/event/{key}")
            step = replace("/Title", str(int(seen.json()["title"]) + 1))
            answer = await patch(http, key, step, **{"If-Match": seen.headers["etag"]})
            if answer.status_code == 200:
                return
            assert answer.status_code == 412

    await asyncio.gather(*(raise_it() for _ in range(12)))
    assert (await event(http, key))["title"] == "12"
    assert len(await of_event(inner, key)) == 13


async def test_one_new_tag_wanted_by_fifty_events_is_made_once(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await asyncio.gather(*(add(http, Title=f"{n}", Tags=[{"name": "sport"}]) for n in range(CALLERS)))
    assert len([entry for entry in await logged(inner) if entry.topic == "tag.registered"]) == 1
    body = (await http.get("/api/event/?tags=sport&pageSize=1000")).json()
    assert {result["id"] for result in body["results"]} == {record["id"] for record in shown}


async def test_fifty_posts_of_one_new_id_make_one_event(http: httpx.AsyncClient, inner: Core) -> None:
    key = "0f0e0d0c-0b0a-4908-8706-050403020100"
    answers = await asyncio.gather(*(http.post("/api/event/", json={"Id": key, "Title": f"{n}"}) for n in range(CALLERS)))
    succeeded = [answer for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409}
    topics = await of_event(inner, key)
    assert topics == ["registered"] + ["described"] * (len(succeeded) - 1)
