"""POST /asset/image/, /asset/gif/ and /asset/video/: the answer, the appended events, and what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, add_flow, assert_problem, fields_of, last, logged, topics, version_of
from tests.api.media.asset.assets_given import GIF, film, image, vod_file


async def test_an_image_is_requested_with_its_job_in_one_append(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    before = await last(inner)
    answer = await http.post(
        "/api/asset/image/",
        json={"eventId": event, "name": "Goal 1/2", "time": "00:00:01.5", "filename": "goal.JPG", "priority": "3"},
    )
    shown = answer.json()
    job = shown["jobId"]
    assert (answer.status_code, shown) == (
        200,
        {
            "id": shown["id"],
            "eventId": event,
            "name": "Goal 1/2",
            "path": f"{event}/assets/goal.jpg",
            "extension": ".jpg",
            "jobId": job,
            "contentId": event,
            "state": 0,
            "stateString": "GENERATING",
            "type": 1,
            "typeString": "IMAGE",
            "language": None,
            "kind": None,
            "dateCreated": "2031-01-02T12:00:00.000Z",
            "dateModified": "2031-01-02T12:00:00.000Z",
            "url": None,
        },
    )
    accepted, requested = [event for event in await logged(inner) if event.position > before]
    assert [accepted.topic, requested.topic] == ["job.accepted", "asset.requested"]
    assert accepted.cause["command_id"] == requested.cause["command_id"]
    assert accepted.data["priority"] == 3
    submission = accepted.data["submission"]
    assert (submission["client"], submission["workflow"], submission["owner"]) == ("admin", "asset_image", f"asset:{shown['id']}")
    assert submission["parameters"] == {
        "content_id": event,
        "source": f"{event}.mp4",
        "name": "assets/goal.jpg",
        "time": "00:00:01.500",
    }
    got = await http.get(f"/api/asset/{shown['id']}/")
    assert (got.status_code, got.json(), version_of(got)) == (200, shown, 1)


@pytest.mark.parametrize(
    ("path", "body", "workflow", "parameters"),
    [
        (
            "gif",
            {"fps": "5", "width": 63, "height": "48.5", "playbackSpeed": 0.0, "playbackRepeats": -1},
            "asset_gif",
            {"fps": 5, "width": 63.0, "height": 48.5, "playback_speed": 0.0, "playback_repeats": -1},
        ),
        ("gif", {"fps": None}, "asset_gif", {}),
        (
            "video",
            {"mezzanine": 1, "frameAccurate": 0.0, "copyTs": True},
            "asset_video",
            {"mezzanine": True, "frame_accurate": False, "copy_ts": True},
        ),
    ],
)
async def test_options_are_parameters_of_the_job(
    http: httpx.AsyncClient,
    inner: Core,
    media_root: Path,
    path: str,
    body: dict[str, Any],
    workflow: str,
    parameters: dict[str, Any],
) -> None:
    event = await film(http, media_root)
    answer = await http.post(f"/api/asset/{path}/", json={"clip": {"eventId": event, **GIF}, "name": "Goal", **body})
    assert answer.status_code == 200, answer.text
    [accepted] = [event for event in await logged(inner) if event.topic == "job.accepted"]
    assert accepted.data["submission"]["workflow"] == workflow
    times = {"start": "00:00:01.000", "end": "00:00:02.000"}
    common = {"content_id": event, "source": f"{event}.mp4", "name": f"assets/Goal{answer.json()['extension']}"}
    assert accepted.data["submission"]["parameters"] == {**common, **times, **parameters}


async def test_two_requests_of_one_file_name_at_once_get_two_paths(http: httpx.AsyncClient, media_root: Path) -> None:
    event = await film(http, media_root)
    assets = await asyncio.gather(*(image(http, event, filename="goal") for _ in range(6)))
    paths = {asset["path"] for asset in assets}
    assert len(paths) == 6
    assert f"{event}/assets/goal.jpg" in paths
    assert all(asset["path"] in (f"{event}/assets/goal.jpg", f"{event}/assets/goal-{asset['id'][:8]}.jpg") for asset in assets)


async def test_a_file_that_is_there_is_not_replaced(http: httpx.AsyncClient, media_root: Path) -> None:
    event = await film(http, media_root)
    (media_root / event / "assets").mkdir()
    (media_root / event / "assets/goal.jpg").write_bytes(b"of somebody")
    shown = await image(http, event, filename="goal")
    assert shown["path"] == f"{event}/assets/goal-{shown['id'][:8]}.jpg"


async def test_the_url_is_below_the_storage_of_the_flow(http: httpx.AsyncClient, media_root: Path) -> None:
    flow = await add_flow(http)
    event = await film(http, media_root, FlowId=flow)
    shown = await image(http, event, "Two words")
    assert shown["path"] == f"{event}/assets/Two words.jpg"
    assert shown["url"].endswith(f"/{event}/assets/Two%20words.jpg")
    assert (await http.get(f"/api/asset/{shown['id']}")).json() == shown


async def test_a_request_that_is_repeated_is_answered_as_the_first_time(
    http: httpx.AsyncClient, inner: Core, media_root: Path
) -> None:
    event = await film(http, media_root, FlowId=await add_flow(http))
    body, key = {"eventId": event, "name": "Goal", "time": "00:00:01"}, {"Idempotency-Key": "k"}
    first = await http.post("/api/asset/image/", json=body, headers=key)
    await http.put(f"/api/asset/{first.json()['id']}/", params={"name": "Other"})
    before = await last(inner)
    again = await http.post("/api/asset/image/", json=body, headers=key)
    assert (again.status_code, again.json()) == (200, first.json())
    assert await last(inner) == before


IMAGE = {"name": "Goal", "time": "00:00:01"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("image", {"time": "25:61:00"}, "time"),
        ("image", {"time": "1"}, "time"),
        ("image", {"name": " "}, "name"),
        ("image", {"filename": "a/b"}, "filename"),
        ("image", {"filename": "a\\b"}, "filename"),
        ("image", {"filename": "a..b"}, "filename"),
        ("image", {"filename": ".a"}, "filename"),
        ("image", {"filename": " "}, "filename"),
        ("image", {"filename": "a\nb"}, "filename"),
        ("image", {"filename": "a" * 300}, "filename"),
        ("image", {"filename": ".jpg"}, "filename"),
        ("image", {"priority": 0}, "priority"),
        ("image", {"priority": 11}, "priority"),
        ("image", {"eventId": "x"}, "eventId"),
        ("gif", {"clip": {"start": "00:00:02", "end": "00:00:02"}}, "clip.end"),
        ("gif", {"clip": {"start": "00:00:02", "end": "00:00:01.999"}}, "clip.end"),
        ("gif", {"clip": {"start": "2031-01-02T03:04:05Z", "end": "00:00:02"}}, "clip.start"),
        ("gif", {"fps": 0}, "fps"),
        ("gif", {"fps": 61}, "fps"),
        ("gif", {"fps": 1.5}, "fps"),
        ("gif", {"width": 0}, "width"),
        ("gif", {"height": 8193}, "height"),
        ("gif", {"width": "NaN"}, "width"),
        ("gif", {"width": "wide"}, "width"),
        ("gif", {"width": True}, "width"),
        ("gif", {"playbackSpeed": -0.1}, "playbackSpeed"),
        ("gif", {"playbackRepeats": -2}, "playbackRepeats"),
        ("video", {"clip": {"start": "2031-01-02T03:04:05Z", "end": "2031-01-02T03:04:05+00:00"}}, "clip.end"),
        ("video", {"clip": {"filter": "frames>1"}}, "clip.filter"),
        ("video", {"mezzanine": 2}, "mezzanine"),
        ("video", {"frameAccurate": "x"}, "frameAccurate"),
    ],
)
async def test_bad_input_is_400_and_changes_nothing(
    http: httpx.AsyncClient, inner: Core, media_root: Path, path: str, body: dict[str, Any], field: str
) -> None:
    event = await film(http, media_root)
    before = await last(inner)
    if path == "image":
        sent = {"eventId": event, **IMAGE, **body}
    else:
        sent = {"name": "Goal", **body, "clip": {"eventId": event, **GIF, **body.get("clip", {})}}
    assert fields_of(await http.post(f"/api/asset/{path}/", json=sent)) == [field]
    assert await last(inner) == before


async def test_what_is_required_is_named(http: httpx.AsyncClient) -> None:
    assert fields_of(await http.post("/api/asset/image/", json={})) == ["name", "eventId", "time"]
    assert fields_of(await http.post("/api/asset/gif/", json={"clip": {}})) == ["name", "clip.eventId", "clip.start", "clip.end"]


async def test_without_an_event_404_and_without_a_vod_file_409(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = str((await add(http))["id"])
    before = await last(inner)
    assert_problem(await http.post("/api/asset/image/", json={"eventId": UNKNOWN, **IMAGE}), 404)
    assert_problem(await http.post("/api/asset/image/", json={"eventId": event, **IMAGE}), 409)
    assert await last(inner) == before
    vod_file(media_root, event)
    await http.delete(f"/api/event/{event}")
    assert_problem(await http.post("/api/asset/image/", json={"eventId": event, **IMAGE}), 404)


async def test_a_date_time_needs_the_start_of_the_stream(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    event = await film(http, media_root)
    body = {"eventId": event, "name": "Goal", "time": "2031-01-02T14:00:01.250+02:00"}
    assert_problem(await http.post("/api/asset/image/", json=body), 409)
    (media_root / event / "metadata.json").write_text('{"startTime": "2031-01-02T12:00:00Z"}')
    shown = (await http.post("/api/asset/image/", json=body)).json()
    [accepted] = await logged(inner, f"job:{shown['jobId']}")
    assert accepted.data["submission"]["parameters"]["time"] == "00:00:01.250"
    assert_problem(await http.post("/api/asset/image/", json={**body, "time": "2031-01-02T11:59:59.999Z"}), 409)
    assert_problem(await http.post("/api/asset/image/", json={**body, "time": "2031-01-07T12:00:00Z"}), 409)


async def test_the_audit_shows_an_asset_as_it_was(http: httpx.AsyncClient, inner: Core, media_root: Path) -> None:
    shown = await image(http, await film(http, media_root, FlowId=await add_flow(http)))
    await http.put(f"/api/asset/{shown['id']}/", params={"name": "Other"})
    past = await http.get(f"/api/audit/asset/{shown['id']}/state", params={"version": "1"})
    assert past.json()["state"] == shown
    assert await topics(inner, f"asset:{shown['id']}") == ["asset.requested", "asset.renamed"]
