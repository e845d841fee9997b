"""The health of the machine: versions, free space, the transcoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.kernel.database import Database
from projections.media_event.queries import EventQueries

if TYPE_CHECKING:
    from api.http.router import Router


def _routes() -> Sequence[Router]:
    from api.media import health, live_health

    return (health.routes, live_health.routes)


def _services(services: Services) -> Providers:
    from api.media.health import Health
    from api.media.live_health import LiveHealth
    from workers.adapters.ffmpeg import Ffmpeg, installed
    from workers.adapters.step_account import program_account

    machine, clock = services.surroundings.machine, services.surroundings.clock
    return {
        Health: lambda: Health(services.get(Database), Ffmpeg(installed(), account=program_account), machine=machine),
        LiveHealth: lambda: LiveHealth(services.get(EventQueries), clock=clock),
    }


HEALTH = Room(name="health", routes=_routes, services=_services)
