"""Channels over HTTP: the response and the appended events."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import AWKWARD, UNKNOWN, add, add_channel, assert_problem, fields_of, last, logged, topics
from tests.domain.channel.texts_given import CHANNEL
from tests.support.clock import HandClock


async def shown(http: httpx.AsyncClient, key: str) -> dict[str, Any]:
    answer = await http.get(f"/api/channel/{key}")
    assert answer.status_code == 200, answer.text
    channel: dict[str, Any] = answer.json()
    return channel


async def test_a_channel_is_added_changed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    text = '{ "encoders" : [{"name": "enc-1", "resource":"e"}], "of the site": 1.50 }'
    added = await http.post("/api/channel/", json={"name": "One", "referenceId": "c/1", "configurationJson": text})
    channel = added.json()
    assert (added.status_code, added.headers["etag"]) == (200, '"1"')
    assert channel == {"id": channel["id"], "name": "One", "referenceId": "c/1", "configurationJson": text}
    assert await shown(http, channel["id"]) == channel

    changed = await http.put(f"/api/channel/{channel['id']}/", json={"NAME": "Two"})
    assert (changed.status_code, changed.json()) == (200, {**channel, "name": "Two"})
    assert await shown(http, channel["id"]) == changed.json()
    assert await topics(inner, f"channel:{channel['id']}") == ["channel.registered", "channel.amended"]
    assert (await logged(inner, f"channel:{channel['id']}"))[1].data.keys() == {"timestamp", "name"}


async def test_only_the_name_is_needed_and_the_same_change_twice_leaves_one_event(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_channel(http)
    assert await shown(http, key) == {"id": key, "name": "Main channel", "referenceId": "", "configurationJson": "{}"}
    body = {"name": "x", "configurationJson": json.dumps(CHANNEL)}
    first, second = [await http.put(f"/api/channel/{key}", json=body) for _ in range(2)]
    assert (first.headers["etag"], second.headers["etag"]) == ('"2"', '"2"')
    assert first.json() == second.json()
    assert len(await topics(inner, f"channel:{key}")) == 2


async def test_null_clears_what_can_be_cleared(http: httpx.AsyncClient) -> None:
    key = await add_channel(http, referenceId="r", configurationJson=json.dumps(CHANNEL))
    cleared = await http.put(f"/api/channel/{key}", json={"name": None, "referenceId": None, "configurationJson": None})
    assert cleared.json() == {"id": key, "name": "Main channel", "referenceId": "", "configurationJson": "{}"}
    made = await http.post("/api/channel/", json={"name": "x", "referenceId": "", "configurationJson": None})
    assert (made.json()["referenceId"], made.json()["configurationJson"]) == ("", "{}")
    assert (await http.get("/api/channel/reference?id=r")).status_code == 404


async def test_bad_input_is_400_at_its_field_and_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_channel(http)
    before = await last(inner)
    wrong: list[tuple[Any, str]] = [
        ({"name": "  "}, "name"),
        ({"name": 7}, "name"),
        ({"name": "x", "referenceId": []}, "referenceId"),
        ({"name": "x", "configurationJson": {}}, "configurationJson"),
        ({"name": "x", "configurationJson": ""}, "configurationJson"),
        ({"name": "x", "configurationJson": "{"}, "configurationJson"),
        ({"name": "x", "configurationJson": "[]"}, "configurationJson"),
        ({"name": "x", "configurationJson": '{"encoders": [{}, {"name": 1}]}'}, "configurationJson.encoders[1].name"),
        (
            {"name": "x", "configurationJson": '{"encoders": [{"outputUrls": [{"streamProtocol": "RTMP"}]}]}'},
            "configurationJson.encoders[0].outputUrls[0].streamProtocol",
        ),
        (
            {"name": "x", "configurationJson": json.dumps({"rampServers": [{"playerAddress": "http://" + "a" * 2042}]})},
            "configurationJson.rampServers[0].playerAddress",
        ),
        ({"name": "x", "configurationJson": '{"rampServers": [{"apiKey": 7}]}'}, "configurationJson.rampServers[0].apiKey"),
    ]
    for body, field in wrong:
        for answer in (await http.post("/api/channel/", json=body), await http.put(f"/api/channel/{key}", json=body)):
            assert fields_of(answer) == [field]
    for body in ({}, {"name": None}):
        assert fields_of(await http.post("/api/channel/", json=body)) == ["name"]
    assert fields_of(await http.put("/api/channel/x", json={"name": "x"})) == ["id"]
    assert await last(inner) == before


async def test_unknown_channels_are_404(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for answer in (
        await http.get(f"/api/channel/{UNKNOWN}"),
        await http.put(f"/api/channel/{UNKNOWN}", json={"configurationJson": json.dumps(CHANNEL)}),
        await http.delete(f"/api/channel/{UNKNOWN}"),
        await http.get("/api/channel/reference?id=r"),
    ):
        assert_problem(answer, 404)
    assert fields_of(await http.get("/api/channel/reference?id=")) == ["id"]
    assert fields_of(await http.get("/api/channel/reference")) == ["id"]
    assert await last(inner) == before


async def test_references_are_not_unique_and_the_latest_channel_wins(http: httpx.AsyncClient, clock: HandClock) -> None:
    for text in AWKWARD:
        old = await add_channel(http, referenceId=text)
        clock.forward(seconds=1)
        new = await add_channel(http, referenceId=text)
        for slash in ("", "/"):
            answer = await http.get(f"/api/channel/reference{slash}", params={"id": text, "noCache": "true"})
            assert (answer.json()["id"], answer.json()["referenceId"], answer.headers["etag"]) == (new, text, '"1"')
        await http.delete(f"/api/channel/{new}")
        assert (await http.get("/api/channel/reference", params={"id": text})).json()["id"] == old


async def test_channels_are_listed_by_name(http: httpx.AsyncClient) -> None:
    keys = {name: await add_channel(http, name) for name in ("Cellar", "Attic", "Bar")}
    listed = (await http.get("/api/channel?noCache=1")).json()
    assert [record["name"] for record in listed] == ["Attic", "Bar", "Cellar"]
    assert listed == [await shown(http, keys[name]) for name in ("Attic", "Bar", "Cellar")]


async def test_a_channel_in_use_is_not_deleted_and_its_users_are_named(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_channel(http, configurationJson=json.dumps(CHANNEL))
    last_seen = await shown(http, key)
    event = await add(http, Title="Final", ChannelId=key)
    assert (event["channelId"], event["channel"]) == (key, "Main channel")
    refused = await http.delete(f"/api/channel/{key}")
    assert_problem(refused, 409)
    assert event["id"] in refused.json()["detail"]
    assert_problem(await http.delete(f"/api/channel/{key}", headers={"If-Match": '"9"'}), 412)

    await http.delete(f"/api/event/{event['id']}")
    deleted = await http.delete(f"/api/channel/{key}")
    assert (deleted.status_code, deleted.json()) == (200, last_seen)
    assert await topics(inner, f"channel:{key}") == ["channel.registered", "channel.deleted"]
    assert_problem(await http.get(f"/api/channel/{key}"), 404)
    assert_problem(await http.delete(f"/api/channel/{key}"), 404)
    assert_problem(await http.put(f"/api/channel/{key}", json={"name": "x"}), 404)
    assert fields_of(await http.post("/api/event/", json={"ChannelId": key})) == ["channelId"]
    assert (await http.get("/api/channel/")).json() == []


async def test_a_link_to_a_channel_that_is_being_deleted_never_dangles(http: httpx.AsyncClient) -> None:
    for _ in range(10):
        key = await add_channel(http)
        deleted, taken = await asyncio.gather(
            http.delete(f"/api/channel/{key}"), http.post("/api/event/", json={"Title": "x", "ChannelId": key})
        )
        assert (deleted.status_code, taken.status_code) in ((200, 400), (409, 200))


async def test_a_write_with_if_match_that_no_longer_matches_is_412(http: httpx.AsyncClient) -> None:
    key = await add_channel(http)
    path, stale = f"/api/channel/{key}", {"If-Match": '"1"'}
    await http.put(path, json={"name": "x"}, headers=stale)
    assert_problem(await http.put(path, json={"name": "y"}, headers=stale), 412)
    assert (await shown(http, key))["name"] == "x"


@pytest.mark.parametrize("at", ["version=1", "version=2"])
async def test_a_channel_is_shown_as_it_once_was(http: httpx.AsyncClient, at: str) -> None:
    key = await add_channel(http, configurationJson=json.dumps(CHANNEL))
    then = {"version=1": await shown(http, key)}
    await http.put(f"/api/channel/{key}", json={"name": "x", "configurationJson": "{}"})
    then["version=2"] = await shown(http, key)
    await http.delete(f"/api/channel/{key}")
    assert (await http.get(f"/api/audit/channel/{key}/state?{at}")).json()["state"] == then[at]
