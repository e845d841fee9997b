"""Health of live Events: docs/reference/api/health.md#video-on-demand-that-is-late."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final
from uuid import UUID

from pydantic import ConfigDict, Field, RootModel

from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
from api.kernel.wire import Between, Instant, Integer, Wire
from domain.kernel.clock import Clock, iso
from projections.media_event.queries import EventQueries

routes = Router("/health/live", tag="Health", surface=MEDIA)

_MOST: Final = 1000
_LONGEST: Final = 1_000_000
_LATE: Final = 415
"""The status that the API has for a check which finds something. Its body is what was found, not a problem."""

Hours = Annotated[Integer, Between(0, _LONGEST)]


class BufferQuery(Wire):
    buffer: Hours = Field(24, description="Hours that an Event may be late, 0 to 1,000,000; default 24.")


class LateEvents(RootModel[dict[UUID, Instant]]):
    """When something was to happen to each Event, by the ids of the Events."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"8f51eaa1-decb-4863-89d3-9eb99768c67b": "2031-01-02T21:00:00.000Z"}]}
    )


class LiveHealth:
    """Finds Events that are late."""

    def __init__(self, events: EventQueries, *, clock: Clock) -> None:
        self._events = events
        self._clock = clock

    async def without_vod(self, buffer: timedelta) -> dict[str, str]:
        """When each was to be video on demand, by the ids of the Events."""
        late = await self._events.without_vod(self._clock() - buffer, limit=_MOST)
        return {str(key): iso(due) for key, due in late}


@routes.get("/stream/notlive2vod/", READ, response_model=LateEvents, answers={_LATE: "These Events are late"})
async def check_vod_is_made(request: Request, query: BufferQuery, health: LiveHealth) -> Response:
    """Whether live Events became video on demand in time; 415 with the scheduled ends of those that did not.

    These are Events that were live, have a flow, were to end longer ago than the buffer, and are not video on demand: at most 1000,
    those that have been late for longest. Without any the response is an empty object."""
    late = await health.without_vod(timedelta(hours=query.buffer))
    return Response(_LATE if late else 200, late, headers=(("cache-control", "no-store"),))
