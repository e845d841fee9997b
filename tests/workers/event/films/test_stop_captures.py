"""An Event whose flow has `captureOnStop` is captured once for each stop; if it is not, its log gives the reason."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import (
    AddOrUpdateEvent,
)
from domain.event.values import EventState, Trigger, VodJobEnd
from domain.job.handlers import NewJob
from domain.kernel.ports import Invocation
from domain.record.kinds.channel import Channel
from domain.record.kinds.flow import Flow
from tests.domain.channel.texts_given import FLOW
from tests.projections.log.helpers import rows
from tests.support.clock import HandClock
from tests.support.feeding import configured, do, record
from tests.workers.event.films.following import fed, followed, jobs_of, worker

MAIN, CAPTURED, PLAIN, SHOWN, EVENT = UUID(int=101), UUID(int=201), UUID(int=202), UUID(int=203), UUID(int=1)
ORIGIN = "https://origin.test/live/a.m3u8"


@pytest.fixture
async def inner(inner: Core) -> Core:
    stream = {"streamProtocol": "HLS", "liveOriginPrimaryUrl": ORIGIN}
    await record(inner, Channel, MAIN.int, **configured("main", json.dumps({"encoders": [{"outputUrls": [stream]}]})))
    first = FLOW["flows"][0]
    both = {"captureOnStop": True, "instantVod": True}
    for key, more in ((CAPTURED, {"captureOnStop": True}), (PLAIN, {"captureOnStop": False}), (SHOWN, both)):
        await record(inner, Flow, key.int, **configured(f"flow {key.int}", json.dumps({"flows": [{**first, **more}]})))
    return inner


async def live(inner: Core, **changes: Any) -> None:
    given = {"channel_id": MAIN, "flow_id": CAPTURED, **changes}
    await do(inner, AddOrUpdateEvent(EVENT, given, state=EventState.LIVE_PUBLISHED, new=True))


async def stop(inner: Core) -> None:
    await do(inner, MediaEvent.change_state.on(EVENT, EventState.STOPPED, trigger=Trigger.OPERATOR))


def captures(inner: Core) -> list[dict[str, Any]]:
    return [parameters for (parameters,) in rows(inner.database.conninfo, "SELECT parameters::json FROM job_view ORDER BY id")]


def notes(inner: Core) -> list[str]:
    return [message for (message,) in rows(inner.database.conninfo, "SELECT message FROM logbook WHERE subject = %s", str(EVENT))]


@pytest.mark.parametrize("how", ["state", "force", "schedule"])
async def test_an_event_is_captured_when_it_stops(inner: Core, clock: HandClock, how: str) -> None:
    end = inner.clock()
    await live(inner, **({"auto_end": True, "scheduled_end": end} if how == "schedule" else {}))
    clock.forward(hours=1)
    stopped = inner.clock()
    match how:
        case "state":
            await stop(inner)
        case "force":
            await do(inner, MediaEvent.force_stop.on(EVENT))
        case "schedule":
            await do(inner, AddOrUpdateEvent(EVENT, {"scheduled_end": stopped}))
            await do(inner, MediaEvent.end_on_schedule.on(EVENT, stopped))
    await followed(inner)
    [capture] = captures(inner)
    assert capture["content_id"] == str(EVENT)
    assert capture["sources"] == [ORIGIN]
    assert (capture["start"], capture["end"]) == (_text(end), _text(stopped))
    assert rows(inner.database.conninfo, "SELECT state FROM event_view WHERE id = %s", EVENT) == [(int(EventState.VOD_INGESTING),)]
    assert notes(inner) == []


async def test_the_recorded_stream_is_shown_while_it_is_captured(inner: Core, clock: HandClock) -> None:
    await live(inner, flow_id=SHOWN)
    clock.forward(hours=1)
    await stop(inner)
    for _ in range(2):
        await followed(inner)
        shown = rows(inner.database.conninfo, "SELECT state FROM event_view WHERE id = %s", EVENT)
        assert (shown, len(captures(inner))) == ([(int(EventState.INSTANT_VOD),)], 1)
    assert notes(inner) == []


async def test_a_stop_is_captured_once_and_another_stop_again(inner: Core, clock: HandClock) -> None:
    """The stop is followed several times, also after the first capture has ended."""
    await live(inner)
    clock.forward(hours=1)
    await stop(inner)
    first = _text(inner.clock())
    await followed(inner)
    await do(inner, MediaEvent.end_vod_job.on(EVENT, 1, VodJobEnd.FAILED, version=5, reason="no room"))
    clock.forward(days=3)
    await followed(inner)
    assert len(captures(inner)) == 1
    await do(inner, MediaEvent.change_state.on(EVENT, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
    clock.forward(hours=1)
    await stop(inner)
    for _ in range(3):
        await followed(inner)
    assert [capture["end"] for capture in captures(inner)] == [first, _text(inner.clock())]
    assert notes(inner) == []


async def test_two_processes_that_follow_one_stop_capture_it_once(inner: Core) -> None:
    await live(inner)
    await stop(inner)
    await fed(inner)
    order = "UPDATE orders SET due_at = '-infinity' RETURNING 1"
    first, other = worker(inner), worker(inner)
    [taken] = await first._orders.take()
    rows(inner.database.conninfo, order)
    [again] = await other._orders.take()
    await asyncio.gather(*(each._carry_out(which, Invocation.by("system")) for each, which in ((first, taken), (other, again))))
    assert len(captures(inner)) == 1
    assert notes(inner) == []


@pytest.mark.parametrize("how", ["another flow", "no flow", "never live", "second force", "live again", "deleted"])
async def test_what_is_not_captured(inner: Core, how: str) -> None:
    match how:
        case "never live":
            await do(inner, AddOrUpdateEvent(EVENT, {"channel_id": MAIN, "flow_id": CAPTURED}, state=EventState.PRE_LIVE, new=True))
        case "another flow":
            await live(inner, flow_id=PLAIN)
        case "no flow":
            await live(inner, flow_id=None)
        case _:
            await live(inner)
    await stop(inner)
    match how:
        case "live again":
            await do(inner, MediaEvent.change_state.on(EVENT, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
        case "deleted":
            await do(inner, MediaEvent.delete.on(EVENT))
        case "second force":
            await followed(inner)
            await do(inner, MediaEvent.end_vod_job.on(EVENT, 1, VodJobEnd.COMPLETED, version=5))
            await do(inner, MediaEvent.force_stop.on(EVENT))
    await followed(inner)
    assert len(captures(inner)) == (how == "second force")
    assert notes(inner) == []


async def test_an_event_without_a_recording_says_so(inner: Core) -> None:
    await live(inner, channel_id=None)
    await stop(inner)
    await followed(inner)
    assert captures(inner) == []
    why = "the Event has no channel with live origin URLs"
    assert notes(inner) == [f"the flow asks for a capture of the Event when it stops, and there is none: {why}"]


async def test_a_job_of_a_client_is_not_broken_off(inner: Core) -> None:
    await live(inner)
    sent = {"content_id": str(EVENT), "sources": [ORIGIN], "start": "00:00:00", "end": "00:01:00"}
    job = NewJob(client="studio", workflow="vod_capture", parameters=sent)
    await jobs_of(inner).submit_job(job, invocation=Invocation.by("studio"))
    await stop(inner)
    await followed(inner)
    assert len(captures(inner)) == 1
    assert [message.rpartition("there is none: ")[2] for message in notes(inner)] == [
        "job 1 (vod_capture) is still producing files for this Event"
    ]


async def test_health_counts_captures_that_did_not_become_films(inner: Core, http: httpx.AsyncClient, clock: HandClock) -> None:
    """An Event whose flow requests no capture is not late."""

    async def late() -> dict[str, str]:
        body: dict[str, str] = (await http.get("/api/health/live/stream/notlive2vod/")).json()
        return body

    await do(inner, AddOrUpdateEvent(UUID(int=2), {"flow_id": PLAIN}, state=EventState.LIVE_PUBLISHED, new=True))
    await do(inner, MediaEvent.change_state.on(UUID(int=2), EventState.STOPPED, trigger=Trigger.OPERATOR))
    await live(inner)
    await stop(inner)
    await followed(inner)
    clock.forward(hours=25)
    assert await late() == {}
    await do(inner, MediaEvent.end_vod_job.on(EVENT, 1, VodJobEnd.FAILED, version=5, reason="no room"))
    assert list(await late()) == [str(EVENT)]


def _text(at: Any) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
