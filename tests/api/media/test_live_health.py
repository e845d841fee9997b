"""Events that are late to become video on demand, over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from domain.kernel.clock import iso
from domain.media_event.values import EventState
from tests.api.asking import add, add_flow, fields_of
from tests.conftest import NOON, HandClock

ADDRESS = "/api/health/live/stream/notlive2vod/"
DAY = timedelta(hours=24)
TIME = iso(NOON - DAY - timedelta(milliseconds=1))
ON_DEMAND = ["INSTANT_VOD", "INSTANT_VOD_BACKUP", "VOD_INGESTING", "VOD_PRIVATE", "VOD_PUBLIC", "REMIX_PRIVATE", "REMIX_PUBLIC"]
ON_DEMAND += ["ARCHIVER_PRIVATE", "ARCHIVER_PUBLIC", "COMPOSE_PUBLIC", "COMPOSE_PRIVATE"]


async def was_live(http: httpx.AsyncClient, state: str = "STOPPED", **fields: Any) -> str:
    """An Event with a flow that was live; it was to end a day and a millisecond ago."""
    given = {"flowId": await add_flow(http), "scheduledEnd": TIME, **fields}
    key = (await add(http, eventState="LIVE_PUBLISHED", **given))["id"]
    assert (await http.put(f"/api/event/state/{key}", json={"state": state})).status_code == 200
    return str(key)


async def late(http: httpx.AsyncClient, **query: Any) -> dict[str, str]:
    answer = await http.get(ADDRESS, params=query)
    found: dict[str, str] = answer.json()
    assert answer.status_code == (415 if found else 200), answer.text
    assert answer.headers["content-type"] == "application/json"
    return found


async def test_an_event_that_should_be_video_on_demand_is_named_with_its_end(http: httpx.AsyncClient) -> None:
    assert await late(http) == {}
    key = await was_live(http)
    assert await late(http) == {key: TIME}


@pytest.mark.parametrize("state", [state.name for state in EventState])
async def test_only_video_on_demand_is_in_time(http: httpx.AsyncClient, state: str) -> None:
    key = await was_live(http, state)
    assert await late(http) == ({} if state in ON_DEMAND else {key: TIME})


@pytest.mark.parametrize("fields", [{"flowId": None}, {"scheduledEnd": None}, {"scheduledEnd": iso(NOON - DAY)}])
async def test_others_are_not_late(http: httpx.AsyncClient, fields: dict[str, Any]) -> None:
    await was_live(http, **fields)
    assert await late(http) == {}


async def test_an_event_that_was_never_live_or_is_deleted_is_not_late(http: httpx.AsyncClient) -> None:
    await add(http, flowId=await add_flow(http), scheduledEnd=TIME, eventState="STOPPED")
    await http.delete(f"/api/event/{await was_live(http)}")
    assert await late(http) == {}


async def test_the_buffer_is_in_hours(http: httpx.AsyncClient, clock: HandClock) -> None:
    key = await was_live(http)
    assert await late(http, buffer=25) == {}
    assert await late(http, buffer=1_000_000) == {}
    clock.forward(hours=1)
    assert await late(http, buffer=25) == await late(http, buffer=0) == {key: TIME}


@pytest.mark.parametrize("buffer", ["-1", "1000001", "a", "1.5", ""])
async def test_a_bad_buffer_is_400(http: httpx.AsyncClient, buffer: str) -> None:
    assert fields_of(await http.get(ADDRESS, params={"buffer": buffer})) == ["buffer"]
