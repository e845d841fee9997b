"""Live publications over HTTP: the response and the appended events. The target is a twin in memory; nothing is pushed here."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.values import AudioInput
from tests.api.asking import UNKNOWN, add, assert_problem, last, topics
from tests.api.media.publishing import add_destination
from tests.support.clock import HandClock
from tests.support.feeding import do
from tests.support.services import services
from tests.support.targets.memory import MemoryLiveTarget
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient
from workers.ports.targets import TargetFailed, Targets

LIVE = "/api/media/livepublication"
TRANSACTION = "0b1c2d3e-0000-4000-8000-000000000001"
TEXT = json.dumps({"title": "Final", "callbackUrls": ["https://hooks.test/a?k=marked"], "token": "marked"})
INPUTS = {"type": "test", "audioInputs": [{"id": "en", "index": 0}, {"id": "de", "index": 1}]}
STREAM = {"streamProtocol": "HLS", "liveOriginPrimaryUrl": "https://origin.test/live/{contentId}/master.m3u8"}


@pytest.fixture
def target() -> MemoryLiveTarget:
    return MemoryLiveTarget()


@pytest.fixture
def services_by_type(
    inner: Core, database_url: str, outbound: GuardedClient, media_root: Any, target: MemoryLiveTarget
) -> dict[Any, Any]:
    return services(inner, outbound=outbound, files=MediaDirectory(media_root), given={Targets: target})


async def live_event(http: httpx.AsyncClient, *, on_air: bool = True, streams: list[Any] | None = None) -> str:
    encoder = {"name": "e", "type": "ffmpeg", "encoderSpecific": INPUTS, "outputUrls": [STREAM] if streams is None else streams}
    channel = await http.post("/api/channel/", json={"name": "main", "configurationJson": json.dumps({"encoders": [encoder]})})
    assert channel.status_code == 200, channel.text
    event = str((await add(http, channelId=channel.json()["id"]))["id"])
    if on_air:
        await state(http, event, "LIVE_UNPUBLISHED")
    return event


async def state(http: httpx.AsyncClient, event: str, name: str) -> None:
    answer = await http.put(f"/api/event/state/{event}", json={"state": name})
    assert answer.status_code == 200, answer.text


async def youtube(http: httpx.AsyncClient, *, active: bool = True) -> str:
    config = json.dumps({"yt_clientId": "c", "yt_clientSecret": "s", "yt_refreshToken": "r"})
    return await add_destination(http, "Tube", target="YOUTUBE", destinationJson=config, active=active)


async def create(
    http: httpx.AsyncClient, event: str, *destinations: str, start: bool = False, transaction: str = TRANSACTION, **more: Any
) -> list[dict[str, Any]]:
    entries = [{"destinationId": destination, "publicationJson": TEXT, **more} for destination in destinations]
    body = {"eventId": event, "publications": entries, "startInstantly": start}
    answer = await http.post(f"{LIVE}/", json=body, headers={"X-Transaction-ID": transaction})
    assert answer.status_code == 200, answer.text
    made: list[dict[str, Any]] = answer.json()
    return made


def one_of(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"eventId": made["contentId"], "publicationId": made["id"], "destinationId": made["destinationId"], **more}


def pairs(*made: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "eventId": made[0]["contentId"],
        "publications": [{"publicationId": record["id"], "destinationId": record["destinationId"], **more} for record in made],
    }


async def put(http: httpx.AsyncClient, path: str, body: dict[str, Any], status: int = 200) -> Any:
    answer = await http.put(f"{LIVE}/{path}/", json=body)
    if status != 200:
        assert_problem(answer, status)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_stream_is_scheduled_started_stopped_and_recreated(
    http: httpx.AsyncClient, inner: Core, target: MemoryLiveTarget
) -> None:
    event, destination = await live_event(http), await youtube(http)
    (made,) = await create(http, event, destination, audioInputId="de")
    assert made == {
        "id": made["id"],
        "target": 2,
        "destinationId": destination,
        "contentId": event,
        "dateCreated": "2031-01-02T12:00:00.000Z",
        "dateStarted": None,
        "dateCompleted": None,
        "details": None,
        "callbacks": [
            {"id": made["callbacks"][0]["id"], "publicationId": made["id"], "url": "https://hooks.test/a", "lastTriggered": None}
        ],
        "destinationName": "Tube",
        "transactionId": TRANSACTION,
        "publicationState": 1,
        "publicationStateString": "Scheduled",
    }
    query = {"destinationId": destination}
    assert (await http.get(f"{LIVE}/{made['id']}", params=query)).json() == made
    assert (await put(http, "stop", one_of(made)))["publicationState"] == 1
    started = await put(http, "start", one_of(made))
    assert (started["publicationState"], started["dateStarted"], started["details"]["broadcast"]) == (
        2,
        made["dateCreated"],
        made["id"],
    )
    assert await put(http, "start", one_of(made)) == started
    stopped = await put(http, "stop", one_of(made))
    assert (stopped["publicationStateString"], stopped["dateCompleted"]) == ("Completed", made["dateCreated"])
    assert await put(http, "stop", one_of(made)) == stopped
    assert_problem(await http.put(f"{LIVE}/start/", json=one_of(made)), 409)
    anew = await put(http, "recreate", one_of(made, removeOriginal=True))
    assert anew == made
    assert target.live == {}
    assert [call for call in target.calls if call != "close"] == ["open", "close_live", "delete"]
    again = await put(http, "start", one_of(made))
    assert again["details"]["broadcast"] != made["id"], "another one for the target"
    assert await topics(inner, f"publication:{made['id']}") == [
        f"publication.{topic}" for topic in ("scheduled", "started", "stopped", "target_closed", "recreated", "started")
    ]
    logged = await inner.database.row("SELECT count(*) FROM stream_events WHERE convert_from(state, 'utf8') LIKE %s", ("%marked%",))
    assert logged == (0,)


async def test_what_is_wrong_is_refused_and_nothing_is_created(http: httpx.AsyncClient, inner: Core) -> None:
    event, destination = await live_event(http, on_air=False), await youtube(http)
    before = await last(inner)
    fine = {"destinationId": destination, "publicationJson": "{}"}
    for entries, status, start in (
        ([], 400, False),
        ([fine] * 101, 400, False),
        ([fine, {**fine, "destinationId": UNKNOWN}], 404, False),
        ([fine, {**fine, "publicationJson": "[]"}], 400, False),
        ([fine, {**fine, "audioInputId": "fr"}], 400, False),
        ([{"publicationJson": "{}"}], 400, False),
    ):
        body = {"eventId": event, "publications": entries, "startInstantly": start}
        assert_problem(await http.post(f"{LIVE}/", json=body), status)
    assert_problem(await http.post(f"{LIVE}/", json={"eventId": UNKNOWN, "publications": [fine]}), 404)
    assert await last(inner) == before
    for without in ((await add(http))["id"], await live_event(http, on_air=False, streams=[])):
        body = {"eventId": without, "publications": [fine], "startInstantly": True}
        before = await last(inner)
        assert_problem(await http.post(f"{LIVE}/", json=body), 409)
        assert await last(inner) == before


async def test_a_live_publication_started_early_waits_for_its_event(http: httpx.AsyncClient, inner: Core) -> None:
    event, destination = await live_event(http, on_air=False), await youtube(http)
    made = await create(http, event, destination, destination, destination)
    (instantly,) = await create(http, event, destination, start=True)
    assert (instantly["publicationState"], instantly["dateStarted"]) == (1, None)
    started = await put(http, "start", one_of(made[0]))
    assert (started["publicationState"], await put(http, "start", one_of(made[0]))) == (1, started)
    answered = await put(http, "start/all", pairs(*made[:2]))
    assert [record["isSuccessful"] for record in answered] == [True, True]
    await put(http, "stop", one_of(made[1]))
    rows = await inner.database.rows("SELECT id FROM publication_view WHERE start_awaited")
    assert {str(key) for (key,) in rows} == {made[0]["id"], instantly["id"]}
    assert await topics(inner, f"publication:{made[1]['id']}") == ["publication.scheduled", *["publication.start_awaited"] * 2]
    await state(http, event, "LIVE_PUBLISHED")
    assert (await put(http, "start", one_of(made[0])))["publicationState"] == 2
    await put(http, "stop", one_of(made[0]))
    await put(http, "recreate", one_of(made[0]))
    assert await inner.database.rows("SELECT id FROM publication_view WHERE start_awaited") == [(UUID(instantly["id"]),)]


async def test_the_inputs_that_the_encoder_found_count_before_those_of_the_channel(http: httpx.AsyncClient, inner: Core) -> None:
    event, destination = await live_event(http), await youtube(http)
    await do(inner, MediaEvent.record_audio_inputs.on(UUID(event), [AudioInput(id="fr")]))
    await create(http, event, destination, audioInputId="fr")
    entry = {"destinationId": destination, "publicationJson": "{}", "audioInputId": "de"}
    refused = await http.post(f"{LIVE}/", json={"eventId": event, "publications": [entry]})
    assert_problem(refused, 400)
    assert "publications[0].audioInputId" in refused.text


async def test_started_at_once_all_are_in_progress_or_say_why_not(http: httpx.AsyncClient, target: MemoryLiveTarget) -> None:
    event, destination = await live_event(http), await youtube(http)
    films = await add_destination(http, active=True)
    made = await create(http, event, destination, await youtube(http, active=False), films, destination, start=True)
    assert [record["publicationStateString"] for record in made] == [
        "InProgress",
        "FailedDestination",
        "FailedPublication",
        "InProgress",
    ]
    target.fault = TargetFailed("retry", "busy")
    assert [record["publicationState"] for record in await create(http, event, destination, start=True)] == [1]
    target.fault = TargetFailed("publication", "no")
    assert [record["publicationState"] for record in await create(http, event, destination, start=True)] == [6]


async def test_a_repeated_request_makes_nothing_twice_and_starts_what_was_not_started(
    http: httpx.AsyncClient, inner: Core, target: MemoryLiveTarget
) -> None:
    event, destination = await live_event(http), await youtube(http)
    body = {
        "eventId": event,
        "publications": [{"destinationId": destination, "publicationJson": "{}"}],
        "startInstantly": True,
    }

    async def asked() -> tuple[str, int]:
        answer = await http.post(f"{LIVE}/", json=body, headers={"Idempotency-Key": "k1"})
        assert answer.status_code == 200, answer.text
        (first,) = answer.json()
        return first["id"], first["publicationState"]

    target.fault = TargetFailed("retry", "busy")
    key, first = await asked()
    target.fault = None
    assert (first, await asked(), await asked()) == (1, (key, 2), (key, 2))
    assert await topics(inner, f"publication:{key}") == ["publication.scheduled", "publication.started"]
    item = {"eventId": event, "publicationId": key, "destinationId": destination}
    await put(http, "stop", item)
    await put(http, "recreate", item)
    before = await last(inner)
    assert (await asked(), await last(inner)) == ((key, 1), before), "a repeat puts nothing on the air again"


async def test_a_start_fails_by_what_is_at_fault(http: httpx.AsyncClient, inner: Core, target: MemoryLiveTarget) -> None:
    event, destination = await live_event(http, on_air=False), await youtube(http)
    first, second, third = await create(http, event, destination, destination, await youtube(http))
    await state(http, event, "LIVE_PUBLISHED")
    target.fault = TargetFailed("retry", "busy")
    before = await last(inner)
    await put(http, "start", one_of(first), 503)
    assert await last(inner) == before
    target.fault = TargetFailed("destination", "the token has expired")
    assert (await put(http, "start", one_of(second)))["publicationState"] == 6
    await put(http, "start", one_of(second), 409)
    target.fault = None
    assert (await put(http, "recreate", one_of(second)))["publicationState"] == 1
    assert (await http.put(f"/api/media/destination/active/{third['destinationId']}?active=false")).status_code == 200
    assert (await put(http, "start", one_of(third)))["publicationStateString"] == "FailedDestination"
    await put(http, "start", one_of(first) | {"destinationId": third["destinationId"]}, 404)
    await put(http, "start", one_of(first) | {"eventId": UNKNOWN}, 404)
    await put(http, "stop", one_of(first) | {"eventId": UNKNOWN}, 404)
    await put(http, "recreate", one_of(first) | {"publicationId": UNKNOWN}, 404)


async def test_a_channel_without_hls_has_no_source(http: httpx.AsyncClient) -> None:
    event = await live_event(http, streams=[{"streamProtocol": "DASH", "liveOriginPrimaryUrl": "https://o.test/a.mpd"}])
    (made,) = await create(http, event, await youtube(http))
    await put(http, "start", one_of(made), 409)


async def test_several_are_started_and_stopped_each_by_itself(http: httpx.AsyncClient) -> None:
    event, destination = await live_event(http), await youtube(http)
    made = await create(http, event, *[destination] * 50)
    body = pairs(*made)
    body["publications"].append({"publicationId": UNKNOWN, "destinationId": destination})
    started = await put(http, "start/all", body)
    assert [record["isSuccessful"] for record in started] == [True] * 50 + [False]
    assert [record["publicationId"] for record in started] == [publication["publicationId"] for publication in body["publications"]]
    assert started[0] == {
        "publicationId": made[0]["id"],
        "destinationId": destination,
        "isSuccessful": True,
        "description": "Done.",
    }
    stopped = await put(http, "stop/all", body)
    assert [record["isSuccessful"] for record in stopped] == [True] * 50 + [False]
    assert [record["isSuccessful"] for record in await put(http, "start/all", body)] == [False] * 51
    await put(http, "start/all", {"eventId": event, "publications": []}, 400)


async def test_publish_and_unpublish(http: httpx.AsyncClient, target: MemoryLiveTarget) -> None:
    (made,) = await create(http, await live_event(http), await youtube(http))
    early = await put(http, "publish", one_of(made))
    assert early == {"description": "The publication was not started.", "isSuccessful": False}
    await put(http, "start", one_of(made))
    assert await put(http, "publish", one_of(made)) == {"description": "Done.", "isSuccessful": True}
    target.fault = TargetFailed("publication", "not yours")
    assert await put(http, "unpublish", one_of(made)) == {"description": "not yours", "isSuccessful": False}


async def test_several_are_deleted_and_what_cannot_be_removed_stays(
    http: httpx.AsyncClient, inner: Core, target: MemoryLiveTarget
) -> None:
    event, destination = await live_event(http), await youtube(http)
    scheduled, running, ended, other = await create(http, event, *[destination] * 4)
    for record in (running, ended):
        await put(http, "start", one_of(record))
    await put(http, "stop", one_of(ended))
    await put(http, "recreate", one_of(ended))
    target.fault = TargetFailed("retry", "busy")

    async def delete(*made: dict[str, Any], hard: bool = False) -> list[bool]:
        answer = await http.request("DELETE", f"{LIVE}/", json=pairs(*made, hardDelete=hard))
        assert answer.status_code == 200, answer.text
        return [record["isSuccessful"] for record in answer.json()]

    assert await delete(scheduled, ended, running, hard=True) == [True, False, True]
    target.fault = None
    assert await delete(ended, hard=True) == [True]
    assert await delete(ended, other) == [False, True]
    assert (await http.get(f"{LIVE}/")).json() == []
    assert_problem(await http.request("DELETE", f"{LIVE}/", json={"eventId": event, "publications": []}), 400)
    assert_problem(await http.delete(f"/api/media/destination/{destination}"), 409)  # the target is yet to be told
    assert (await topics(inner, f"publication:{running['id']}"))[-1] == "publication.withdrawn"


async def test_lists_have_live_ones_only(http: httpx.AsyncClient, clock: HandClock, target: MemoryLiveTarget) -> None:
    event, destination = await live_event(http), await youtube(http)
    film = (
        await http.post(
            "/api/vodpublications/",
            json={
                "publications": [{"contentId": event, "destinationId": await youtube(http, active=False), "publicationJson": "{}"}]
            },
        )
    ).json()[0]
    (first,) = await create(http, event, destination)
    clock.forward(hours=1)
    (second,) = await create(http, event, destination)

    async def listed(path: str = "", **query: Any) -> list[str]:
        answer = await http.get(f"{LIVE}/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return [entry["id"] for entry in answer.json()]

    assert await listed() == [first["id"], second["id"]]
    assert await listed(pageSize=1, pageNumber=2) == [second["id"]]
    assert await listed(targetFilter="youtube", contentIdFilter=event[:8], to="2031-01-02T12:30:00Z") == [first["id"]]
    assert await listed(f"transactionId/{TRANSACTION}") == [first["id"], second["id"]]
    assert await listed(f"transactionId/{UNKNOWN}") == []
    query = {"destinationId": destination}
    assert (await http.get(f"{LIVE}/contentId/{event}", params=query)).json()["id"] == second["id"]
    (third,) = await create(http, event, destination, transaction="a show/3")
    assert await listed("transactionId/a%20show%2F3") == await listed(f"transactionId/{third['transactionId']}") == [third["id"]]
    assert_problem(await http.get(f"{LIVE}/{film['id']}", params={"destinationId": film["destinationId"]}), 404)
    assert [entry["id"] for entry in (await http.get("/api/vodpublications/")).json()["results"]] == [film["id"]]
    assert_problem(await http.put(f"/api/vodpublications/{first['id']}", json={**query, "publicationJson": "{}"}), 404)
    assert_problem(await http.delete(f"/api/vodpublications/{first['id']}", params=query), 404)
    assert_problem(await http.get(f"{LIVE}/", params={"orderBy": "Bogus"}), 400)
    await put(http, "start", one_of(first))
    target.more_details[first["id"]] = {"viewers": 3}
    asked = await http.get(f"{LIVE}/{first['id']}", params={**query, "queryTarget": "true"})
    assert asked.json()["details"] == {"viewers": 3}
    target.fault = TargetFailed("retry", "busy")
    assert (await http.get(f"{LIVE}/{first['id']}", params={**query, "queryTarget": "true"})).json()["details"] is None


async def test_statistics_are_what_the_session_tells_and_503_while_nobody_does(
    http: httpx.AsyncClient, inner: Core, clock: HandClock
) -> None:
    (made,) = await create(http, await live_event(http), await youtube(http))
    path, query = f"{LIVE}/statistics/{made['id']}", {"destinationId": made["destinationId"]}
    nothing = (await http.get(path, params=query)).json()
    assert (nothing["publicationState"], nothing["session"], nothing["bytes"]) == (1, None, 0)
    await put(http, "start", one_of(made))
    assert_problem(await http.get(path, params=query), 503)
    reported = {
        "connected": True,
        "uptime": 4.5,
        "bytes": 900,
        "bitrate": 1600.0,
        "fps": 25.0,
        "frames": 100,
        "reconnects": 1,
        "last_error": None,
    }
    await inner.database.execute(
        "INSERT INTO sessions "
        "(kind, key, shard, owner, wish, number, state, host, started_at, changed_at, statistics, statistics_at) "
        "VALUES ('publication', %s, 1, %s, 2, 7, 'running', 'h', %s, %s, %s::jsonb, %s)",
        (made["id"], made["id"], clock(), clock(), json.dumps(reported), clock()),
    )
    shown = (await http.get(path, params=query)).json()
    assert (shown["session"], shown["bytes"], shown["fps"], shown["time"]) == (7, 900, 25.0, "2031-01-02T12:00:00.000Z")
    clock.forward(seconds=60)
    assert_problem(await http.get(path, params=query), 503)
    await put(http, "stop", one_of(made))
    ended = (await http.get(path, params=query)).json()
    assert (ended["publicationState"], ended["connected"], ended["bytes"], ended["uptime"]) == (3, False, 900, 0.0)
    assert_problem(await http.get(path, params={"destinationId": UNKNOWN}), 404)
