"""The settings of a client: document 3, "Settings"; reading them is ours."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import StringConstraints, WithJsonSchema

from api.engine.surface import ENGINE
from api.kernel.answer import Answer
from api.kernel.auth import WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes
from api.kernel.wire import Wire
from domain.records.kinds.setting import EngineSettings, Setting, Value
from domain.records.record import Record, RegisterRecord
from projections.job.settings import EngineSettingsQueries
from projections.records.queries import RecordRow

routes = Routes(surface=ENGINE, tag="Job engine")

SettingName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
_VALUE = {"anyOf": [{"type": "number"}, {"type": "string", "maxLength": 1000}, {"type": "boolean"}]}


class SettingBody(Wire):
    """The names of document 3 and `priority_threshold` take numbers; any other name takes what it is given."""

    name: SettingName
    setting: Annotated[Any, WithJsonSchema(_VALUE)]


class SettingChangedWire(Wire):
    result: str
    message: str


@routes.post("/settings", WRITE, answers=SettingChangedWire)
async def change_setting(call: Call, body: SettingBody, bus: CommandBus) -> Answer:
    """Set one setting of the client, from now on; new names may be made up."""
    client = call.caller.name
    values = {"client": client, "name": body.name, "setting": body.setting}
    return await bus.send(call, RegisterRecord(Setting.key_of(client, body.name), Setting, values), _changed)


@routes.get("/settings", WRITE, answers=dict[str, Value])
async def engine_settings(call: Call, settings: EngineSettingsQueries) -> Answer:
    """The settings of the client by name. What was never set has its default."""
    chosen = (await settings.chosen([call.caller.name]))[call.caller.name]
    return Answer(200, {**asdict(EngineSettings()), **dict(sorted(chosen.items()))})


def shaped(setting: RecordRow) -> dict[str, Any]:
    """As the audit shows it."""
    details = setting.details
    return {"client": details.client, "name": details.name, "setting": details.setting}


async def _changed(record: Record) -> Answer:
    details = record.details
    shown = details.setting if isinstance(details.setting, str) else str(details.setting).lower()
    return Answer(200, {"result": "ok", "message": f"{details.name} set to {shown}"}, etag=record.version)
