"""Permissions to play streams of the built-in origin: published streams, unpublished streams, and whole recordings."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from api.kernel.log import RequestLog
from api.origin.access import OriginAccess
from api.published.readers import Readers
from api.published.viewers import Viewers
from api.wiring.core import Core
from domain.channel.point_token import PointToken, Use
from domain.kernel.clock import iso
from domain.kernel.encryption import IngestKeys
from tests.support.application import assembled, introduce
from tests.support.clock import HandClock
from tests.workers.origin.studio import Studio, Track, master_playlist
from workers.kernel.fair_places import FairPlaces
from workers.origin.recordings import RecordedPoint

KEYS = IngestKeys(bytes(32))
LIVE = ("master.m3u8", "manifest.mpd", "tracks/v0.m3u8", "state", "archive", "status.php", "1/v0/init.mp4", "1/v0/199000.m4s")
WHOLE = ("archive/master.m3u8", "archive/manifest.mpd", "archive/tracks/v0.m3u8", "1/v0/0.m4s", "1/v0/5000.m4s")
"""Files of the whole recording, including segments that no live playlist lists any more; segments are named by their times."""


@pytest.fixture(scope="module")
async def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a stream of 200 seconds whose live window is the last 60."""
    studio = Studio(tmp_path_factory.mktemp("origin"), HandClock())
    track = Track(studio, "v0")
    await studio.put("master.m3u8", master_playlist("v0"))
    for _ in range(200):
        await track.send(window=60)
        studio.clock.forward(seconds=1)
    await Track(studio, "a0", begins=199.0).send()
    for file in (studio.root / "news" / "1").rglob("*.m4s"):  # the hand of the clock moves no file system
        came = studio.moment() - 200 + int(file.stem) / 1000
        os.utime(file, (came, came))
    return studio.root


@pytest.fixture
def studio(recorded: Path, tmp_path: Path, clock: HandClock) -> Studio:
    """An origin with a copy of the recorded stream."""
    clock.forward(seconds=200)
    shutil.copytree(recorded, tmp_path / "origin", copy_function=os.link)
    return Studio(tmp_path / "origin", clock)


@pytest.fixture
async def open_http(
    inner: Core, services_by_type: dict[Any, Any], request_log: RequestLog, studio: Studio
) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a key."""
    access = OriginAccess(studio.origin, Readers(FairPlaces(8)), Viewers(inner.directory))
    app = assembled(inner, {**services_by_type, OriginAccess: access}, request_log=request_log, registry=CollectorRegistry())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://media.test") as client:
        yield client


def token(studio: Studio, use: Use = Use.READ, *, point: str = "news", seconds: int = 60) -> str:
    now = int(studio.moment())
    return PointToken(use, now, now + seconds, 1).text(KEYS.present, point=point)


async def statuses(http: httpx.AsyncClient, paths: tuple[str, ...], **asked: Any) -> set[int]:
    return {(await http.get(f"/origin/live/news/{path}", **asked)).status_code for path in paths}


async def test_what_is_not_published_needs_a_key_or_a_token(open_http: httpx.AsyncClient, studio: Studio, inner: Core) -> None:
    viewer, outsider = await introduce(inner, "eve", "viewer"), await introduce(inner, "packager", "keys")
    assert await statuses(open_http, LIVE) == {401}
    assert await statuses(open_http, LIVE, headers={"API-KEY": outsider}) == {401}
    assert await statuses(open_http, LIVE, headers={"API-KEY": "wrong"}) == {401}
    assert await statuses(open_http, LIVE, headers={"API-KEY": viewer}) == {200}
    assert await statuses(open_http, LIVE, headers={"Authorization": f"Bearer {viewer}"}) == {200}
    assert (await open_http.get("/origin/live/nothing/master.m3u8")).status_code == 401, "nobody learns what there is"
    assert (await open_http.get("/origin/live/nothing/master.m3u8", headers={"API-KEY": viewer})).status_code == 404


async def test_what_is_published_is_open_and_the_whole_recording_is_not(
    open_http: httpx.AsyncClient, studio: Studio, inner: Core
) -> None:
    """Anybody got the whole programme, also of a protected Event, and for a day after its end."""
    studio.published["news"] = ((studio.moment(), inf),)
    admin = await introduce(inner, "boss", "admin")
    assert await statuses(open_http, LIVE) == {200}
    for headers in ({}, {"API-KEY": admin}):
        assert await statuses(open_http, WHOLE, headers=headers) == {401}


@pytest.mark.parametrize("use", list(Use))
async def test_a_token_of_the_point_opens_all_of_it(open_http: httpx.AsyncClient, studio: Studio, use: Use) -> None:
    text = token(studio, use)
    assert await statuses(open_http, (*LIVE, *WHOLE), headers={"Authorization": f"Bearer {text}"}) == {200}
    assert await statuses(open_http, (*LIVE, *WHOLE), params={"token": text}) == {200}
    for wrong in (token(studio, use, point="other"), token(studio, use, seconds=-1), text[:-1] + "x"):
        assert await statuses(open_http, (*LIVE, *WHOLE), headers={"Authorization": f"Bearer {wrong}"}) == {401}
        assert await statuses(open_http, (*LIVE, *WHOLE), params={"token": wrong}) == {401}


async def test_a_token_that_was_revoked_opens_nothing(open_http: httpx.AsyncClient, studio: Studio) -> None:
    text = token(studio)
    assert await statuses(open_http, LIVE, params={"token": text}) == {200}
    RecordedPoint(studio.root / "news").revoke(now=studio.moment())
    studio.clock.forward(seconds=2)
    assert await statuses(open_http, LIVE, params={"token": text}) == {401}
    assert await statuses(open_http, LIVE, params={"token": token(studio)}) == {200}


async def test_a_token_in_the_address_is_in_all_addresses_that_follow(open_http: httpx.AsyncClient, studio: Studio) -> None:
    text = token(studio)
    for first in ("master.m3u8", "archive/master.m3u8"):
        answer = await open_http.get(f"/origin/live/news/{first}", params={"token": text})
        lists = [str(answer.url.join(line)) for line in answer.text.splitlines() if line and not line.startswith("#")]
        assert lists
        listed = await open_http.get(lists[0])
        files = [str(listed.url.join(line)) for line in listed.text.splitlines() if line and not line.startswith("#")]
        assert {(await open_http.get(files[at])).status_code for at in (0, -1)} == {200}
        assert f'init.mp4?token={text}"' in listed.text
    manifest = (await open_http.get("/origin/live/news/manifest.mpd", params={"token": text})).text
    assert manifest.count(f"?token={text}") == 4, "the initialization and the segments of both tracks"
    assert "?token" not in (await open_http.get("/origin/live/news/master.m3u8", headers={"Authorization": f"Bearer {text}"})).text


async def test_caches_keep_only_what_everybody_gets(open_http: httpx.AsyncClient, studio: Studio, inner: Core) -> None:
    viewer = {"API-KEY": await introduce(inner, "eve", "viewer")}
    for path in LIVE:
        answer = await open_http.get(f"/origin/live/news/{path}", headers=viewer)
        assert answer.headers["cache-control"] == "private, no-store", path
    studio.published["news"] = ((studio.moment(), inf),)
    for path in LIVE:
        answer = await open_http.get(f"/origin/live/news/{path}", headers=viewer)
        assert answer.headers["cache-control"].startswith("public, max-age="), path
    for path in WHOLE:
        answer = await open_http.get(f"/origin/live/news/{path}", headers={"Authorization": f"Bearer {token(studio)}"})
        assert answer.headers["cache-control"] == "private, no-store", path


async def test_a_session_of_the_console_is_enough(
    inner: Core, services_by_type: dict[Any, Any], request_log: RequestLog, studio: Studio
) -> None:
    access = OriginAccess(studio.origin, Readers(FairPlaces(8)), services_by_type[Viewers])
    app = assembled(inner, {**services_by_type, OriginAccess: access}, request_log=request_log, registry=CollectorRegistry())
    key = await introduce(inner, "eve", "viewer")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://media.test") as browser:
        (await browser.post("/console/session", json={"apiKey": key})).raise_for_status()
        assert await statuses(browser, LIVE, headers={"Sec-Fetch-Site": "same-origin"}) == {200}
        assert await statuses(browser, LIVE, headers={"Sec-Fetch-Site": "cross-site"}) == {401}
        assert await statuses(browser, WHOLE, headers={"Sec-Fetch-Site": "same-origin"}) == {401}


async def test_everybody_may_go_back_to_the_time_of_publication(open_http: httpx.AsyncClient, studio: Studio) -> None:
    """The stream has run for 200 seconds and has been public for 150. Its live window is 60 seconds."""
    studio.published["news"] = ((studio.moment() - 150, inf),)
    since = {"vbegin": iso(studio.clock() - timedelta(seconds=180))}
    answer = await open_http.get("/origin/live/news/tracks/v0.m3u8", params=since)
    names = [line.removeprefix("../") for line in answer.text.splitlines() if line.endswith(".m4s")]
    assert names[0] in ("1/v0/50000.m4s", "1/v0/51000.m4s"), "the part begins with the publication"
    assert answer.headers["cache-control"] == "public, max-age=1"
    assert await statuses(open_http, tuple(names[1:])) == {200}
    assert await statuses(open_http, ("1/v0/40000.m4s", "1/v0/0.m4s")) == {401}
    assert {(await open_http.get(f"/origin/live/news/{file}", params=since)).status_code for file in LIVE} == {200}


async def test_a_part_that_was_public_stays_playable_by_its_times(open_http: httpx.AsyncClient, studio: Studio) -> None:
    end = studio.moment() - 100
    studio.published["news"] = ((end - 20, end),)
    part = {"vbegin": iso(studio.clock() - timedelta(seconds=120)), "vend": iso(studio.clock() - timedelta(seconds=100))}
    answer = await open_http.get("/origin/live/news/tracks/v0.m3u8", params=part)
    assert answer.text.endswith("#EXT-X-ENDLIST\n")
    names = tuple(line.removeprefix("../") for line in answer.text.splitlines() if line.endswith(".m4s"))
    assert len(names) in (20, 21)
    assert await statuses(open_http, names[1:]) == {200}
    assert await statuses(open_http, ("master.m3u8", "state", "1/v0/10000.m4s", "1/v0/199000.m4s")) == {401}


async def test_what_cannot_be_selected_is_bad_input(open_http: httpx.AsyncClient, studio: Studio) -> None:
    studio.published["news"] = ((studio.moment(), inf),)
    answer = await open_http.get("/origin/live/news/master.m3u8", params={"filter": 'language=="en"', "vend": "soon"})
    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (400, ["vend", "filter"])
    assert (
        await open_http.get("/origin/live/news/master.m3u8", params={"vbegin": "2001-01-01", "vend": "2001-01-02"})
    ).status_code == 404
