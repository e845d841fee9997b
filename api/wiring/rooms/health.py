"""The health of the machine: versions, free space, the transcoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.kernel.database import Database

if TYPE_CHECKING:
    from api.http.router import Router


def _routes() -> Sequence[Router]:
    from api.media import health

    return (health.routes,)


def _services(services: Services) -> Providers:
    from api.media.health import Health
    from workers.adapters.ffmpeg import Ffmpeg, installed
    from workers.adapters.step_account import program_account

    machine = services.surroundings.machine
    return {Health: lambda: Health(services.get(Database), Ffmpeg(installed(), account=program_account), machine=machine)}


HEALTH = Room(name="health", routes=_routes, services=_services)
