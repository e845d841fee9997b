"""The key provider: SPEKE requests of packagers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.content_key.usage import UsageCounts
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor

if TYPE_CHECKING:
    from fastapi import APIRouter


def _routes() -> Sequence[APIRouter]:
    from api.speke import routes

    return (routes.routes,)


def _services(services: Services) -> Providers:
    from api.speke.rate import RateLimit
    from api.speke.routes import ResponseCache
    from api.speke.usage_recorder import UsageRecorder

    get, environment = services.get, services.environment
    return {
        RateLimit: lambda: RateLimit(environment.siblings.take_token, per_second=environment.siblings.per_second),
        ResponseCache: ResponseCache,
        UsageRecorder: lambda: UsageRecorder(get(CommandExecutor), UsageCounts(get(Database)), clock=environment.clock),
    }


SPEKE = Room(name="speke", routes=_routes, services=_services)
