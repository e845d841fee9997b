"""What a client's content key answers say beyond the keys: licence addresses, provider, FairPlay URI. reference/drm.md, c.

For admins only, as all that concerns clients. Nothing here is secret: players are told all of it.
"""

from __future__ import annotations

from dataclasses import asdict

from api.kernel.answer import Answer
from api.kernel.auth import ADMIN
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes
from api.kernel.wire import Flag, Label, Text, Wire
from domain.client.aggregate import Client
from domain.client.commands import ConfigureClientDrm
from domain.drm.settings import DrmSettings
from domain.kernel.errors import NotFound
from projections.clients.directory import ClientDirectory

routes = Routes("/client", tag="Clients")


class DrmSettingsBody(Wire):
    """A member that is absent stays; null is the default again."""

    playready_la_url: Text | None = None
    widevine_provider: Label | None = None
    content_id_in_pssh: Flag | None = None
    fairplay_uri_template: Text | None = None
    fairplay_key_format_versions: Label | None = None


class DrmSettingsWire(Wire):
    playready_la_url: str | None
    widevine_provider: str | None
    content_id_in_pssh: bool
    fairplay_uri_template: str
    fairplay_key_format_versions: str


@routes.get("/{name}/drm/", ADMIN, answers=DrmSettingsWire)
async def client_drm(call: Call, name: str, directory: ClientDirectory) -> Answer:
    """How a client's content key answers are worded."""
    found = await directory.find(name)
    if found is None:
        raise NotFound(Client.KIND, name)
    return Answer(200, _shaped(found.drm), etag=found.version)


@routes.put("/{name}/drm/", ADMIN, answers=DrmSettingsWire)
async def configure_client_drm(call: Call, name: str, body: DrmSettingsBody, bus: CommandBus, directory: ClientDirectory) -> Answer:
    """Word a client's content key answers in another way, from the next answer on. Keys, kids and IVs stay as they are."""
    changes = {field: getattr(body, field) for field in body.model_fields_set}
    answer = await bus.send(call, ConfigureClientDrm(name, changes), _shown)
    directory.forget()
    return answer


async def _shown(client: Client) -> Answer:
    return Answer(200, _shaped(client.drm), etag=client.version)


def _shaped(settings: DrmSettings) -> DrmSettingsWire:
    return DrmSettingsWire(**asdict(settings))
