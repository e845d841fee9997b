"""The schedule of a client: docs/reference/api/job-engine.md#schedule."""

from __future__ import annotations

from fastapi import APIRouter

from api.engine.requests import SwitchScheduleRequest
from api.engine.responses import ScheduleDescription, Schedules, ScheduleSwitched
from api.engine.surface import EngineRoute
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import WRITE
from api.kernel.request import Request
from domain.kernel.ports import Outcome
from domain.record.handlers import RecordHandlers
from domain.record.kinds.schedule import QUEUE_SCHEDULED_JOBS, Schedule, ScheduleDetails
from domain.record.record import Record
from projections.job.settings import EngineSettingsQueries

routes = APIRouter(prefix="/engine", tags=["Job engine"], route_class=EngineRoute)


@routes.get("/schedules", dependencies=[WRITE], response_model=Schedules)
async def list_schedules(request: Request, settings: Service[EngineSettingsQueries]) -> Response:
    """The schedules of the client."""
    client = request.caller.name
    interval = (await settings.of([client]))[client].schedule_interval
    active = (await settings.schedule_active([client]))[client]
    described = {QUEUE_SCHEDULED_JOBS: ScheduleDescription.of(interval, active=active)}
    return Response(Schedules.model_construct(result="ok", schedules=described))


async def schedule_switched(request: Request, outcome: Outcome[Record[ScheduleDetails]]) -> Response:
    schedule = outcome.aggregate
    switched = ScheduleSwitched.model_construct(result="ok", schedules=[schedule.details.name])
    return Response(switched, etag=schedule.version)


@routes.put("/scheduler", dependencies=[WRITE], response_model=ScheduleSwitched)
@rules(respond=schedule_switched)
async def switch_schedule(
    request: Request, body: SwitchScheduleRequest, handlers: Service[RecordHandlers]
) -> Outcome[Record[ScheduleDetails]]:
    """Switch a schedule of the client on or off. While it is off, due jobs stay scheduled."""
    client = request.caller.name
    values = {"client": client, "name": body.schedule, "active": body.active}
    key = Schedule.key_of(client, body.schedule)
    return await handlers.register(Schedule, values, key=key, invocation=request.invocation)
