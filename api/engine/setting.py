"""The settings of a client: docs/reference/api/job-engine.md#settings."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from api.engine.requests import SetSettingRequest
from api.engine.responses import SettingChanged
from api.engine.surface import EngineRoute
from api.http.errors import Forbidden
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import WRITE, Role
from api.kernel.request import Request
from domain.kernel.errors import Malformed
from domain.kernel.ports import Outcome
from domain.record.handlers import RecordHandlers
from domain.record.kinds.setting import EngineSettings, Setting, SettingDetails, Value, reserved_for_admins
from domain.record.record import Record
from projections.client.directory import ClientDirectory
from projections.job.settings import EngineSettingsQueries

routes = APIRouter(prefix="/engine", tags=["Job engine"], route_class=EngineRoute)


async def setting_changed(request: Request, outcome: Outcome[Record[SettingDetails]]) -> Response:
    setting = outcome.aggregate
    name, value = setting.details.name, setting.details.setting
    text = value if isinstance(value, str) else str(value).lower()
    return Response(SettingChanged.model_construct(result="ok", message=f"{name} set to {text}"), etag=setting.version)


@routes.post("/settings", dependencies=[WRITE], response_model=SettingChanged)
@rules(respond=setting_changed)
async def set_setting(
    request: Request, body: SetSettingRequest, handlers: Service[RecordHandlers], directory: Service[ClientDirectory]
) -> Outcome[Record[SettingDetails]]:
    """Set one setting of the client, effective immediately; custom names are allowed. An admin may set those of any client."""
    client = await _client(request, body, directory)
    values = {"client": client, "name": body.name, "setting": body.setting}
    key = Setting.key_of(client, body.name)
    return await handlers.register(Setting, values, key=key, invocation=request.invocation)


async def _client(request: Request, body: SetSettingRequest, directory: ClientDirectory) -> str:
    """Return the client that the setting is for."""
    own = request.caller.name
    if Role.ADMIN in request.caller.roles:
        if body.client not in (None, own) and not await directory.roles_of(body.client):
            raise Malformed.at("client", "there is no such client")
        return body.client or own
    if body.client not in (None, own):
        raise Malformed.at("client", "must be the client of the header")
    reserved = reserved_for_admins(body.name, body.setting)
    if reserved is not None:
        raise Forbidden(reserved)
    return own


@routes.get("/settings", dependencies=[WRITE], response_model=dict[str, Value])
async def get_settings(request: Request, settings: Service[EngineSettingsQueries]) -> Response:
    """The settings of the client by name. A setting that was never set has its default."""
    client = request.caller.name
    chosen = (await settings.chosen([client]))[client]
    return Response({**asdict(EngineSettings()), **dict(sorted(chosen.items()))})
