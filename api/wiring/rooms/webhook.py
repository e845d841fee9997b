"""Webhooks and callbacks, and the deliveries to them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room, WorkerRole
from domain.kernel.clock import Clock
from domain.kernel.ids import new_id
from domain.record.ports import RecordRow
from domain.webhook.aggregate import Webhook
from domain.webhook.callback import Callback
from domain.webhook.handlers import WebhookHandlers
from projections.event.queries import EventQueries
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Migration
from projections.kernel.sql.partitions import DayTable
from projections.log.executor import CommandExecutor
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from projections.webhook.all_webhooks import AllDeliveryQueries
from projections.webhook.health import EndpointHealthQueries
from projections.webhook.queries import DeliveryQueries
from projections.webhook.redelivery import Redelivery

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer
    from workers.wiring import SharedWorkers, Worker, WorkerContext

_DAYS_OF_ATTEMPTS = 7
"""The days before the end of a delivery in which its attempts were made."""


def _routes() -> Sequence[APIRouter]:
    from api.media.webhook import all_deliveries, callbacks, deliveries, health, routes

    return (routes.routes, health.routes, all_deliveries.routes, routes.misspelled_routes, callbacks.routes, deliveries.routes)


def _services(services: Services) -> Providers:
    from api.kernel.version import product_version
    from api.media.webhook.routes import WebhookCeiling
    from workers.ports.webhooks import WebhookProbe
    from workers.webhook.sender.probe import Probe

    get, environment = services.get, services.environment
    return {
        WebhookHandlers: lambda: _handlers(get(CommandExecutor), get(RecordQueries), events=get(EventQueries), vault=get(Vault)),
        WebhookCeiling: lambda: WebhookCeiling(get(RecordQueries), get(EngineSettingsQueries)),
        DeliveryQueries: lambda: DeliveryQueries(get(Database)),
        AllDeliveryQueries: lambda: AllDeliveryQueries(get(Database), get(DeliveryQueries)),
        EndpointHealthQueries: lambda: EndpointHealthQueries(get(Database).lists, environment.clock),
        Redelivery: lambda: Redelivery(get(Database)),
        WebhookProbe: lambda: Probe(
            environment.outbound,
            database=get(Database),
            records=get(RecordQueries),
            vault=get(Vault),
            clock=environment.clock,
            version=product_version(),
            samples=partial(_sample, clock=environment.clock),
        ),
    }


def _handlers(executor: CommandExecutor, records: RecordQueries, *, events: EventQueries, vault: Vault) -> WebhookHandlers:
    return WebhookHandlers(executor, records, events=events, vault=vault, random=os.urandom)


def _sample(client: str | None, *, clock: Clock) -> str:
    """Return the body of a test: a notice for a callback of this client, or a notification if `client` is None."""
    from pydantic_core import to_json

    from workers.webhook.callbacks.policy import sample as sample_callback
    from workers.webhook.fanout import sample as sample_notification

    return sample_notification() if client is None else to_json(sample_callback(client=client, at=clock())).decode()


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.webhook.responses import CALLBACKS, WEBHOOKS

    async def webhook(root: Webhook, moment: Moment) -> Any:
        return WEBHOOKS.shape(RecordRow.of(root))

    async def callback(root: Callback, moment: Moment) -> Any:
        return CALLBACKS.shape(RecordRow.of(root))

    return {Webhook.KIND: webhook, Callback.KIND: callback}


def _webhooks(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.webhook.keys import FAN_OUT
    from workers.webhook.fanout import NotificationFanout
    from workers.webhook.sender.wakeup import SenderWakeup

    wake = shared.get(SenderWakeup, SenderWakeup)
    handler = NotificationFanout(context.database, context.streams, mapper=context.mapper, notified=context.notified(), wake=wake)
    return [context.consumer(FAN_OUT, handler)]


def _deliveries(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.consumers.leases import ShardLeases
    from projections.webhook.keys import SHARDS
    from projections.webhook.store import CONSUMER
    from workers.webhook.sender.disabling import Disabling
    from workers.webhook.sender.sender import Sender
    from workers.webhook.sender.wakeup import SenderWakeup

    handlers = _handlers(context.executor, context.records, events=EventQueries(context.database), vault=context.vault)
    leases = ShardLeases(context.database, CONSUMER, shards=SHARDS, member=new_id(), host=context.host, reads_log=False)
    sender = Sender(
        context.database,
        context.outbound,
        records=context.records,
        vault=context.vault,
        leases=leases,
        disable=Disabling(handlers, context.logbook, clock=context.clock).disable,
        version=context.version,
        clock=context.clock,
        rng=SystemRandom(),
        metrics=context.metrics,
        tracer=context.tracer,
    )
    shared.get(SenderWakeup, SenderWakeup).connect(sender.wake)
    return [sender]


WEBHOOK = Room(
    name="webhook",
    aggregates=(Webhook, Callback),
    migrations=(
        Migration.read("0009 deliveries", "webhook/schema.sql"),
        Migration.read("0044 deliveries of all webhooks", "webhook/all_webhooks.sql"),
    ),
    routes=_routes,
    services=_services,
    past_states=_past_states,
    day_tables=(
        DayTable("finished_deliveries", "delivery_days"),
        DayTable("delivery_attempts", "delivery_days", longer=_DAYS_OF_ATTEMPTS),
    ),
    worker_roles=(WorkerRole("webhooks", _webhooks), WorkerRole("deliveries", _deliveries)),
)
