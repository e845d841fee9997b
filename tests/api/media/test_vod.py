"""The metadata of files for playback on demand over HTTP: the response, and what was appended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.metadata_file import LARGEST
from domain.event.values import WITH_METADATA, EventState, Quality, QualityOfSound, QualityReason, QualityVerdict
from domain.kernel.ports import Invocation
from tests.api.asking import UNKNOWN, add, assert_problem, event, fields_of, last, logged


async def an_event(http: httpx.AsyncClient, state: str = "VOD_PUBLIC") -> str:
    return str((await add(http, eventState=state))["id"])


def put_file(root: Path, key: str, content: bytes | None = None, **members: Any) -> bytes:
    """The metadata file of an Event, and its MP4."""
    files = [{"name": f"{key}.mp4", "size": 3}]
    text = json.dumps({"contentId": key, "duration": 61.25, "files": files, **members}).encode() if content is None else content
    (root / key).mkdir(exist_ok=True)
    (root / key / "metadata.json").write_bytes(text)
    (root / key / f"{key}.mp4").write_bytes(b"mp4")
    return text


async def sync(http: httpx.AsyncClient, key: str) -> httpx.Response:
    return await http.put(f"/api/vod/{key}/metadata")


@pytest.mark.parametrize("state", sorted(WITH_METADATA))
async def test_the_event_takes_over_what_the_file_says(
    http: httpx.AsyncClient, inner: Core, media_root: Path, state: EventState
) -> None:
    key = await an_event(http, state.name)
    text = put_file(media_root, key, startTime="2031-01-02T03:04:05.000Z")
    before = await last(inner)
    answer = await sync(http, key)
    assert (answer.status_code, answer.content) == (200, text)
    assert answer.headers["content-type"] == "application/json"
    appended = [entry.topic for entry in await logged(inner) if entry.position > before]
    assert appended == ["event.vod_file_changed", "event.mp4_state_changed", "asset.discovered", "asset.discovered"]
    listed = (await http.get("/api/asset/", params={"eventId": key})).json()
    assert sorted(record["path"] for record in listed) == sorted([f"{key}/metadata.json", f"{key}/{key}.mp4"])
    shown = await event(http, key)
    assert (shown["mp4StateString"], shown["stateString"]) == ("AVAILABLE", state.name)
    read = await http.get(f"/api/vod/{key}/metadata/")
    assert (read.status_code, read.content) == (200, text)


async def test_what_is_known_is_not_written_again(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    key = await an_event(http)
    put_file(media_root, key)
    await sync(http, key)
    before, etag = await last(inner), (await http.get(f"/api/event/{key}")).headers["etag"]
    assert (await sync(http, key)).status_code == 200
    assert (await last(inner), (await http.get(f"/api/event/{key}")).headers["etag"]) == (before, etag)


@pytest.mark.parametrize("state", sorted(set(EventState) - WITH_METADATA))
async def test_other_states_are_bad_input(http: httpx.AsyncClient, inner: Core, media_root: Path, state: EventState) -> None:
    key = await an_event(http, state.name)
    before = await last(inner)
    assert fields_of(await sync(http, key)) == ["id"]
    put_file(media_root, key)
    assert fields_of(await sync(http, key)) == ["id"]
    assert await last(inner) == before
    assert (await http.get(f"/api/vod/{key}/metadata")).status_code == 200


async def test_an_event_that_is_not_there(http: httpx.AsyncClient, media_root: Path) -> None:
    key = await an_event(http)
    put_file(media_root, key)
    put_file(media_root, UNKNOWN)
    await http.delete(f"/api/event/{key}")
    for gone in (key, UNKNOWN):
        assert fields_of(await sync(http, gone)) == ["id"]
        assert_problem(await http.get(f"/api/vod/{gone}/metadata"), 404)
    assert fields_of(await sync(http, "film")) == ["id"]
    assert fields_of(await http.get("/api/vod/film/metadata")) == ["id"]


async def test_a_missing_file_is_409_for_a_write_and_404_for_a_read(http: httpx.AsyncClient, inner: Core) -> None:
    key = await an_event(http)
    before = await last(inner)
    assert_problem(await sync(http, key), 409)
    assert_problem(await http.get(f"/api/vod/{key}/metadata"), 404)
    assert await last(inner) == before


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"contentId":"film","duration":1,"files":[]}', b" " * (LARGEST + 1)],
    ids=lambda value: str(len(value)),
)
async def test_a_broken_file_is_409(http: httpx.AsyncClient, inner: Core, media_root: Path, content: bytes) -> None:
    key = await an_event(http)
    put_file(media_root, key, content)
    before = await last(inner)
    for answer in (await sync(http, key), await http.get(f"/api/vod/{key}/metadata")):
        assert_problem(answer, 409)
        assert answer.json()["detail"].startswith("metadata.json of the Event ")
    assert await last(inner) == before


async def test_names_that_lead_out_are_409(http: httpx.AsyncClient, media_root: Path) -> None:
    key = await an_event(http)
    put_file(media_root, key, files=[{"name": "../other/a.mp4", "size": 1}])
    assert "files[0]" in (await sync(http, key)).json()["detail"]


async def test_a_link_that_leads_out_is_no_file(http: httpx.AsyncClient, media_root: Path, tmp_path: Path) -> None:
    key = await an_event(http)
    text = put_file(media_root, key)
    (tmp_path / "outside.json").write_bytes(text)
    (media_root / key / "metadata.json").unlink()
    (media_root / key / "metadata.json").symlink_to(tmp_path / "outside.json")
    assert_problem(await sync(http, key), 409)
    assert_problem(await http.get(f"/api/vod/{key}/metadata"), 404)


async def test_a_picture_past_the_end_is_refused_once_the_length_is_known(http: httpx.AsyncClient, media_root: Path) -> None:
    key = await an_event(http)
    put_file(media_root, key)
    wanted = {"eventId": key, "name": "goal", "time": "00:01:02"}
    assert (await http.post("/api/asset/image/", json={**wanted, "name": "before"})).status_code == 200
    await sync(http, key)
    assert_problem(await http.post("/api/asset/image/", json=wanted), 409)
    assert (await http.post("/api/asset/image/", json={**wanted, "time": "00:01:01"})).status_code == 200


async def test_the_quality_of_a_film_is_shown_once_it_was_checked(http: httpx.AsyncClient, inner: Core) -> None:
    key = await an_event(http)
    path = f"/api/vod/{key}/quality"
    assert (await http.get(path)).status_code == 204
    assert (await http.get(path.replace(key, UNKNOWN))).status_code == 204
    reason = QualityReason(check="loudness", verdict=QualityVerdict.FAIL, message="Audio track 1 is too loud.")
    result = Quality(
        job=17,
        profile="ebu-r128",
        verdict=QualityVerdict.FAIL,
        keep_private=True,
        reasons=(reason,),
        sounds=(QualityOfSound(track=1, language="eng", integrated=-14.0, true_peak=-0.5),),
        duration=12.5,
    )
    await inner.executor.execute(MediaEvent.measure_quality.on(UUID(key), result), invocation=Invocation.by("system"))
    shown = (await http.get(path)).json()
    assert shown.pop("measuredAt", None), shown
    assert shown == {
        "contentId": key,
        "jobId": 17,
        "profile": "ebu-r128",
        "verdict": "fail",
        "keepPrivate": True,
        "duration": 12.5,
        "reasons": [{"check": "loudness", "verdict": "fail", "message": "Audio track 1 is too loud."}],
        "sounds": [{"track": 1, "language": "eng", "integrated": -14.0, "range": None, "truePeak": -0.5}],
    }
    assert (await event(http, key))["stateString"] == "VOD_PRIVATE", "a film that fails is not public"
