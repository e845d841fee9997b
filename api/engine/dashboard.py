"""Dashboard: started, queued and scheduled jobs, once or as a stream: docs/reference/api/job-engine.md#dashboard. Needs no key."""

from __future__ import annotations

import re
from typing import Annotated, Final

from fastapi import APIRouter, Query

from api.engine.broadcast import NOBODY, DashboardBroadcast
from api.engine.client_filter import ClientFilter
from api.engine.requests import DashboardQuery, FormerPageQuery
from api.engine.responses import Dashboard, DashboardCounts, LiveDashboard
from api.engine.surface import UNAVAILABLE, EngineRoute, Strangers
from api.http.response import EVENT_STREAM, Response
from api.http.routing import OPEN, Service, rules
from api.kernel.request import Request
from api.kernel.subscribers import event_stream
from domain.kernel.errors import Malformed
from domain.record.kinds.setting import EngineSettings
from projections.job.board import Board, BoardQueries
from projections.job.settings import EngineSettingsQueries

routes = APIRouter(prefix="/engine", tags=["Job engine"], route_class=EngineRoute)

_DEFAULT_CLIENT: Final = "admin"
"""The client whose settings are shown if the request names no client."""

_MAX_LIVE: Final = 100
"""Jobs of each state in the stream. Each change of a task sends all of them again, so 1000 jobs would be 400 kB per second."""

_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class Dashboards:
    """Reads the dashboard of one client, or of all clients if it is None."""

    def __init__(self, boards: BoardQueries, settings: EngineSettingsQueries) -> None:
        self._boards = boards
        self._settings = settings

    async def read(self, client: str | None) -> Dashboard:
        return Dashboard.of(await self._boards.board(client), await self._settings_of(client))

    async def read_live(self, client: str | None) -> LiveDashboard:
        """Return a frame of the stream: the first jobs, the number of all jobs, and the progress of the tasks of the started
        jobs."""
        board = await self._boards.board(client)
        first = Board(board.started[:_MAX_LIVE], board.queued[:_MAX_LIVE], board.scheduled[:_MAX_LIVE])
        counts = DashboardCounts.model_construct(
            started=len(board.started), queued=len(board.queued), scheduled=len(board.scheduled)
        )
        tasks = await self._boards.tasks([job.id for job in first.started])
        dashboard = Dashboard.of(first, await self._settings_of(client))
        return LiveDashboard.extending(dashboard, counts=counts, tasks=tasks)

    async def _settings_of(self, client: str | None) -> EngineSettings:
        owner = client or _DEFAULT_CLIENT
        return (await self._settings.of([owner]))[owner]


@routes.get("/dashboard", dependencies=[OPEN], response_model=Dashboard)
@rules(errors=UNAVAILABLE)
async def get_dashboard(
    request: Request, dashboards: Service[Dashboards], clients: Service[ClientFilter], strangers: Service[Strangers]
) -> Response:
    """The started jobs by id, the queued jobs in the order in which they start, and the scheduled jobs by their time.

    With the header client, only the jobs of that client; an admin sees all. At most 1000 jobs of each state.
    """
    shown = await dashboards.read(await clients.of(request))
    return Response(await strangers.body(shown, in_full=await clients.sees_all(request)))


@routes.get("/dashboard.html", dependencies=[OPEN], status_code=302, include_in_schema=False)
async def go_to_jobs(request: Request, query: Annotated[FormerPageQuery, Query()]) -> Response:
    """Redirect the dashboard page of earlier versions, which people have bookmarked, to the console."""
    place = f"/{query.job}" if query.job and _NUMBER.fullmatch(query.job) else ""
    return Response(status_code=302, headers=(("location", f"/console/jobs{place}"),))


@routes.get("/dashboard/stream", dependencies=[OPEN])
@rules(media_type=EVENT_STREAM, errors=UNAVAILABLE)
async def stream_dashboard(
    request: Request,
    query: Annotated[DashboardQuery, Query()],
    broadcast: Service[DashboardBroadcast],
    clients: Service[ClientFilter],
) -> Response:
    """The dashboard as server-sent events, sent when it changes and at most twice per second.

    Each event holds the fields of GET /engine/dashboard with the first 100 jobs of each state; `counts`, the number of jobs of each
    state; and `tasks`, the tasks of the started jobs, with `fraction` from 0 to 1. The event `away` means that the database does
    not answer at the moment.
    """
    client = await clients.of(request)
    if None not in (client, query.client) and client != query.client:
        raise Malformed.at("client", "must be the client of the header")
    shown, subscriber = client if query.client is None else query.client, await clients.subscriber(request)
    if not (shown is None or subscriber.has_key or await clients.exists(shown)):
        shown = NOBODY
    frames = broadcast.frames(shown, has_key=await clients.sees_all(request))
    return event_stream(broadcast.subscribers.within_limit(frames, subscriber))
