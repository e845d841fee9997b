"""DRM settings of a client: docs/reference/api/clients.md#drm-settings. For admins only, although none of them is secret."""

from __future__ import annotations

from fastapi import APIRouter

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import ADMIN
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.media.client.routes import ClientDrmSettings, ConfigureDrmRequest
from domain.client.aggregate import Client
from domain.client.handlers import ClientHandlers
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from projections.client.directory import ClientDirectory

routes = APIRouter(prefix="/api/client", tags=["Clients"], route_class=UnstoredMediaRoute)


async def drm_configured(request: Request, outcome: Outcome[Client]) -> Response:
    client = outcome.aggregate
    return Response(ClientDrmSettings.of(client.drm), etag=client.version)


@routes.get("/{name}/drm/", dependencies=[ADMIN], response_model=ClientDrmSettings)
async def get_client_drm(request: Request, name: str, directory: Service[ClientDirectory]) -> Response:
    """The DRM settings of a client."""
    client = await directory.find(name)
    if client is None:
        raise NotFound(Client.KIND, name)
    return Response(ClientDrmSettings.of(client.drm), etag=client.version, settled=True)


@routes.put("/{name}/drm/", dependencies=[ADMIN], response_model=ClientDrmSettings)
@rules(respond=drm_configured)
async def change_client_drm(
    request: Request, name: str, body: ConfigureDrmRequest, handlers: Service[ClientHandlers]
) -> Outcome[Client]:
    """Change the settings of the key provider's answers to this client, effective immediately. Keys, kids and IVs stay."""
    changes = {field: getattr(body, field) for field in body.model_fields_set}
    return await handlers.configure_drm(name, changes, invocation=request.invocation)
