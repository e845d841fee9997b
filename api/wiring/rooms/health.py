"""The health of the machine: versions, free space, the transcoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.kernel.clock import Clock
from domain.record.kinds.quiet import Quiet
from projections.audit.unsealed import Unsealed
from projections.consumers.queries import ConsumerQueries
from projections.event.due import DueEvents
from projections.event.queries import EventQueries
from projections.job.backlog import JobBacklogQueries
from projections.kernel.database.database import Database
from projections.publishing_point.own_points import LostRecordings
from projections.publishing_point.queries import PointStates
from projections.record.queries import RecordQueries
from projections.session.store import SessionQueries
from projections.webhook.queries import DeliveryQueries

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.media.health_overview import Overview, ProcessId
    from workers.adapters.program_verdicts import Verdicts


def _routes() -> Sequence[APIRouter]:
    from api.media import health, health_overview, live_health

    return (health.routes, health_overview.routes, live_health.routes)


def _services(services: Services) -> Providers:
    from api.media.health import Health
    from api.media.health_overview import Overview
    from api.media.live_health import LiveHealth
    from workers.adapters.ffmpeg import Ffmpeg, find
    from workers.adapters.step_account import program_account

    environment = services.environment
    verdicts = _verdicts(environment.directories)
    return {
        Overview: lambda: overview(services.get(Database), environment.directories, clock=environment.clock),
        Health: lambda: Health(
            services.get(Database), Ffmpeg(find("ffmpeg", verdicts=verdicts), account=program_account), machine=environment.machine
        ),
        LiveHealth: lambda: LiveHealth(services.get(EventQueries), clock=environment.clock),
    }


def overview(database: Database, directories: Mapping[str, Path], *, clock: Clock, without: ProcessId | None = None) -> Overview:
    """Return the overview. `without` is a process that is not counted."""
    from api.media.health_overview import Overview, OverviewQueries
    from workers.adapters.ffmpeg import find
    from workers.adapters.free_space import LOW, free_bytes
    from workers.kernel.media_programs import MEDIA_PROGRAMS

    lists, verdicts = database.lists, _verdicts(directories)
    queries = OverviewQueries(
        database,
        ConsumerQueries(database),
        DeliveryQueries(database),
        due=DueEvents(lists),
        jobs=JobBacklogQueries(lists),
        points=PointStates(database),
        records=RecordQueries(database, (Quiet,)),
        sessions=SessionQueries(lists),
        lost=LostRecordings(database),
        unsealed=Unsealed(lists),
    )
    return Overview(
        queries,
        clock=clock,
        free=lambda: {name: free_bytes(path) for name, path in directories.items()},
        missing=lambda: [name for name in MEDIA_PROGRAMS if find(name, verdicts=verdicts) is None],
        low=LOW,
        without=without,
    )


def _verdicts(directories: Mapping[str, Path]) -> Verdicts | None:
    from workers.adapters.program_verdicts import Verdicts

    return Verdicts(directories["home"]) if "home" in directories else None


HEALTH = Room(name="health", routes=_routes, services=_services)
