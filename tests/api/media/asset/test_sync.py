"""PUT /asset/sync/{eventId}: the assets agree with the files of the content afterwards."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.asset import handlers
from domain.asset.aggregate import Asset
from tests.api.asking import UNKNOWN, add, add_flow, assert_problem, last, logged
from tests.api.media.asset.assets_given import film, image, vod_file
from tests.support.feeding import do


async def sync(http: httpx.AsyncClient, event: str) -> tuple[bool, int, int]:
    answer = await http.put(f"/api/asset/sync/{event}")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["pathEvaluated"] == f"{event}/"
    return body["hasVodFileChanged"], body["createdAssetsCount"], body["deletedAssetsCount"]


async def paths(http: httpx.AsyncClient, event: str, **query: Any) -> list[str]:
    result = (await http.get("/api/asset/", params={"eventId": event, **query})).json()
    return sorted(record["path"].removeprefix(f"{event}/") for record in result)


async def test_new_files_become_assets_of_the_system_in_one_append(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    folder = media_root / event
    (folder / "hls").mkdir()
    (folder / "hls/1.m3u8").write_text("#EXTM3U")
    (folder / ".hidden").write_text("x")
    (media_root / "other.mp4").write_text("x")
    before = await last(inner)
    assert await sync(http, event) == (False, 2, 0)
    appended = [event for event in await logged(inner) if event.position > before]
    assert [event.topic for event in appended] == ["asset.discovered"] * 2
    assert len({event.cause["command_id"] for event in appended}) == 1
    assert await paths(http, event, types="SYSTEM", states="COMPLETED") == sorted([f"{event}.mp4", "hls/1.m3u8"])
    assert [record["name"] for record in (await http.get("/api/asset/", params={"extensions": ".m3u8"})).json()] == ["1.m3u8"]
    before = await last(inner)
    assert await sync(http, event) == (False, 0, 0)
    assert await last(inner) == before


async def test_a_file_of_a_protected_event_in_the_clear_has_no_url(http: httpx.AsyncClient, media_root: Path) -> None:
    event = await film(http, media_root, FlowId=await add_flow(http), vodEnableDrm=True)
    packed = ("cenc/manifest.mpd", "cbcs/master.m3u8", "poster.jpg", "clear/master.m3u8", f"{event}-720.mp4", "assets/a.gif")
    for name in packed:
        (media_root / event / name).parent.mkdir(exist_ok=True)
        (media_root / event / name).write_text("x")
    await sync(http, event)
    listed = (await http.get("/api/asset/", params={"eventId": event})).json()
    shown = {record["path"].removeprefix(f"{event}/") for record in listed if record["url"] is not None}
    assert len(listed) == len(packed) + 1
    assert shown == set(packed[:3])


async def test_no_link_is_followed_out_of_the_folder(http: httpx.AsyncClient, media_root: Path, tmp_path: Path) -> None:
    event = await film(http, media_root)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/a.mp4").write_text("secret")
    (media_root / event / "out").symlink_to(tmp_path / "secret")
    (media_root / event / "out.mp4").symlink_to(tmp_path / "secret/a.mp4")
    assert await sync(http, event) == (False, 1, 0)
    assert await paths(http, event) == [f"{event}.mp4"]


async def test_assets_whose_files_are_gone_are_removed_and_requested_ones_keep_their_type(
    http: httpx.AsyncClient, inner: Core, media_root: Path
) -> None:
    event = await film(http, media_root)
    waiting, made, gone = [await image(http, event, name) for name in ("waiting", "made", "gone")]
    (media_root / event / "assets").mkdir()
    for record in (made, gone):
        (media_root / record["path"]).write_text("picture")
        command = Asset.complete.on(UUID(record["id"]), int(record["jobId"]), job_version=9, sizes={record["path"]: 7})
        await do(inner, command)
    (media_root / event / "sprite.jpg").write_text("x")
    assert await sync(http, event) == (False, 2, 0)
    (media_root / gone["path"]).unlink()
    (media_root / event / "sprite.jpg").unlink()
    assert await sync(http, event) == (False, 0, 2)
    assert await paths(http, event) == sorted([f"{event}.mp4", "assets/made.jpg", "assets/waiting.jpg"])
    retained = (await http.get("/api/asset/", params={"types": "IMAGE"})).json()
    assert {record["id"] for record in retained} == {waiting["id"], made["id"]}
    again = await image(http, event, "gone")
    assert again["path"] == gone["path"], "its path is free"


async def test_a_change_of_the_vod_file_is_told_once(http: httpx.AsyncClient, media_root: Path) -> None:
    event = await film(http, media_root)
    file = vod_file(media_root, event)
    assert await sync(http, event) == (False, 1, 0)
    file.write_bytes(b"a longer film")
    assert [await sync(http, event), await sync(http, event)] == [(True, 0, 0), (False, 0, 0)]
    os.utime(file, (1, 1))
    assert [await sync(http, event), await sync(http, event)] == [(True, 0, 0), (False, 0, 0)]
    vod_file(media_root, event, extension=".ism")
    assert [await sync(http, event), await sync(http, event)] == [(True, 1, 0), (False, 0, 0)]


async def test_the_file_of_a_removed_asset_is_not_found_again(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    shown = await image(http, event)
    (media_root / event / "assets").mkdir()
    (media_root / shown["path"]).write_text("picture")
    await http.delete(f"/api/asset/{shown['id']}")
    assert await sync(http, event) == (False, 1, 0)
    assert await paths(http, event) == [f"{event}.mp4"]


async def test_two_at_once_find_each_file_once(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    for number in range(50):
        (media_root / event / f"{number}.ts").write_text("x")
    result = await asyncio.gather(*(sync(http, event) for _ in range(3)))
    assert sorted(created for _, created, _ in result) == [0, 0, 51]
    assert len(await paths(http, event)) == 51


async def test_without_an_event_404_and_without_a_vod_file_409(http: httpx.AsyncClient, media_root: Path) -> None:
    event = str((await add(http))["id"])
    (media_root / event).mkdir()
    (media_root / event / "other.mp4").write_text("x")
    assert_problem(await http.put(f"/api/asset/sync/{UNKNOWN}"), 404)
    assert_problem(await http.put(f"/api/asset/sync/{event}"), 409)


@pytest.mark.parametrize("more", [0, 1])
async def test_as_many_files_as_one_append_takes(http: httpx.AsyncClient, inner: Core, media_root: Path, more: int) -> None:
    event = await film(http, media_root)
    for number in range(handlers.MOST_AT_ONCE - 1 + more):
        (media_root / event / f"{number}.ts").touch()
    before = await last(inner)
    if more:
        assert_problem(await http.put(f"/api/asset/sync/{event}"), 409)
        assert await last(inner) == before
    else:
        assert await sync(http, event) == (False, handlers.MOST_AT_ONCE, 0)
        assert len(await paths(http, event)) == handlers.MOST_AT_ONCE
