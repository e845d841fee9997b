"""The event log itself: its tables, the rights of the running product on them, and the stream of its changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Grant, Migration
from projections.log.change_feed import ChangeFeed
from projections.log.log_watcher import LogWatcher

if TYPE_CHECKING:
    from fastapi import APIRouter

_TABLES = (
    "events",
    "stream_versions",
    "stream_events",
    "commits",
    "log_identity",
    "log_partitions",
    "log_seals",
    "redacted_streams",
)


def _routes() -> Sequence[APIRouter]:
    from api.media import change

    return (change.routes,)


def _services(services: Services) -> Providers:
    from api.media.change import ChangeStreams

    get = services.get
    return {
        ChangeFeed: lambda: ChangeFeed(get(Database), get(LogWatcher)),
        ChangeStreams: lambda: ChangeStreams(get(ChangeFeed), seats=services.environment.siblings.seats),
    }


LOG = Room(
    name="log",
    routes=_routes,
    services=_services,
    migrations=(
        Migration.read("0001 log", "log/schema.sql"),
        Migration.read("0002 views", "kernel/views.sql"),
        Migration.read("0004 links", "log/links.sql"),
        Migration.read("0014 partitions by days", "kernel/partitions.sql"),
        Migration.read("0040 redaction", "log/redaction.sql"),
        Migration.read("0041 verification", "audit/verification.sql"),
        Migration.read("0042 index of the audit", "audit/index.sql"),
        Migration.read("0045 traces of redacted content", "log/redacted_traces.sql"),
        Migration.read("0046 lock of the index of the audit", "audit/index_lock.sql"),
    ),
    grants=(
        *(Grant(f"TABLE {table}", "SELECT") for table in _TABLES),
        Grant("FUNCTION log_append", "EXECUTE"),
        Grant("FUNCTION log_redact", "EXECUTE"),
        Grant("FUNCTION erase_traces", "EXECUTE"),
        Grant("FUNCTION log_partitions_ahead", "EXECUTE"),
        Grant("FUNCTION day_partitions", "EXECUTE"),
        Grant("FUNCTION make_day_partition", "EXECUTE"),
        Grant("FUNCTION drop_day_partition", "EXECUTE"),
        Grant("FUNCTION delete_from_default", "EXECUTE"),
    ),
)
