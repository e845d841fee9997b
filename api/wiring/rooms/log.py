"""The event log itself: its tables and rights, the stream of its changes, its consumers, and the support of long lists."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from domain.job.ports import LoadAggregate
from projections.kernel.database.database import Pool
from projections.kernel.schema.migrate import Grant, Migration
from workers.kernel.consumer_factory import Broker
from workers.kernel.settings import AggregateKinds
from workers.retention import Retention

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

LOG = Room(
    name="log",
    routes=("api.media.change:routes",),
    services={
        LoadAggregate: "api.wiring.providers:load_aggregate",
        Pool: "api.wiring.providers:lists",
        Retention: "api.wiring.providers:retention",
    },
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

CONSUMERS = Room(
    name="consumers",
    migrations=(
        Migration.read("0008 consumers", "consumers/schema.sql"),
        Migration.read("0061 readers of the log instead of a broker", "consumers/reads_log.sql"),
    ),
    routes=("api.media.consumer:routes",),
    grants=(Grant("TABLE log_epochs", "SELECT"),),
    services={AggregateKinds: "api.wiring.providers:aggregate_kinds", Broker: "api.wiring.providers:broker"},
    worker_roles=(WorkerRole("relay", "workers.adapters.kafka.relay:relay", needs_kafka=True),),
)
LISTS = Room(
    name="lists",
    migrations=(
        Migration.read("0012 search of events", "event/search.sql"),
        Migration.read("0013 search of jobs", "job/search.sql"),
    ),
    worker_roles=(WorkerRole("lists", "workers.lists.role:lists", inside=True),),
)
