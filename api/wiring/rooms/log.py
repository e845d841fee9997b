"""The event log itself: its tables, and what the running product may do with them."""

from __future__ import annotations

from api.wiring.room import Room
from projections.kernel.migrate import Grant, Migration

_TABLES = ("events", "stream_versions", "stream_events", "commits", "log_identity", "log_partitions", "log_seals")

LOG = Room(
    name="log",
    migrations=(
        Migration.read("0001 log", "log/schema.sql"),
        Migration.read("0002 views", "kernel/views.sql"),
        Migration.read("0004 links", "log/links.sql"),
        Migration.read("0014 partitions by days", "kernel/partitions.sql"),
        Migration.read("0040 redaction", "log/redaction.sql"),
    ),
    grants=(
        *(Grant(f"TABLE {table}", "SELECT") for table in _TABLES),
        Grant("FUNCTION log_append", "EXECUTE"),
        Grant("FUNCTION log_redact", "EXECUTE"),
        Grant("FUNCTION log_partitions_ahead", "EXECUTE"),
        Grant("FUNCTION day_partitions", "EXECUTE"),
        Grant("FUNCTION make_day_partition", "EXECUTE"),
        Grant("FUNCTION drop_day_partition", "EXECUTE"),
        Grant("FUNCTION delete_from_default", "EXECUTE"),
    ),
)
