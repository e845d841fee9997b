"""The health of the machine: versions, free space, the transcoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.audit.unsealed import Unsealed
from projections.consumers.queries import ConsumerQueries
from projections.deliveries.queries import DeliveryQueries
from projections.job.backlog import JobBacklogQueries
from projections.kernel.database import Database
from projections.media_event.due import DueEvents
from projections.media_event.queries import EventQueries
from projections.publishing_points.queries import PointStates
from projections.sessions.store import SessionQueries

if TYPE_CHECKING:
    from api.http.router import Router


def _routes() -> Sequence[Router]:
    from api.media import health, health_overview, live_health

    return (health.routes, health_overview.routes, live_health.routes)


def _services(services: Services) -> Providers:
    from api.media.health import Health
    from api.media.health_overview import Overview, OverviewQueries
    from api.media.live_health import LiveHealth
    from workers.adapters.ffmpeg import Ffmpeg, installed
    from workers.adapters.free_space import LOW, free_bytes
    from workers.adapters.step_account import program_account
    from workers.jobs.host.tools import find
    from workers.kernel.media_programs import MEDIA_PROGRAMS

    get, around = services.get, services.surroundings
    machine, clock = around.machine, around.clock

    def overview() -> Overview:
        lists = get(Database).lists
        queries = OverviewQueries(
            get(Database),
            get(ConsumerQueries),
            get(DeliveryQueries),
            due=DueEvents(lists),
            jobs=JobBacklogQueries(lists),
            points=get(PointStates),
            sessions=SessionQueries(lists),
            unsealed=Unsealed(lists),
        )
        return Overview(
            queries,
            clock=clock,
            free=lambda: {name: free_bytes(path) for name, path in around.directories.items()},
            missing=lambda: [name for name in MEDIA_PROGRAMS if find(name) is None],
            low=LOW,
        )

    return {
        Overview: overview,
        Health: lambda: Health(services.get(Database), Ffmpeg(installed(), account=program_account), machine=machine),
        LiveHealth: lambda: LiveHealth(services.get(EventQueries), clock=clock),
    }


HEALTH = Room(name="health", routes=_routes, services=_services)
