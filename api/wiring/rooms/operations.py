"""The endpoints for operators: liveness, readiness, metrics, and the AsyncAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.audit.unsealed import Unsealed
from projections.consumers.queries import ConsumerQueries
from projections.event.due import DueEvents
from projections.job.backlog import JobBacklogQueries
from projections.kernel.database.database import Database
from projections.provision.queries import ProvisionQueries
from projections.publishing_point.queries import PointStates
from projections.session.store import SessionQueries
from projections.vault.master_keys import VaultState
from projections.webhook.queries import DeliveryQueries

if TYPE_CHECKING:
    from fastapi import APIRouter


def _routes() -> Sequence[APIRouter]:
    from api.operations import routes

    return (routes.liveness, routes.routes)


def _services(services: Services) -> Providers:
    from api.operations.backlog import Backlog, JobBacklog, ProvisionBacklog, SessionBacklog
    from api.operations.metrics import DatabaseMetrics
    from api.operations.routes import AllMetrics, LogHead

    get = services.get
    return {
        AllMetrics: lambda: AllMetrics(services.environment.siblings.metrics),
        DatabaseMetrics: DatabaseMetrics,
        LogHead: lambda: LogHead(get(Database).lists, get(DatabaseMetrics)),
        Backlog: lambda: Backlog(
            get(ConsumerQueries),
            get(DeliveryQueries),
            events=DueEvents(get(Database).lists),
            points=get(PointStates),
            jobs=JobBacklog(JobBacklogQueries(get(Database).lists), registry=get(DatabaseMetrics)),
            provisions=ProvisionBacklog(ProvisionQueries(get(Database).lists), registry=get(DatabaseMetrics)),
            sessions=SessionBacklog(SessionQueries(get(Database).lists), registry=get(DatabaseMetrics)),
            unsealed=Unsealed(get(Database).lists),
            vault=get(VaultState),
            registry=get(DatabaseMetrics),
        ),
    }


OPERATIONS = Room(name="operations", routes=_routes, services=_services)
