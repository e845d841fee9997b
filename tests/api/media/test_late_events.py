"""Events that are late to start or to stop, over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from domain.event.values import EventState
from domain.kernel.clock import iso
from tests.api.asking import add, fields_of
from tests.support.clock import NOON, HandClock

ADDRESS = "/api/health/live/stream/"
BUFFER = timedelta(minutes=5)
JUST_LATE = iso(NOON - BUFFER - timedelta(milliseconds=1))
ON_DEMAND = ["INSTANT_VOD", "INSTANT_VOD_BACKUP", "VOD_INGESTING", "VOD_PRIVATE", "VOD_PUBLIC", "REMIX_PRIVATE", "REMIX_PUBLIC"]
ON_DEMAND += ["ARCHIVER_PRIVATE", "ARCHIVER_PUBLIC", "COMPOSE_PUBLIC", "COMPOSE_PRIVATE"]
LIVE = ["LIVE_UNPUBLISHED", "LIVE_PUBLISHED", "LIVE_STARTING"]


async def late(http: httpx.AsyncClient, call: str, **query: Any) -> dict[str, str]:
    answer = await http.get(f"{ADDRESS}{call}/", params=query)
    result: dict[str, str] = answer.json()
    assert answer.status_code == (415 if result else 200), answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    return result


async def scheduled(http: httpx.AsyncClient, **fields: Any) -> str:
    return str((await add(http, **{"scheduledStart": JUST_LATE, "scheduledEnd": iso(NOON + BUFFER), **fields}))["id"])


async def test_an_event_that_was_to_start_is_named_with_its_start(http: httpx.AsyncClient) -> None:
    assert await late(http, "notstarted") == {}
    key = await scheduled(http)
    endless = await scheduled(http, scheduledEnd=None, autoStart=True)
    assert await late(http, "notstarted") == {key: JUST_LATE, endless: JUST_LATE}


@pytest.mark.parametrize(
    "fields",
    [
        {"scheduledStart": None},
        {"scheduledStart": iso(NOON - BUFFER)},
        {"scheduledStart": iso(NOON + BUFFER)},
        {"scheduledEnd": iso(NOON)},
        {"scheduledEnd": JUST_LATE},
    ],
)
async def test_others_are_not_late_to_start(http: httpx.AsyncClient, fields: dict[str, Any]) -> None:
    await scheduled(http, **fields)
    assert await late(http, "notstarted") == {}


@pytest.mark.parametrize("state", [state.name for state in EventState])
async def test_an_event_is_late_to_start_in_any_state_that_is_neither_live_nor_on_demand(
    http: httpx.AsyncClient, state: str
) -> None:
    key = await scheduled(http)
    assert (await http.put(f"/api/event/state/{key}", json={"state": state})).status_code == 200
    assert await late(http, "notstarted") == ({} if state in [*LIVE, *ON_DEMAND] else {key: JUST_LATE})


async def test_an_event_that_was_live_is_not_late_to_start_again(http: httpx.AsyncClient) -> None:
    key = await scheduled(http)
    for state in ("LIVE_PUBLISHED", "PRE_LIVE"):
        await http.put(f"/api/event/state/{key}", json={"state": state})
    assert await late(http, "notstarted") == {}
    await http.delete(f"/api/event/{await scheduled(http)}")
    assert await late(http, "notstarted") == {}


@pytest.mark.parametrize("state", [state.name for state in EventState])
async def test_a_live_event_that_was_to_end_is_named_with_its_end(http: httpx.AsyncClient, state: str) -> None:
    key = await scheduled(http, scheduledEnd=JUST_LATE, scheduledStart=None)
    assert (await http.put(f"/api/event/state/{key}", json={"state": state})).status_code == 200
    assert await late(http, "notstopped") == ({key: JUST_LATE} if state in LIVE else {})


@pytest.mark.parametrize("end", [None, iso(NOON - BUFFER), iso(NOON + BUFFER)])
async def test_others_are_not_late_to_stop(http: httpx.AsyncClient, end: str | None) -> None:
    key = await scheduled(http, scheduledEnd=end)
    await http.put(f"/api/event/state/{key}", json={"state": 2})
    assert await late(http, "notstopped") == {}
    await http.delete(f"/api/event/{key}")
    assert await late(http, "notstopped", buffer=0) == {}


async def test_the_buffer_is_in_minutes(http: httpx.AsyncClient, clock: HandClock) -> None:
    start = await scheduled(http, scheduledEnd=None)
    end = await scheduled(http, scheduledEnd=JUST_LATE)
    await http.put(f"/api/event/state/{end}", json={"state": 1})
    for call, key in (("notstarted", start), ("notstopped", end)):
        assert await late(http, call, buffer=6) == {}
        assert await late(http, call, buffer=1_000_000) == {}
        assert await late(http, call, buffer=0) == {key: JUST_LATE}
    clock.forward(minutes=1)
    assert await late(http, "notstarted", buffer=6) == {start: JUST_LATE}
    assert await late(http, "notstopped", buffer=6) == {end: JUST_LATE}


@pytest.mark.parametrize("call", ["notstarted", "notstopped"])
@pytest.mark.parametrize("buffer", ["-1", "1000001", "a", "1.5", ""])
async def test_a_bad_buffer_is_400(http: httpx.AsyncClient, call: str, buffer: str) -> None:
    assert fields_of(await http.get(f"{ADDRESS}{call}/", params={"buffer": buffer})) == ["buffer"]
