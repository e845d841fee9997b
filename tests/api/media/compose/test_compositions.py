"""Compositions over HTTP: the answers, and what was appended."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, add_channel, add_flow, add_room, assert_problem, last, of_event, topics
from tests.api.media.compose.composing import composed, composed_for_encoder, composing_channel, item, source
from tests.api.media.owners import add_category
from tests.support.clock import NOON

LATER = (NOON + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
STARTED = ["vod_job_started", "mp4_state_changed", "state_changed"]


async def state(http: httpx.AsyncClient, event: str) -> tuple[int, int]:
    shown = (await http.get(f"/api/event/{event}")).json()
    return shown["state"], shown["mp4State"]


async def jobs(http: httpx.AsyncClient, event: str) -> list[dict[str, Any]]:
    """Return the jobs of this content, the newest first."""
    result: list[dict[str, Any]] = (await http.get("/engine/jobs", params={"search": event})).json()
    return result


async def history(inner: Core, http: httpx.AsyncClient, event: str) -> list[str]:
    key = (await http.get(f"/api/compose/{event}")).json()["id"]
    return [topic.removeprefix("composition.") for topic in await topics(inner, f"composition:{key}")]


class TestFilms:
    async def test_a_film_in_the_clear_shows_no_protected_event(self, http: httpx.AsyncClient, inner: Core) -> None:
        opener = (await add(http, Title="Opener", vodEnableDrm=True))["id"]
        before, playlist = await last(inner), {"items": [item(opener)]}
        refused = await http.post("/api/compose/", json={"event": {}, "playlist": playlist})
        assert_problem(refused, 409)
        assert refused.json()["detail"].startswith("item 1 shows an Event with vodDrm")
        assert await last(inner) == before
        assert await composed(http, item(opener), event={"vodDrm": True})

    async def test_an_event_gets_its_playlist_and_a_job(self, http: httpx.AsyncClient, inner: Core) -> None:
        opener, flow, room = await source(http), await add_flow(http), await add_room(http)
        category = await add_category(http, "Evenings")
        marker = {"startAt": "00:00:05", "duration": "00:00:30", "frameAccurate": None, "type": "REPLACEMENT"}
        properties = {"start": "00:00:01", "END": "kept", "nested": {"Key": [1.5, None, "x"], "key": 2}}
        body = {
            "event": {
                "workflowId": flow,
                "roomId": room,
                "eventTypeId": None,
                "categoryIds": [category],
                "title": "Evening",
                "description": "Long",
                "refId": "r-1",
                "externalId": "x-1",
                "setPrivateAFterGeneration": True,
                "vodDrm": True,
            },
            "playlist": {
                "name": "First",
                "liveStreamStart": None,
                "items": [{"TYPE": "event", "value": opener.upper(), "properties": properties, "markers": [marker]}],
            },
        }
        answer = await http.post("/api/compose/", json=body)
        event = answer.json()
        assert (answer.status_code, answer.headers["location"]) == (201, f"/api/compose/{event}")
        shown = await http.get(f"/api/compose/{event}")
        assert shown.json() == {
            "id": shown.json()["id"],
            "name": "First",
            "items": [{"type": 0, "value": opener, "properties": properties, "markers": [{**marker, "type": 1}]}],
            "looped": False,
            "loudness": None,
            "liveStreamStart": None,
        }
        made = (await http.get(f"/api/event/{event}")).json()
        assert (made["title"], made["description"], made["refId"], made["externalId"]) == ("Evening", "Long", "r-1", "x-1")
        assert (made["flowId"], made["roomId"], made["vodDrm"]) == (flow, room, True)
        assert (made["state"], made["mp4State"], [category["id"] for category in made["categories"]]) == (19, 2, [category])
        [job] = await jobs(http, event)
        assert (job["workflow"], job["queue_state"], job["parameters"]["generation"]) == ("compose", "queued", 1)
        assert job["parameters"]["playlist"]["items"][0]["properties"] == {"start": "00:00:01"}
        assert await of_event(inner, event) == ["registered", *STARTED]
        assert await history(inner, http, event) == ["composed", "generation_started"]

    async def test_a_known_event_is_composed_into_once(self, http: httpx.AsyncClient, inner: Core) -> None:
        opener, event = await source(http), (await add(http, Title="Evening"))["id"]
        body = {"event": {"id": event, "refId": "r"}, "playlist": {"items": [item(opener)]}}
        assert (await http.post("/api/compose/", json=body)).json() == event
        shown = (await http.get(f"/api/event/{event}")).json()
        assert (shown["title"], shown["refId"]) == ("Evening", "r"), "what is absent stays"
        before = await last(inner)
        assert_problem(await http.post("/api/compose/", json=body), 409)
        assert await last(inner) == before

    async def test_an_id_that_is_not_known_is_that_of_the_event(self, http: httpx.AsyncClient) -> None:
        key = str(uuid4())
        assert await composed(http, event={"id": key}) == key

    async def test_a_later_start_waits(self, http: httpx.AsyncClient, inner: Core) -> None:
        event = await composed(http, liveStreamStart=LATER)
        assert (await http.get(f"/api/compose/{event}")).json()["liveStreamStart"] == LATER
        assert await state(http, event) == (22, 0)
        changed = await http.put(f"/api/compose/event/{event}", json={"name": "b"})
        assert (changed.json()["name"], changed.json()["liveStreamStart"]) == ("b", LATER)
        assert await jobs(http, event) == []
        assert await history(inner, http, event) == ["composed", "playlist_replaced"]

    async def test_the_loudness_of_a_film_is_a_parameter_of_its_job(self, http: httpx.AsyncClient) -> None:
        event = await composed(http)
        answer = await http.put(f"/api/compose/event/{event}", json={"loudness": {"target": -16.5}})
        assert answer.json()["loudness"] == {"target": -16.5, "profile": "ebu-r128"}
        assert (await jobs(http, event))[0]["parameters"]["playlist"]["loudness"] == {"target": -16.5, "profile": "ebu-r128"}
        assert (await http.put(f"/api/compose/event/{event}", json={"loudness": {"profile": "A85"}})).status_code == 400
        assert (await http.put(f"/api/compose/event/{event}", json={"loudness": {"target": 0}})).status_code == 400
        assert (await http.put(f"/api/compose/event/{event}", json={"name": "b"})).json()["loudness"]["target"] == -16.5
        cleared = await http.put(f"/api/compose/event/{event}", json={"loudness": None})
        assert cleared.json()["loudness"] is None
        assert "loudness" not in (await jobs(http, event))[0]["parameters"]["playlist"]

    async def test_a_changed_playlist_replaces_the_job(self, http: httpx.AsyncClient, inner: Core) -> None:
        event = await composed(http)
        first = (await http.get(f"/api/compose/{event}")).json()
        answer = await http.put(f"/api/compose/event/{event}", json={"name": "b", "looped": "true"})
        assert (answer.status_code, answer.json()) == (200, {**first, "name": "b", "looped": True})
        assert [(job["queue_state"], job["parameters"]["generation"]) for job in await jobs(http, event)] == [
            ("queued", 2),
            ("broken", 1),
        ]
        before = await last(inner)
        again = await http.put(f"/api/compose/event/{event}", json=answer.json())
        assert (again.json(), again.headers["etag"]) == (answer.json(), answer.headers["etag"])
        assert await last(inner) == before
        assert_problem(await http.put(f"/api/compose/event/{event}", json={}, headers={"If-Match": '"99"'}), 412)
        assert await history(inner, http, event) == ["composed", "generation_started", "playlist_replaced", "generation_started"]

    async def test_what_a_film_is_not(self, http: httpx.AsyncClient, inner: Core) -> None:
        event, opener = await composed_for_encoder(http), await source(http)
        assert_problem(await http.put(f"/api/compose/event/{event}", json={"name": "b"}), 409)
        assert_problem(await http.put(f"/api/compose/event/{event}/drm/", json={"drmJson": "{}"}), 409)
        for key in (UNKNOWN, opener):
            assert_problem(await http.put(f"/api/compose/event/{key}", json={"name": "b"}), 404)
            assert_problem(await http.put(f"/api/compose/event/{key}/drm/", json={"drmJson": "{}"}), 404)
            assert_problem(await http.get(f"/api/compose/{key}"), 404)
        for body in ({"drmJson": "{"}, {"drmJson": 7}, {}):
            assert_problem(await http.put(f"/api/compose/event/{await composed(http)}/drm/", json=body), 400)

    async def test_drm_is_that_of_the_event(self, http: httpx.AsyncClient, inner: Core) -> None:
        event = await composed(http)
        answer = await http.put(f"/api/compose/event/{event}/drm/", json={"drmJson": '{"drm_provider": "x"}'})
        assert answer.status_code == 200
        assert (await http.get(f"/api/event/{event}")).json()["drmJson"] == '{"drm_provider": "x"}'
        assert await of_event(inner, event) == ["registered", *STARTED, "drm_configured"]

    async def test_a_playlist_is_deleted_and_its_job_broken_off(self, http: httpx.AsyncClient, inner: Core) -> None:
        event = await composed(http)
        playlist = (await http.get(f"/api/compose/{event}")).json()
        answer = await http.delete(f"/api/compose/{event}")
        assert (answer.status_code, answer.json()) == (200, playlist)
        assert await state(http, event) == (0, 0)
        assert [job["queue_state"] for job in await jobs(http, event)] == ["broken"]
        for key in (event, UNKNOWN):
            assert_problem(await http.delete(f"/api/compose/{key}"), 400)
        assert_problem(await http.get(f"/api/compose/{event}"), 404)
        assert await composed(http, event={"id": event}) == event
        assert (await jobs(http, event))[0]["parameters"]["generation"] == 2

    async def test_a_deleted_event_makes_none(self, http: httpx.AsyncClient, inner: Core) -> None:
        event = await composed(http)
        assert (await http.delete(f"/api/event/{event}")).status_code == 200
        assert [job["queue_state"] for job in await jobs(http, event)] == ["broken"]
        for answer in (await http.get(f"/api/compose/{event}"), await http.put(f"/api/compose/event/{event}", json={"name": "b"})):
            assert_problem(answer, 404)
        assert_problem(await http.delete(f"/api/compose/{event}"), 400)
        assert (await http.put(f"/api/event/restore/{event}")).json()["state"] == 23
        assert await history(inner, http, event) == ["composed", "generation_started", "generation_failed"]
        assert (await http.put(f"/api/compose/event/{event}", json={"name": "b"})).status_code == 200
        assert await state(http, event) == (19, 2)

    async def test_jobs_of_films_are_submitted_here_only(self, http: httpx.AsyncClient) -> None:
        event = await composed(http)
        [job] = await jobs(http, event)
        sent = {"job": {"workflow": "compose"}, "parameters": job["parameters"]}
        refused = await http.post("/engine/job", json=sent, headers={"client": "admin"})
        assert (refused.status_code, "compositions" in refused.json()["error"]) == (400, True)
        await http.put(f"/api/compose/event/{event}", json={"name": "b"})
        again = await http.post(f"/engine/jobs/{job['id']}/rerun", headers={"client": "admin"})
        assert again.status_code == 400
        assert [job["queue_state"] for job in await jobs(http, event)] == ["queued", "broken"]

    async def test_a_request_is_repeated_under_its_key(self, http: httpx.AsyncClient) -> None:
        body = {"playlist": {"items": [item(await source(http))]}}
        first, again = [await http.post("/api/compose/", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
        assert (first.status_code, first.json(), first.headers["location"]) == (
            again.status_code,
            again.json(),
            again.headers["location"],
        )
        assert len(await jobs(http, first.json())) == 1

    async def test_the_audit_shows_it_as_it_was(self, http: httpx.AsyncClient) -> None:
        event = await composed(http)
        key = (await http.get(f"/api/compose/{event}")).json()["id"]
        await http.put(f"/api/compose/event/{event}", json={"name": "b"})
        past = (await http.get(f"/api/audit/composition/{key}/state", params={"version": "2"})).json()["state"]
        assert (past["name"], past["id"]) == ("Evening", key)
        now = (await http.get(f"/api/audit/composition/{key}/state")).json()["state"]
        assert now == (await http.get(f"/api/compose/{event}")).json()


class TestEncoders:
    async def test_a_live_event_gets_its_playlist(self, http: httpx.AsyncClient, inner: Core) -> None:
        channel, opener = await composing_channel(http), await source(http)
        times = {
            "scheduledStart": "2031-02-01T10:00:00.000Z",
            "scheduledEnd": "2031-02-01T11:00:00.000Z",
            "scheduledProvisionAt": "2031-02-01T09:00:00.000Z",
            "scheduledTerminateAt": "2031-02-01T12:00:00.000Z",
        }
        flags = ("autoStart", "autoEnd", "autoPublish", "autoStartPublications", "autoProvision", "autoTerminate")
        items = [
            item(opener, properties={"start": 7, "Own": True}),
            {"type": "DIRECT_FULL_MP4", "value": "https://cdn.example.com/a.mp4?x=1"},
            {"type": 1, "value": "films/a.mp4", "markers": None},
        ]
        event = await http.post(
            "/api/compose/encoder/",
            json={
                "event": {"channelId": channel, "title": "Night", "drmJson": "{}", **times, **dict.fromkeys(flags, True)},
                "playlist": {"name": "Loop", "looped": True, "items": items},
            },
        )
        assert event.status_code == 201, event.text
        shown = (await http.get(f"/api/event/{event.json()}")).json()
        assert (shown["state"], shown["channelId"], shown["title"], shown["drmJson"]) == (0, channel, "Night", "{}")
        assert {name: shown[name] for name in times} == times
        assert all(shown[name] for name in (*flags[:4], "autoProvisionInfrastructure", "autoTerminateInfrastructure"))
        playlist = (await http.get(f"/api/compose/{event.json()}")).json()
        assert playlist["items"] == [
            {"type": 0, "value": opener, "properties": {"start": 7, "Own": True}, "markers": None},
            {"type": 1, "value": "https://cdn.example.com/a.mp4?x=1", "properties": {}, "markers": None},
            {"type": 1, "value": "films/a.mp4", "properties": {}, "markers": None},
        ]
        assert (playlist["looped"], playlist["liveStreamStart"]) == (True, None)
        assert await of_event(inner, event.json()) == ["registered"]
        assert await history(inner, http, event.json()) == ["composed"]
        assert await jobs(http, event.json()) == []

    async def test_a_playlist_is_added_or_replaced(self, http: httpx.AsyncClient, inner: Core) -> None:
        opener = await source(http)
        event = (await add(http, Title="Night", ChannelId=await composing_channel(http)))["id"]
        path = f"/api/compose/encoder/event/{event}"
        assert (await http.put(path, json={"name": "a", "items": [item(opener)]})).status_code == 200
        assert (await http.put(f"/api/event/state/{event}", json={"state": 2})).status_code == 200
        assert (await http.put(path, json={"looped": True})).json()["looped"] is True
        assert await history(inner, http, event) == ["composed", "playlist_replaced"]
        assert_problem(await http.put(f"/api/compose/encoder/event/{await composed(http)}", json={"name": "b"}), 409)
        assert_problem(await http.put(f"/api/compose/encoder/event/{UNKNOWN}", json={"items": [item(opener)]}), 404)

    async def test_a_channel_must_be_there_and_compose(self, http: httpx.AsyncClient, inner: Core) -> None:
        opener, plain = await source(http), await add_channel(http)
        before = await last(inner)
        playlist = {"items": [item(opener)]}
        for event, status in (({}, 400), ({"channelId": UNKNOWN}, 400), ({"channelId": plain}, 409)):
            assert_problem(await http.post("/api/compose/encoder/", json={"event": event, "playlist": playlist}), status)
        assert_problem(await http.put(f"/api/compose/encoder/event/{opener}", json=playlist), 400)  # it shows itself
        assert await last(inner) == before


class TestClones:
    async def test_a_copy_is_made_at_once(self, http: httpx.AsyncClient, inner: Core) -> None:
        event, target = await composed(http, liveStreamStart=LATER), (await add(http, Title="Copy"))["id"]
        answer = await http.get(f"/api/compose/clone/{event}", params={"targetEventId": target})
        assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
        original = (await http.get(f"/api/compose/{event}")).json()
        assert answer.json() == {**original, "id": answer.json()["id"], "liveStreamStart": None}
        assert answer.json()["id"] != original["id"]
        assert await state(http, target) == (19, 2)
        await http.put(f"/api/compose/event/{event}", json={"name": "b"})
        again = await http.get(f"/api/compose/clone/{event}", params={"targetEventId": target})
        assert again.json() == {**answer.json(), "name": "b"}
        assert [job["queue_state"] for job in await jobs(http, target)] == ["queued", "broken"]
        assert await history(inner, http, target) == ["composed", "generation_started", "cloned", "generation_started"]

    async def test_what_is_not_there_or_does_not_fit(self, http: httpx.AsyncClient, inner: Core) -> None:
        opener = await source(http)
        event, encoder = await composed(http, item(opener)), await composed_for_encoder(http)
        for entry, target, status in (
            (event, UNKNOWN, 404),
            (UNKNOWN, event, 404),
            (opener, event, 404),
            (event, encoder, 409),
            (event, opener, 400),
            (event, "x", 400),
        ):
            assert_problem(await http.get(f"/api/compose/clone/{entry}", params={"targetEventId": target}), status)
        assert_problem(await http.get(f"/api/compose/clone/{event}"), 400)


def nested(depth: int) -> Any:
    result: Any = 1
    for _ in range(depth):
        result = {"x": result}
    return result


class TestHostileBodies:
    @pytest.mark.parametrize(
        ("items", "fields"),
        [
            (None, ["playlist.items"]),
            ([], ["playlist.items"]),
            ({}, ["playlist.items"]),
            ([7], ["playlist.items[0]"]),
            ([{"value": "OPENER"}], ["playlist.items[0].type"]),
            ([{"type": 0}], ["playlist.items[0].value"]),
            ([{"type": None, "value": "OPENER"}], ["playlist.items[0].type"]),
            ([{"type": 3, "value": "OPENER"}], ["playlist.items[0].type"]),
            ([{"type": 1, "value": "a.mp4"}], ["playlist.items[0].type"]),
            ([{"type": 2, "value": "a.mp4"}], ["playlist.items[0].type"]),
            ([{"type": 0, "value": 7}], ["playlist.items[0].value"]),
            ([{"type": 0, "value": "x"}], ["playlist.items[0].value"]),
            ([{"type": 0, "value": UNKNOWN}], ["playlist.items[0].value"]),
            ([{"type": 0, "value": "EVENT"}], ["playlist.items[0].value"]),
            ([{"type": 0, "value": "OPENER", "properties": []}], ["playlist.items[0].properties"]),
            ([{"type": 0, "value": "OPENER", "properties": {"x": nested(60)}}], ["playlist.items[0].properties"]),
            ([{"type": 0, "value": "OPENER", "properties": {"start": 5}}], ["playlist.items[0].properties.start"]),
            ([{"type": 0, "value": "OPENER", "properties": {"start": "9", "end": "8"}}], None),
            ([{"type": 0, "value": "OPENER", "markers": [{}]}], None),
            ([{"type": 0, "value": "OPENER", "markers": [{"startAt": 5, "duration": "00:00:01", "type": 0}]}], None),
            (
                [{"type": 0, "value": "OPENER", "markers": [{"startAt": "00:00:01", "duration": "1", "type": 0}]}],
                ["playlist.items[0].markers[0].duration"],
            ),
            ([{"type": 0, "value": "OPENER"}] * 1001, ["playlist.items"]),
            ([{"type": 0, "value": UNKNOWN}] * 1000, None),
        ],
    )
    async def test_bad_playlists_change_nothing(
        self, http: httpx.AsyncClient, inner: Core, items: Any, fields: list[str] | None
    ) -> None:
        opener, event = await source(http), (await add(http, Title="Evening"))["id"]
        text = json.dumps({"event": {"id": event}, "playlist": {"items": items}})
        before = await last(inner)
        answer = await http.post(
            "/api/compose/",
            content=text.replace('"OPENER"', f'"{opener}"').replace('"EVENT"', f'"{event}"'),
            headers={"content-type": "application/json"},
        )
        assert_problem(answer, 400)
        assert 0 < len(answer.json()["errors"]) <= 50
        if fields is not None:
            assert [error["field"] for error in answer.json()["errors"]] == fields
        assert await last(inner) == before

    @pytest.mark.parametrize("body", ["", "[]", "null", "{}", '{"playlist": null}', '{"event": [], "playlist": {"items": []}}'])
    @pytest.mark.parametrize("path", ["", "encoder/"])
    async def test_bad_bodies(self, http: httpx.AsyncClient, inner: Core, body: str, path: str) -> None:
        before = await last(inner)
        answer = await http.post(f"/api/compose/{path}", content=body, headers={"content-type": "application/json"})
        assert_problem(answer, 400)
        assert await last(inner) == before

    async def test_a_thousand_items_with_all_that_they_may_have(self, http: httpx.AsyncClient) -> None:
        opener = await source(http)
        first = {
            "properties": {"start": "2031-01-02T19:00:00.000Z", "end": "2031-01-02T20:00:00.000+00:00", "frameAccurate": True},
            "markers": [{"startAt": "2031-01-02T19:30:00.000Z", "duration": "00:00:30", "frameAccurate": False, "type": 1}],
        }
        event = await composed(http, *[item(opener, **first)] * 1000)
        shown = (await http.get(f"/api/compose/{event}")).json()
        assert shown["items"] == [item(opener, **first)] * 1000
        [job] = await jobs(http, event)
        job = (await http.get(f"/engine/jobs/{job['id']}")).json()
        assert len(job["parameters"]["playlist"]["items"]) == 1000
