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
from domain.records.row import RecordRow
from domain.webhook.aggregate import Webhook
from domain.webhook.callback import Callback
from domain.webhook.handlers import WebhookHandlers
from projections.deliveries.all_webhooks import AllDeliveryQueries
from projections.deliveries.health import EndpointHealthQueries
from projections.deliveries.queries import DeliveryQueries
from projections.deliveries.redelivery import Redelivery
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database import Database
from projections.kernel.migrate import Migration
from projections.kernel.partitions import DayTable
from projections.log.executor import CommandExecutor
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault

if TYPE_CHECKING:
    from api.audit.past_states import Moment, Renderer
    from api.http.router import Router
    from workers.wiring import SharedWorkers, Worker, WorkerContext

_DAYS_OF_ATTEMPTS = 7
"""The days before the end of a delivery in which its attempts were made."""


def _routes() -> Sequence[Router]:
    from api.media.webhook import all_deliveries, callbacks, deliveries, health, routes

    return (routes.routes, health.routes, all_deliveries.routes, routes.misspelled_routes, callbacks.routes, deliveries.routes)


def _services(services: Services) -> Providers:
    from api.kernel.version import product_version
    from api.media.webhook.ceiling import WebhookCeiling
    from workers.deliveries.probe import Probe
    from workers.ports import WebhookProbe

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

    from workers.callbacks.policy import sample as sample_callback
    from workers.webhooks.payload import sample as sample_notification

    return sample_notification() if client is None else to_json(sample_callback(client=client, at=clock())).decode()


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.webhook.responses import CALLBACKS, WEBHOOKS

    async def webhook(root: Webhook, moment: Moment) -> Any:
        return WEBHOOKS.shape(RecordRow.of(root))

    async def callback(root: Callback, moment: Moment) -> Any:
        return CALLBACKS.shape(RecordRow.of(root))

    return {Webhook.KIND: webhook, Callback.KIND: callback}


def _webhooks(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.deliveries.keys import FAN_OUT
    from workers.deliveries.wakeup import SenderWakeup
    from workers.webhooks.fanout import NotificationFanout

    wake = shared.get(SenderWakeup, SenderWakeup)
    handler = NotificationFanout(context.database, context.streams, mapper=context.mapper, notified=context.notified(), wake=wake)
    return [context.consumer(FAN_OUT, handler)]


def _deliveries(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.consumers.leases import ShardLeases
    from projections.deliveries.keys import SHARDS
    from projections.deliveries.store import CONSUMER
    from workers.deliveries.disabling import Disabling
    from workers.deliveries.sender import Sender
    from workers.deliveries.wakeup import SenderWakeup

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
        Migration.read("0009 deliveries", "deliveries/schema.sql"),
        Migration.read("0044 deliveries of all webhooks", "deliveries/all_webhooks.sql"),
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
