"""The schedule of a client, and its switch: document 3, "Schedule"."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from api.engine.surface import ENGINE
from api.kernel.answer import Answer
from api.kernel.auth import WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes
from api.kernel.wire import Flag, Wire
from domain.records.kinds.schedule import FIRST_IN, QUEUE_SCHEDULED_JOBS, Schedule
from domain.records.record import Record, RegisterRecord
from projections.job.settings import EngineSettingsQueries
from projections.records.queries import RecordRow

routes = Routes(surface=ENGINE, tag="Job engine")

_DESCRIPTION = "Queues scheduled jobs whose run_at is in the past."


class ScheduleWire(Wire):
    """`every` is the seconds from one run to the next, then `{"first_in": seconds}`."""

    schedule_class: Annotated[str, Field(alias="class")]
    every: list[int | dict[str, int]]
    queue: str
    description: str


class SchedulesWire(Wire):
    result: str
    schedules: dict[str, ScheduleWire]


class SwitchBody(Wire):
    schedule: Literal["queue_scheduled_jobs"]
    active: Flag


class SwitchedWire(Wire):
    result: str
    schedules: list[str]


@routes.get("/schedules", WRITE, answers=SchedulesWire)
async def schedules(call: Call, settings: EngineSettingsQueries) -> Answer:
    """What runs for the client again and again."""
    client = call.caller.name
    interval = (await settings.of([client]))[client].schedule_interval
    active = (await settings.schedule_active([client]))[client]
    shown = {
        "class": "QueueScheduledJobs",
        "every": [interval, {"first_in": FIRST_IN}],
        "queue": "scheduler",
        "description": _DESCRIPTION if active else f"{_DESCRIPTION} It is inactive.",
    }
    return Answer(200, {"result": "ok", "schedules": {QUEUE_SCHEDULED_JOBS: shown}})


@routes.put("/scheduler", WRITE, answers=SwitchedWire)
async def switch_schedule(call: Call, body: SwitchBody, bus: CommandBus) -> Answer:
    """Switch a schedule of the client on or off. While it is off, its scheduled jobs stay scheduled when their time comes."""
    client = call.caller.name
    values = {"client": client, "name": body.schedule, "active": body.active}
    return await bus.send(call, RegisterRecord(Schedule.key_of(client, body.schedule), Schedule, values), _switched)


def shaped(schedule: RecordRow) -> dict[str, Any]:
    """As the audit shows it."""
    details = schedule.details
    return {"client": details.client, "schedule": details.name, "active": details.active}


async def _switched(record: Record) -> Answer:
    return Answer(200, {"result": "ok", "schedules": [record.details.name]}, etag=record.version)
