"""The Events that a playlist waits for, those that have their films, and those that get none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.event.film_sources import FilmSources, source_status
from domain.event.values import EventDetails, EventState, Mp4State, VodJob, VodJobEnd, VodWorkflow
from tests.domain.scenario import NOW

ONE, OTHER, GONE = UUID(int=1), UUID(int=2), UUID(int=3)
HOUR = timedelta(hours=1)
NEITHER = "is neither live nor scheduled nor being captured"


def event(state: EventState = EventState.PRE_LIVE, **facts: Any) -> EventDetails:
    return EventDetails(**{**dict(EventDetails.blank()), "state": state, **facts})


def job(workflow: VodWorkflow = VodWorkflow.CAPTURE, **facts: Any) -> VodJob:
    return VodJob(number=7, workflow=workflow, **facts)


def failed(end: VodJobEnd = VodJobEnd.FAILED, *, at: timedelta = HOUR) -> VodJob:
    return job(ended=end, ended_at=NOW + at)


def stands(*events: EventDetails, waited: bool = False) -> FilmSources:
    keys = [UUID(int=number) for number in range(1, len(events) + 1)]
    return source_status(keys, dict(zip(keys, events, strict=True)), waited=waited, now=NOW)


READY = [
    event(mp4_state=Mp4State.AVAILABLE),
    event(EventState.LIVE_PUBLISHED, mp4_state=Mp4State.AVAILABLE),
    event(EventState.VOD_PUBLIC),
    event(EventState.COMPOSE_PRIVATE),
    event(EventState.STOPPED, mp4_state=Mp4State.AVAILABLE, vod_job=job(VodWorkflow.PACKAGE)),
]
PENDING = [
    event(EventState.LIVE_UNPUBLISHED),
    event(EventState.LIVE_STARTING),
    event(EventState.SUSPENDED),
    event(EventState.LIVE_STOPPING),
    event(scheduled_start=NOW + HOUR),
    event(scheduled_start=NOW - HOUR, scheduled_end=NOW + HOUR),
    event(EventState.VOD_INGESTING),
    event(EventState.STOPPED, vod_job=job()),
    event(EventState.VOD_PUBLIC, mp4_state=Mp4State.GENERATING, vod_job=job(VodWorkflow.INGEST)),
    event(EventState.COMPOSE_WAITING),
    event(EventState.COMPOSE_GENERATING, vod_job=job(VodWorkflow.COMPOSE)),
]
MISSING = [
    event(),
    event(scheduled_start=NOW - 2 * HOUR, scheduled_end=NOW - HOUR),
    event(EventState.STOPPED, actual_live_end=NOW, vod_job=failed()),
    event(EventState.STOPPED, actual_live_end=NOW, vod_job=failed(VodJobEnd.BROKEN)),
    event(EventState.VOD_ERROR),
    event(EventState.COMPOSE_ERROR),
    event(EventState.PRE_VOD),
]


@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("details", READY)
def test_one_with_a_film_is_ready(details: EventDetails, waited: bool) -> None:
    assert stands(details, waited=waited) == FilmSources()


@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("details", PENDING)
def test_one_that_is_to_get_a_film_is_waited_for(details: EventDetails, waited: bool) -> None:
    assert stands(details, event(EventState.VOD_PUBLIC), waited=waited) == FilmSources(pending=True)


@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("details", MISSING)
def test_an_event_without_a_film_is_named_while_others_are_awaited(details: EventDetails, waited: bool) -> None:
    sources = stands(event(EventState.LIVE_PUBLISHED), details, waited=waited)
    assert sources.fault.startswith(f"the Event {OTHER} has no film, and ")
    assert str(ONE) not in sources.fault


def test_one_that_stops_while_somebody_waits_is_still_to_be_captured() -> None:
    stopped = event(EventState.STOPPED, actual_live_end=NOW)
    again = event(EventState.STOPPED, actual_live_end=NOW, vod_job=failed(at=-HOUR))
    for details in (stopped, again):
        assert stands(details, waited=True) == FilmSources(pending=True)
    assert stands(stopped).fault == f"the Event {ONE} has no film, and {NEITHER}"
    assert stands(again).fault == f"the Event {ONE} has no film, and {NEITHER}"
    captured = event(EventState.STOPPED, actual_live_end=NOW, vod_job=failed())
    assert stands(captured, waited=True).fault == f"the Event {ONE} has no film, and its job 7 (vod_capture) made none"


def test_all_that_get_none_are_named_once_and_no_more_than_five() -> None:
    assert source_status([GONE, GONE], {}, waited=True, now=NOW).fault == f"the Event {GONE} was deleted"
    fault = stands(*[event()] * 7).fault
    assert fault.count("has no film") == 5
    assert fault.endswith("; and 2 more Events have none")
