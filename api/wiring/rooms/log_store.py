"""The log store: entries of log text that clients and the product itself write. It is not part of the event log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Grant, Migration
from projections.kernel.sql.partitions import DayTable
from projections.log_store.log_store import Logbook

if TYPE_CHECKING:
    from fastapi import APIRouter


def _routes() -> Sequence[APIRouter]:
    from api.media import log

    return (log.routes,)


def _services(services: Services) -> Providers:
    environment = services.environment
    return {Logbook: lambda: Logbook(services.get(Database), environment.clock, machine=environment.machine)}


LOG_STORE = Room(
    name="log_store",
    migrations=(
        Migration.read("0005 logbook", "log_store/schema.sql"),
        Migration.read("0062 failures from now on", "log_store/failures.sql"),
    ),
    grants=(Grant("TABLE logbook", "SELECT, INSERT"), Grant("SEQUENCE logbook_numbers", "USAGE")),
    day_tables=(DayTable("logbook", "log_days"),),
    routes=_routes,
    services=_services,
)
