"""Comparing channels with infrastructure profiles over HTTP."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add_channel, add_profile, assert_problem, fields_of, last

COMPARE = "/api/provision/compare"


async def channel_with(http: httpx.AsyncClient, *resources: str) -> str:
    return await add_channel(http, configurationJson=json.dumps({"encoders": [{"resource": name} for name in resources]}))


async def profile_with(http: httpx.AsyncClient, name: str, *resources: str) -> str:
    listed = [{"name": resource, "type": "encoder"} for resource in resources]
    return await add_profile(http, name, {"request": {"resources": listed}, "workflow": {}})


async def compared(http: httpx.AsyncClient, channel: str, profile: str) -> dict[str, Any]:
    answer = await http.get(f"{COMPARE}/", params={"channelId": channel, "InfrastructureProfileId": profile})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def test_undefined_and_unused_resources_are_named(http: httpx.AsyncClient, inner: Core) -> None:
    channel = await channel_with(http, "a", "b", "a")
    before = await last(inner)
    for name, resources, undefined, unused in [
        ("equal", ["b", "a"], [], []),
        ("more", ["c", "a", "b"], [], ["c"]),
        ("less", ["a"], ["b"], []),
        ("other", ["A", "c"], ["a", "b"], ["A", "c"]),
        ("empty", [], ["a", "b"], []),
    ]:
        profile = await profile_with(http, name, *resources)
        before += 1
        assert await compared(http, channel, profile) == {
            "channelId": channel,
            "infrastructureProfileId": profile,
            "isValid": not undefined,
            "isOptimal": not undefined and not unused,
            "undefinedChannelResources": undefined,
            "unusedInfrastructureResources": unused,
        }
    assert await last(inner) == before


async def test_origins_count_and_a_channel_without_resources_is_valid(http: httpx.AsyncClient) -> None:
    point = {"primaryPublishingPoint": {"resource": "o1"}, "secondaryPublishingPoint": {"resource": "o2"}}
    encoder = {"resource": "e", "streamingServer": {"streamingServerSpecific": point}}
    channel = await add_channel(http, configurationJson=json.dumps({"encoders": [encoder]}))
    profile = await profile_with(http, "p", "e", "o1")
    assert (await compared(http, channel, profile))["undefinedChannelResources"] == ["o2"]
    plain = await compared(http, await add_channel(http), profile)
    assert (plain["isValid"], plain["isOptimal"], plain["unusedInfrastructureResources"]) == (True, False, ["e", "o1"])


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("", ["less", "more", "same"]),
        ("?onlyValid=true", ["more", "same"]),
        ("?ONLYOPTIMAL=1&noCache=true", ["same"]),
        ("?onlyValid=false&onlyOptimal=false", ["less", "more", "same"]),
        ("?onlyValid=true&onlyOptimal=true", ["same"]),
    ],
)
async def test_a_channel_is_compared_with_all_profiles_by_name(http: httpx.AsyncClient, asked: str, names: list[str]) -> None:
    channel = await channel_with(http, "a", "b")
    profiles = {
        "same": await profile_with(http, "same", "a", "b"),
        "less": await profile_with(http, "less", "a"),
        "more": await profile_with(http, "more", "a", "b", "c"),
    }
    gone = await profile_with(http, "gone", "a", "b")
    await http.delete(f"/api/infrastructureprofile/{gone}")
    answer = await http.get(f"{COMPARE}/{channel}{asked}")
    assert answer.json() == [await compared(http, channel, profiles[name]) for name in names]


async def test_without_profiles_the_list_is_empty(http: httpx.AsyncClient) -> None:
    assert (await http.get(f"{COMPARE}/{await add_channel(http)}/")).json() == []


async def test_both_ids_are_required_and_must_exist(http: httpx.AsyncClient) -> None:
    channel, profile = await add_channel(http), await add_profile(http)
    assert fields_of(await http.get(COMPARE)) == ["channelId", "infrastructureProfileId"]
    assert fields_of(await http.get(COMPARE, params={"channelId": channel})) == ["infrastructureProfileId"]
    assert fields_of(await http.get(COMPARE, params={"channelId": "x", "infrastructureProfileId": profile})) == ["channelId"]
    assert_problem(await http.get(COMPARE, params={"channelId": UNKNOWN, "infrastructureProfileId": profile}), 404)
    assert_problem(await http.get(COMPARE, params={"channelId": channel, "infrastructureProfileId": UNKNOWN}), 404)
    assert_problem(await http.get(f"{COMPARE}/{UNKNOWN}"), 404)
    assert fields_of(await http.get(f"{COMPARE}/x")) == ["channelId"]
    assert fields_of(await http.get(f"{COMPARE}/{channel}?onlyValid=maybe")) == ["onlyValid"]
