"""Events that are late to become video on demand, over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, VodWorkflow
from domain.kernel.clock import iso
from tests.api.asking import add, add_flow, fields_of
from tests.support.clock import NOON, HandClock
from tests.support.feeding import do

ADDRESS = "/api/health/live/stream/notlive2vod/"
DAY = timedelta(hours=24)
TIME = iso(NOON - DAY - timedelta(milliseconds=1))
ON_DEMAND = ["INSTANT_VOD", "INSTANT_VOD_BACKUP", "VOD_INGESTING", "VOD_PRIVATE", "VOD_PUBLIC", "REMIX_PRIVATE", "REMIX_PUBLIC"]
ON_DEMAND += ["ARCHIVER_PRIVATE", "ARCHIVER_PUBLIC", "COMPOSE_PUBLIC", "COMPOSE_PRIVATE"]


async def was_live(
    http: httpx.AsyncClient, inner: Core, state: str = "STOPPED", *, workflow: VodWorkflow = VodWorkflow.CAPTURE, **fields: Any
) -> str:
    """An Event that was live, and whose capture was asked for; it was to end a day and a millisecond ago."""
    key = (await add(http, eventState="LIVE_PUBLISHED", **{"scheduledEnd": TIME, **fields}))["id"]
    await do(inner, MediaEvent.start_vod_job.on(UUID(key), 7, workflow))
    assert (await http.put(f"/api/event/state/{key}", json={"state": state})).status_code == 200
    return str(key)


async def late(http: httpx.AsyncClient, **query: Any) -> dict[str, str]:
    answer = await http.get(ADDRESS, params=query)
    result: dict[str, str] = answer.json()
    assert answer.status_code == (415 if result else 200), answer.text
    assert answer.headers["content-type"] == "application/json"
    return result


async def test_an_event_that_should_be_video_on_demand_is_named_with_its_end(http: httpx.AsyncClient, inner: Core) -> None:
    assert await late(http) == {}
    key = await was_live(http, inner)
    assert await late(http) == {key: TIME}


@pytest.mark.parametrize("state", [state.name for state in EventState])
async def test_only_video_on_demand_is_in_time(http: httpx.AsyncClient, inner: Core, state: str) -> None:
    key = await was_live(http, inner, state)
    assert await late(http) == ({} if state in ON_DEMAND else {key: TIME})


@pytest.mark.parametrize("fields", [{"workflow": VodWorkflow.PACKAGE}, {"scheduledEnd": None}, {"scheduledEnd": iso(NOON - DAY)}])
async def test_others_are_not_late(http: httpx.AsyncClient, inner: Core, fields: dict[str, Any]) -> None:
    await was_live(http, inner, **fields)
    assert await late(http) == {}


async def test_an_event_that_was_never_live_or_is_deleted_is_not_late(http: httpx.AsyncClient, inner: Core) -> None:
    await add(http, flowId=await add_flow(http), scheduledEnd=TIME, eventState="STOPPED")
    await http.delete(f"/api/event/{await was_live(http, inner)}")
    assert await late(http) == {}


async def test_the_buffer_is_in_hours(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    key = await was_live(http, inner)
    assert await late(http, buffer=25) == {}
    assert await late(http, buffer=1_000_000) == {}
    clock.forward(hours=1)
    assert await late(http, buffer=25) == await late(http, buffer=0) == {key: TIME}


@pytest.mark.parametrize("buffer", ["-1", "1000001", "a", "1.5", ""])
async def test_a_bad_buffer_is_400(http: httpx.AsyncClient, buffer: str) -> None:
    assert fields_of(await http.get(ADDRESS, params={"buffer": buffer})) == ["buffer"]
