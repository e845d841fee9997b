"""Jobs for playback on demand over HTTP: the response, the events of job and Event in one append, and what webhooks are told."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import httpx
import pytest
from pydantic_core import from_json

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.values import VodJobEnd, VodResult, VodWorkflow
from tests.api.asking import add, add_channel, add_webhook, engine_error, event, last, logged, new_id, of_event, version_of
from tests.api.engine.jobs_given import request, single
from tests.support.feeding import do
from tests.workers.webhook.feeding import fed

LIVE = {
    "streamProtocol": "HLS",
    "liveOriginPrimaryUrl": "https://a.test/live.m3u8",
    "liveOriginSecondaryUrl": "https://b.test/live.m3u8",
}
CHANNEL = {"encoders": [{"name": "enc", "outputUrls": [LIVE]}]}


@pytest.fixture
async def captured(http: httpx.AsyncClient) -> str:
    """An Event that was live and is stopped."""
    channel = await add_channel(http, configurationJson=json.dumps(CHANNEL))
    key = str((await add(http, channelId=channel))["id"])
    for state in ("LIVE_PUBLISHED", "STOPPED"):
        assert (await http.put(f"/api/event/state/{key}", json={"state": state})).status_code == 200
    return key


async def submit(engine: httpx.AsyncClient, workflow: str, content_id: str, **parameters: Any) -> httpx.Response:
    source = {"file": "film.mp4"} if workflow == "vod_ingest" else {}
    return await engine.post("/engine/job", json=request({"content_id": content_id, **source, **parameters}, workflow))


async def test_a_capture_is_accepted_with_what_the_event_knows_in_one_append(
    engine: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core, captured: str
) -> None:
    before, shown = await last(inner), await event(http, captured)
    answer = await submit(engine, "vod_capture", captured)
    assert answer.status_code == 200, answer.text
    job = answer.json()["id"]
    appended = [entry for entry in await logged(inner) if entry.position > before]
    assert [entry.topic for entry in appended] == [
        "event.vod_job_started",
        "event.capturing_changed",
        "event.mp4_state_changed",
        "event.state_changed",
        "job.accepted",
    ]
    assert len({entry.cause["command_id"] for entry in appended}) == 1
    assert appended[-1].data["submission"]["owner"] == f"event:{captured}"
    assert (await single(engine, job))["parameters"] == {
        "content_id": captured,
        "sources": ["https://a.test/live.m3u8", "https://b.test/live.m3u8"],
        "start": shown["actualLiveStart"],
        "end": shown["actualLiveEnd"],
    }
    now = await event(http, captured)
    assert (now["capturingLive2Vod"], now["mp4StateString"], now["stateString"]) == (True, "GENERATING", "VOD_INGESTING")
    assert (now["captureVodStart"], now["captureVodEnd"]) == (shown["actualLiveStart"], shown["actualLiveEnd"])


async def test_the_list_and_the_past_show_it_too(
    engine: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core, captured: str
) -> None:
    version = version_of(await http.get(f"/api/event/{captured}"))
    await submit(engine, "vod_capture", captured)
    [listed] = (await http.get("/api/event/", params={"eventState": "VOD_INGESTING"})).json()["results"]
    assert (listed["id"], listed["capturingLive2Vod"]) == (captured, True)
    past = (await http.get(f"/api/audit/event/{captured}/state", params={"version": version})).json()["state"]
    assert (past["capturingLive2Vod"], past["captureVodStart"], past["mp4StateString"]) == (False, None, "NONE")
    present = (await http.get(f"/api/audit/event/{captured}/state")).json()["state"]
    assert (present["capturingLive2Vod"], present["mp4StateString"]) == (True, "GENERATING")


async def test_of_two_at_once_one_is_409(engine: httpx.AsyncClient, inner: Core, captured: str) -> None:
    answers = await asyncio.gather(*(submit(engine, "vod_capture", captured) for _ in range(2)))
    [accepted] = [answer for answer in answers if answer.status_code == 200]
    [refused] = [answer for answer in answers if answer.status_code != 200]
    number = accepted.json()["id"]
    assert engine_error(refused, 409).endswith(f"job {number} (vod_capture) is still producing files for this Event")
    assert [entry.topic for entry in await logged(inner)].count("job.accepted") == 1
    assert engine_error(await submit(engine, "vod_package", captured), 409)


async def test_a_rerun_beside_another_job_is_409(engine: httpx.AsyncClient, inner: Core, captured: str) -> None:
    first = (await submit(engine, "vod_capture", captured)).json()["id"]
    again = await engine.post(f"/engine/jobs/{first}/rerun")
    assert again.status_code == 200, again.text
    assert engine_error(await engine.post(f"/engine/jobs/{first}/rerun"), 409)


@pytest.mark.parametrize("workflow", [entry for entry in VodWorkflow if entry is not VodWorkflow.COMPOSE])
async def test_a_job_for_no_event_is_400_and_appends_nothing(engine: httpx.AsyncClient, inner: Core, workflow: str) -> None:
    before = await last(inner)
    for content_id in ("film", new_id()):
        error = engine_error(await submit(engine, workflow, content_id), 400)
        assert error == "parameters.content_id: there is no Event with this content id"
    assert await last(inner) == before


async def test_a_capture_of_an_event_that_knows_nothing_is_400(
    engine: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core
) -> None:
    key = (await add(http))["id"]
    before = await last(inner)
    error = engine_error(await submit(engine, "vod_capture", key), 400)
    assert [part.split(":")[0] for part in error.split("; ")] == ["parameters.sources", "parameters.start", "parameters.end"]
    assert await last(inner) == before


async def test_a_package_moves_no_etag_where_nothing_shown_changes(
    engine: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core
) -> None:
    key = (await add(http, eventState="VOD_PUBLIC"))["id"]
    before = (await http.get(f"/api/event/{key}")).headers["etag"]
    assert (await submit(engine, "vod_package", key)).status_code == 200
    assert (await of_event(inner, key))[-1] == "vod_job_started"
    assert (await http.get(f"/api/event/{key}")).headers["etag"] == before


async def test_webhooks_are_told_of_the_start_and_of_the_end(
    engine: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core, captured: str
) -> None:
    await add_webhook(http)
    number = (await submit(engine, "vod_capture", captured, publish=True)).json()["id"]
    result = VodResult(duration=3600.0, thumbnail="poster.jpg")
    await do(inner, MediaEvent.end_vod_job.on(UUID(captured), number, VodJobEnd.COMPLETED, version=5, result=result))
    await fed(inner).feed()
    rows = await inner.database.rows("SELECT payload FROM deliveries ORDER BY position")
    started, ended = (from_json(text) for (text,) in rows)
    flags = {"stateChanged", "mp4StateChanged", "capturingLive2VodFlagChanged"}
    changed = [{name for name, value in entry.items() if value is True} for entry in (started, ended)]
    assert changed == [{*flags, "metadataChanged"}, {*flags, "thumbnailChanged"}]
    assert [(record["state"], record["mp4State"]) for record in (started, ended)] == [
        ("VOD_INGESTING", "GENERATING"),
        ("VOD_PUBLIC", "AVAILABLE"),
    ]
    now = await event(http, captured)
    assert (now["thumbnail"], now["capturingLive2Vod"]) == ("poster.jpg", False)


async def test_a_repeat_under_its_key_answers_with_the_first_job(
    engine: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core
) -> None:
    key = (await add(http, eventState="VOD_PRIVATE"))["id"]
    body = request({"content_id": key}, "vod_package")
    first, again = [await engine.post("/engine/job", json=body, headers={"Idempotency-Key": "a"}) for _ in range(2)]
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert first.json() == again.json()
    assert (await of_event(inner, key)).count("vod_job_started") == 1


async def test_a_job_of_a_deleted_event_cannot_go_on(engine: httpx.AsyncClient, http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http, eventState="VOD_PRIVATE"))["id"]
    number = (await submit(engine, "vod_package", key)).json()["id"]
    await engine.put(f"/engine/job/{number}", json={"queue_state": "broken"})
    await engine.put(f"/engine/job/{number}", json={"queue_state": "paused"})
    assert (await http.delete(f"/api/event/{key}")).status_code == 200
    before = await last(inner)
    assert engine_error(await engine.put(f"/engine/job/{number}", json={"queue_state": "queued"}), 400)
    assert engine_error(await engine.post(f"/engine/jobs/{number}/rerun"), 400)
    assert await last(inner) == before


@pytest.mark.parametrize(
    ("state", "parameters", "hidden"),
    [
        ("PRE_LIVE", {}, 'The Event is PRE_LIVE and stays in this state: its film is not shown. Send "publish"'),
        ("LIVE_PUBLISHED", {"publish": True}, "The Event is LIVE_PUBLISHED and stays in this state"),
        ("PRE_LIVE", {"publish": True}, None),
        ("PRE_VOD", {}, None),
        ("VOD_PUBLIC", {}, None),
    ],
)
async def test_the_answer_and_the_log_say_why_a_film_will_not_be_shown(
    engine: httpx.AsyncClient, http: httpx.AsyncClient, state: str, parameters: dict[str, Any], hidden: str | None
) -> None:
    key = str((await add(http, eventState=state))["id"])
    answer = await submit(engine, "vod_ingest", key, **parameters)
    warned = answer.headers.get("warning", "").replace('\\"', '"')
    log = (await engine.get(f"/engine/logs/{answer.json()['id']}")).json()
    output = [line["message"] for line in log if line["severity_description"] == "WARN"]
    if hidden is None:
        assert (warned, output) == ("", [])
    else:
        assert hidden in warned
        assert len(output) == 1
        assert output[0].startswith(hidden)
    shown = "VOD_INGESTING" if hidden is None and state != "VOD_PUBLIC" else state
    assert (await event(http, key))["stateString"] == shown
