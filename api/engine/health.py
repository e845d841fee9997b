"""Health of the engine: docs/reference/api/job-engine.md#health."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from api.engine.responses import EngineHealth
from api.engine.surface import EngineRoute
from api.http.response import Response
from api.http.routing import Service
from api.kernel.auth import WRITE
from api.kernel.request import Request
from projections.job.counts import JobCounts
from projections.job.settings import EngineSettingsQueries

routes = APIRouter(prefix="/engine", tags=["Job engine"], route_class=EngineRoute)


@routes.get("/health", dependencies=[WRITE], response_model=EngineHealth)
async def get_engine_health(request: Request, counts: Service[JobCounts], settings: Service[EngineSettingsQueries]) -> Response:
    """The client's jobs and tasks by state, its limits, and the load of each queue across all clients.

    `relational_store` is the PostgreSQL database of the log and the views, `cache_store` the tables of leases and progress in the
    same database. Failed jobs and tasks are included in the completed and processed numbers.
    """
    client = request.caller.name
    of_client, queues, warnings, limits = await asyncio.gather(
        counts.of(client), counts.queues(), counts.warnings(), settings.of([client])
    )
    return Response(EngineHealth.of(of_client, queues, limits[client], warnings=warnings))
