"""What runs, waits and is scheduled, at a glance: document 3, GET /dashboard. Its live form is ours. Needs no key."""

from __future__ import annotations

from typing import Any, Final

from api.engine.listening import event_stream
from api.engine.live import LiveBoards
from api.engine.surface import ENGINE
from api.engine.wire import JobSummaryWire, Spoken, engine_version, summary
from api.kernel.answer import Answer
from api.kernel.auth import OPEN
from api.kernel.call import Call
from api.kernel.routes import Routes
from api.kernel.streaming import EVENT_STREAM
from domain.kernel.errors import Malformed
from projections.job.board import Board, BoardQueries, TaskProgress
from projections.job.settings import EngineSettingsQueries

routes = Routes(surface=ENGINE, tag="Job engine")

_NOBODY: Final = "admin"
"""Whose settings are shown where no client is named: decisions.md, "Job engine"."""

_MOST_LIVE: Final = 100
"""Jobs of each state. It all is sent again whenever a task gets on, and of a thousand jobs that would be 400 kB a second."""

_NEVER_STORED: Final = ("cache-control", "no-store")


class DashboardWire(Spoken):
    """At most 1000 jobs of each state."""

    max_jobs: int
    priority_slots: int
    started: list[JobSummaryWire]
    queued: list[JobSummaryWire]
    scheduled: list[JobSummaryWire]
    version: str


class LookQuery(Spoken):
    """`client`: as the header of that name, for browsers, which cannot send it here."""

    client: str | None = None


class Dashboards:
    """Reads what a dashboard shows, of one client or (None) of all."""

    def __init__(self, boards: BoardQueries, settings: EngineSettingsQueries) -> None:
        self._boards = boards
        self._settings = settings

    async def shown(self, client: str | None) -> dict[str, Any]:
        return await self._shown(await self._boards.board(client), client)

    async def live(self, client: str | None) -> dict[str, Any]:
        """The first of the same, how many there are, and how far the tasks of the started jobs are."""
        board = await self._boards.board(client)
        first = Board(board.started[:_MOST_LIVE], board.queued[:_MOST_LIVE], board.scheduled[:_MOST_LIVE])
        counts = {"started": len(board.started), "queued": len(board.queued), "scheduled": len(board.scheduled)}
        tasks = await self._boards.tasks([job.id for job in first.started])
        return {**await self._shown(first, client), "counts": counts, "tasks": [_task(one) for one in tasks]}

    async def _shown(self, board: Board, client: str | None) -> dict[str, Any]:
        owner = client or _NOBODY
        settings = (await self._settings.of([owner]))[owner]
        return {
            "max_jobs": settings.max_jobs,
            "priority_slots": settings.priority_slots,
            "started": [summary(job) for job in board.started],
            "queued": [summary(job) for job in board.queued],
            "scheduled": [summary(job) for job in board.scheduled],
            "version": engine_version(),
        }


@routes.get("/dashboard", OPEN, answers=DashboardWire)
async def dashboard(call: Call, dashboards: Dashboards) -> Answer:
    """Jobs that run, in the order of their ids; queued ones in the order in which they start; scheduled ones by their time.

    With the header client, only that client's."""
    return Answer(200, await dashboards.shown(call.header("client")), headers=(_NEVER_STORED,))


@routes.get("/dashboard/stream", OPEN, media_type=EVENT_STREAM)
async def watch_dashboard(call: Call, query: LookQuery, live: LiveBoards) -> Answer:
    """The dashboard as server-sent events, whenever it changes and at most twice a second.

    Each holds what GET /engine/dashboard answers, but the first 100 jobs of each state; `counts`: how many it answers of each; and
    `tasks`: those of the started jobs, with `fraction` from 0 to 1. The event `away` says that the database does not answer at the
    moment."""
    named = call.header("client")
    if None not in (named, query.client) and named != query.client:
        raise Malformed.at("client", "is another than the one of the header")
    return event_stream(live.seats.seated(live.frames(named if query.client is None else query.client)))


def _task(one: TaskProgress) -> dict[str, Any]:
    return {
        "job_id": one.job,
        "task_id": one.task,
        "name": one.name,
        "state": one.state.name.lower(),
        "attempts": one.attempts,
        "fraction": round(one.fraction, 4),
        "message": one.message,
    }
