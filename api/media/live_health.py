"""Live Events that are late: docs/reference/api/health.md#events-that-are-late."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field, RootModel

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Between, Instant, Integer, Wire
from api.media.health_finding import FOUND, checked
from domain.kernel.clock import Clock, iso
from projections.event.queries import EventQueries

routes = APIRouter(prefix="/api/health/live", tags=["Health"], route_class=MediaRoute)

_MOST: Final = 1000
_LONGEST: Final = 1_000_000
_ANSWERS: Final = {FOUND: "These Events are late"}

Buffer = Annotated[Integer, Between(0, _LONGEST)]


class HoursQuery(Wire):
    buffer: Buffer = Field(24, description="Hours that an Event may be late, 0 to 1,000,000; default 24.")


class MinutesQuery(Wire):
    buffer: Buffer = Field(5, description="Minutes that an Event may be late, 0 to 1,000,000; default 5.")


class LateEvents(RootModel[dict[UUID, Instant]]):
    """The scheduled times of late Events, by the ids of the Events."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"8f51eaa1-decb-4863-89d3-9eb99768c67b": "2031-01-02T21:00:00.000Z"}]}
    )


class LiveHealth:
    """Queries for late Events."""

    def __init__(self, events: EventQueries, *, clock: Clock) -> None:
        self._events = events
        self._clock = clock

    async def without_vod(self, buffer: timedelta) -> dict[str, str]:
        """Return the scheduled ends of Events that did not become video on demand, by the ids of the Events."""
        return _shown(await self._events.without_vod(self._clock() - buffer, limit=_MOST))

    async def not_started(self, buffer: timedelta) -> dict[str, str]:
        """Return the scheduled starts of Events that did not start."""
        now = self._clock()
        return _shown(await self._events.not_started(now - buffer, now=now, limit=_MOST))

    async def not_stopped(self, buffer: timedelta) -> dict[str, str]:
        """Return the scheduled ends of Events that did not stop."""
        return _shown(await self._events.not_stopped(self._clock() - buffer, limit=_MOST))

    async def not_provisioned(self, buffer: timedelta) -> dict[str, str]:
        """Return the scheduled times of Events that were not provisioned."""
        return _shown(await self._events.not_provisioned(self._clock() - buffer, limit=_MOST))

    async def not_terminated(self, buffer: timedelta) -> dict[str, str]:
        """Return the scheduled times of Events whose infrastructure was not terminated."""
        return _shown(await self._events.not_terminated(self._clock() - buffer, limit=_MOST))


def _shown(late: Sequence[tuple[UUID, datetime]]) -> dict[str, str]:
    return {str(key): iso(due) for key, due in late}


def _response(late: dict[str, str]) -> Response:
    return checked(late, has_findings=bool(late))


@routes.get("/stream/notstarted/", dependencies=[READ], response_model=LateEvents)
@rules(answers=_ANSWERS)
async def check_events_have_started(
    request: Request, query: Annotated[MinutesQuery, Query()], health: Service[LiveHealth]
) -> Response:
    """Check that Events started in time; 415 with the scheduled starts of those that did not.

    A late Event should have started longer ago than the buffer, was never live, is not video on demand, and its scheduled end,
    if it has one, is in the future. At most 1000 Events are listed, those that have been late for longest. Without any the
    response is an empty object.
    """
    return _response(await health.not_started(timedelta(minutes=query.buffer)))


@routes.get("/stream/notstopped/", dependencies=[READ], response_model=LateEvents)
@rules(answers=_ANSWERS)
async def check_events_have_stopped(
    request: Request, query: Annotated[MinutesQuery, Query()], health: Service[LiveHealth]
) -> Response:
    """Check that Events stopped in time; 415 with the scheduled ends of those that did not.

    A late Event should have ended longer ago than the buffer and is still live. At most 1000 Events are listed, those that have
    been late for longest. Without any the response is an empty object.
    """
    return _response(await health.not_stopped(timedelta(minutes=query.buffer)))


@routes.get("/stream/notlive2vod/", dependencies=[READ], response_model=LateEvents)
@rules(answers=_ANSWERS)
async def check_vod_is_made(request: Request, query: Annotated[HoursQuery, Query()], health: Service[LiveHealth]) -> Response:
    """Check that captured Events became video on demand in time; 415 with the scheduled ends of those that did not.

    A late Event was live, its capture was requested by a job or by `captureOnStop` of its flow, it should have ended longer ago
    than the buffer, and it is not video on demand. At most 1000 Events are listed, those that have been late for longest.
    Without any the response is an empty object.
    """
    return _response(await health.without_vod(timedelta(hours=query.buffer)))


@routes.get("/dynamic/stream/notprovisioned/", dependencies=[READ], response_model=LateEvents)
@rules(answers=_ANSWERS)
async def check_events_are_provisioned(
    request: Request, query: Annotated[MinutesQuery, Query()], health: Service[LiveHealth]
) -> Response:
    """Check that Events were provisioned in time; 415 with the scheduled times of those that were not.

    The `scheduledProvisionAt` of a late Event is longer ago than the buffer and the Event has no infrastructure, whatever its
    flag says. At most 1000 Events are listed, those that have been late for longest. Without any the response is an empty
    object.
    """
    return _response(await health.not_provisioned(timedelta(minutes=query.buffer)))


@routes.get("/dynamic/stream/notterminated/", dependencies=[READ], response_model=LateEvents)
@rules(answers=_ANSWERS)
async def check_events_are_terminated(
    request: Request, query: Annotated[MinutesQuery, Query()], health: Service[LiveHealth]
) -> Response:
    """Check that the infrastructure of Events was terminated in time; 415 with the scheduled times of the late Events.

    The `scheduledTerminateAt` of a late Event is longer ago than the buffer and its infrastructure is neither TERMINATED nor
    SCHEDULED, whatever its flag says. At most 1000 Events are listed, those that have been late for longest. Without any the
    response is an empty object.
    """
    return _response(await health.not_terminated(timedelta(minutes=query.buffer)))
