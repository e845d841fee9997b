"""Consumers of the log: their checkpoints and parked records, and the relay that fills Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.wiring.container import Providers, Services
from api.wiring.room import Room, WorkerRole
from domain.kernel.ids import new_id
from projections.consumers.parked import ParkedRecords
from projections.consumers.queries import ConsumerQueries
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Grant, Migration

if TYPE_CHECKING:
    from fastapi import APIRouter

    from workers.wiring import SharedWorkers, Worker, WorkerContext


def _routes() -> Sequence[APIRouter]:
    from api.media import consumer

    return (consumer.routes,)


def _services(services: Services) -> Providers:
    get = services.get
    return {
        ConsumerQueries: lambda: ConsumerQueries(get(Database)),
        ParkedRecords: lambda: ParkedRecords(get(Database)),
    }


def _relay(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from workers.adapters.kafka.relay import KafkaRelay
    from workers.adapters.kafka.topics import Topics

    assert context.kafka is not None, "the relay needs a broker"
    relay = KafkaRelay(
        context.database,
        context.log_watcher,
        connection=context.kafka,
        topics=Topics(),
        kinds=context.relayed,
        existing_kinds=context.kinds,
        member=new_id(),
        host=context.host,
    )
    return [relay]


CONSUMERS = Room(
    name="consumers",
    migrations=(
        Migration.read("0008 consumers", "consumers/schema.sql"),
        Migration.read("0061 readers of the log instead of a broker", "consumers/reads_log.sql"),
    ),
    routes=_routes,
    services=_services,
    grants=(Grant("TABLE log_epochs", "SELECT"),),
    worker_roles=(WorkerRole("relay", _relay, needs_kafka=True),),
)
