"""The log store: entries of log text that clients and the product itself write. It is not part of the event log."""

from __future__ import annotations

from api.wiring.room import Room
from domain.kernel.ports import ServiceNotes
from projections.kernel.schema.migrate import Grant, Migration
from projections.kernel.sql.partitions import DayTable
from projections.log_store.log_store import Logbook

LOG_STORE = Room(
    name="log_store",
    migrations=(
        Migration.read("0005 logbook", "log_store/schema.sql"),
        Migration.read("0062 failures from now on", "log_store/failures.sql"),
    ),
    grants=(Grant("TABLE logbook", "SELECT, INSERT"), Grant("SEQUENCE logbook_numbers", "USAGE")),
    day_tables=(DayTable("logbook", "log_days"),),
    routes=("api.media.log:routes",),
    services={Logbook: "api.wiring.providers:logbook", ServiceNotes: Logbook},
)
