"""GET, PUT and DELETE of assets: filters, names, and what is left of a deleted one."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.media.asset import requests
from api.wiring.core import Core
from domain.asset.aggregate import Asset
from tests.api.asking import UNKNOWN, assert_problem, fields_of, last, logged, topics
from tests.api.media.asset.assets_given import GIF, film, image
from tests.domain.scenario import NOW
from tests.support.clock import HandClock
from tests.support.feeding import do


async def completed(inner: Core, asset: dict[str, Any]) -> None:
    await do(inner, Asset.complete.on(UUID(asset["id"]), int(asset["jobId"]), job_version=9, sizes={asset["path"]: 7}))


async def discovered(inner: Core, event: str, name: str) -> str:
    key = UUID(int=len(name))
    await do(inner, Asset.discover.on(key, event_id=UUID(event), name=name, path=f"{event}/{name}", size=3, modified=NOW))
    return str(key)


async def listed(http: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await http.get("/api/asset/", params=query)
    assert answer.status_code == 200, answer.text
    return [record["id"] for record in answer.json()]


async def test_assets_are_found_by_each_filter_and_all_of_them(
    http: httpx.AsyncClient, inner: Core, media_root: Path, clock: HandClock
) -> None:
    event, other = await film(http, media_root), await film(http, media_root)
    goal = await image(http, event, "Goal")
    clock.forward(seconds=1)
    save = await image(http, other, "Save")
    clock.forward(seconds=1)
    gif = (await http.post("/api/asset/gif/", json={"clip": {"eventId": event, **GIF}, "name": "Goal"})).json()
    clock.forward(seconds=1)
    sprite = await discovered(inner, event, "film_SPRITE.jpg")
    await completed(inner, goal)
    everything = [goal["id"], save["id"], gif["id"], sprite]
    assert await listed(http) == await listed(http, noCache="true") == everything
    assert await listed(http, eventId=event) == await listed(http, contentId=event) == [goal["id"], gif["id"], sprite]
    assert await listed(http, jobId=save["jobId"]) == [save["id"]]
    assert await listed(http, name="Goal") == [goal["id"], gif["id"]]
    assert await listed(http, name="goal") == []
    assert await listed(http, states="COMPLETED") == await listed(http, states="1") == [goal["id"], sprite]
    assert await listed(http, states="0,failed") == [save["id"], gif["id"]]
    assert await listed(http, types="system,GIF") == [gif["id"], sprite]
    assert await listed(http, extensions="_sprite.JPG") == [sprite]
    assert await listed(http, extensions=".gif,%.jpg,_.jpg") == [gif["id"]]
    assert await listed(http, eventId=event, types="IMAGE", name="Goal", states="1", extensions=".jpg") == [goal["id"]]
    for nothing in ({"eventId": UNKNOWN}, {"contentId": "film"}, {"jobId": "x"}, {"jobId": "9" * 30}, {"jobId": "0"}):
        assert await listed(http, **nothing) == []
    for wrong, field in (({"states": "DONE"}, "states[0]"), ({"types": "1,5"}, "types"), ({"eventId": "x"}, "eventId")):
        assert fields_of(await http.get("/api/asset/", params=wrong)) == [field]


async def test_an_asset_of_the_system_has_no_job(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    shown = (await http.get(f"/api/asset/{await discovered(inner, event, 'manifest')}")).json()
    assert (shown["jobId"], shown["extension"], shown["path"]) == (None, "", f"{event}/manifest")
    assert (shown["type"], shown["typeString"], shown["state"], shown["stateString"]) == (0, "SYSTEM", 1, "COMPLETED")


async def test_a_renamed_asset_keeps_its_file(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    shown = await image(http, await film(http, media_root))
    for _ in range(2):
        renamed = await http.put(f"/api/asset/{shown['id']}/", params={"name": "Other"})
        assert (renamed.status_code, renamed.json()) == (200, {**shown, "name": "Other"})
        assert renamed.headers["etag"] == '"2"'
    assert await topics(inner, f"asset:{shown['id']}") == ["asset.requested", "asset.renamed"]
    before = await last(inner)
    for wrong in ({}, {"name": " "}, {"name": ""}):
        assert fields_of(await http.put(f"/api/asset/{shown['id']}/", params=wrong)) == ["name"]
    assert_problem(await http.put(f"/api/asset/{UNKNOWN}/", params={"name": "x"}), 404)
    stale = {"If-Match": '"1"'}
    assert_problem(await http.put(f"/api/asset/{shown['id']}/", params={"name": "x"}, headers=stale), 412)
    assert await last(inner) == before


async def test_a_deleted_asset_is_gone_and_its_job_broken_off(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    shown = await image(http, await film(http, media_root))
    before = await last(inner)
    deleted = await http.delete(f"/api/asset/{shown['id']}")
    assert (deleted.status_code, deleted.json()) == (200, shown)
    appended = [event for event in await logged(inner) if event.position > before]
    assert [event.topic for event in appended] == ["job.broken", "asset.removed"]
    assert appended[1].data["file_left"] is True
    assert await listed(http) == []
    for refused in (
        await http.get(f"/api/asset/{shown['id']}"),
        await http.put(f"/api/asset/{shown['id']}", params={"name": "x"}),
        await http.delete(f"/api/asset/{shown['id']}"),
    ):
        assert_problem(refused, 404)


async def test_the_job_of_a_completed_asset_stays_as_it_is(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    shown = await image(http, await film(http, media_root))
    await completed(inner, shown)
    assert (await http.delete(f"/api/asset/{shown['id']}")).json()["stateString"] == "COMPLETED"
    assert await topics(inner, f"job:{shown['jobId']}") == ["job.accepted"]
    assert await topics(inner, f"asset:{shown['id']}") == ["asset.requested", "asset.completed", "asset.removed"]


async def test_an_asset_of_the_system_is_not_deleted(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    key = await discovered(inner, event, "film.ism")
    assert_problem(await http.delete(f"/api/asset/{key}"), 409)
    assert (await http.delete("/api/asset/", params={"eventId": event})).json() == {"deletedCount": 0}
    assert await listed(http) == [key]


async def test_what_a_filter_finds_is_deleted_in_one_append(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    await discovered(inner, event, "film.ism")
    first, second, third = [await image(http, event, name) for name in ("a", "b", "c")]
    await completed(inner, second)
    before = await last(inner)
    answer = await http.delete("/api/asset/", params={"eventId": event, "types": "IMAGE,SYSTEM", "states": "0,1"})
    assert (answer.status_code, answer.json()) == (200, {"deletedCount": 3})
    appended = [entry for entry in await logged(inner) if entry.position > before]
    assert sorted(entry.topic for entry in appended) == ["asset.removed"] * 3 + ["job.broken"] * 2
    assert len({entry.cause["command_id"] for entry in appended}) == 1
    assert {entry.stream for entry in appended if entry.topic == "job.broken"} == {f"job:{first['jobId']}", f"job:{third['jobId']}"}
    before = await last(inner)
    assert (await http.delete("/api/asset/", params={"eventId": event})).json() == {"deletedCount": 0}
    assert (await http.delete("/api/asset/", params={"jobId": "x"})).json() == {"deletedCount": 0}
    assert await last(inner) == before


@pytest.mark.parametrize("query", [{}, {"unheard": "of"}, {"states": ""}, {"extensions": ".jpg"}])
async def test_a_deletion_needs_a_filter(http: httpx.AsyncClient, inner: Core, media_root: Path, query: dict[str, str]) -> None:
    shown = await image(http, await film(http, media_root))
    assert_problem(await http.delete("/api/asset/", params=query), 400)
    assert await listed(http) == [shown["id"]]


async def followed(http: httpx.AsyncClient, address: str | None) -> list[list[str]]:
    pages = []
    while address is not None:
        answer = await http.get(address)
        assert answer.status_code == 200, answer.text
        pages.append([record["id"] for record in answer.json()])
        address = answer.links.get("next", {}).get("url")
    return pages


async def test_a_list_is_followed_to_its_end_by_the_header_link(
    http: httpx.AsyncClient, media_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the same moment, too: these all have one time."""
    event, other = await film(http, media_root), await film(http, media_root)
    for of in (event, other, event, event, event):
        await image(http, of)
    [everything] = await followed(http, "/api/asset/")
    assert len(everything) == 5
    assert await followed(http, "/api/asset/?pageSize=2") == [everything[:2], everything[2:4], everything[4:]]
    assert [len(page) for page in await followed(http, f"/api/asset/?pageSize=3&eventId={event}")] == [3, 1]
    monkeypatch.setattr(requests, "WHOLE", 4)
    assert await followed(http, "/api/asset/?types=IMAGE") == [everything[:4], everything[4:]]
    for wrong in ("x", "~", "2031-01-01T00:00:00Z~x", f"soon~{everything[0]}", f"2031-01-01T00:00:00~{everything[0]}"):
        assert fields_of(await http.get("/api/asset/", params={"after": wrong})) == ["after"], wrong
    assert fields_of(await http.get("/api/asset/?pageSize=0")) == ["pageSize"]
