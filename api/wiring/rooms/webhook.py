"""Webhooks and callbacks, and the deliveries to them."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from domain.webhook.aggregate import Webhook
from domain.webhook.callback import Callback
from domain.webhook.callback_naming import NewSigningSecret
from projections.kernel.schema.migrate import Migration
from projections.kernel.sql.partitions import DayTable
from workers.ports.outbound import Download, Notifying, Outbound, OutboundConnections
from workers.ports.webhooks import WebhookProbe

_DAYS_OF_ATTEMPTS = 7
"""The days before the end of a delivery in which its attempts were made."""
_CLIENT = "workers.adapters.outbound_http:GuardedClient"

WEBHOOK = Room(
    name="webhook",
    aggregates=(Webhook, Callback),
    migrations=(
        Migration.read("0009 deliveries", "webhook/schema.sql"),
        Migration.read("0044 deliveries of all webhooks", "webhook/all_webhooks.sql"),
    ),
    routes=(
        "api.media.webhook.routes:routes",
        "api.media.webhook.health:routes",
        "api.media.webhook.all_deliveries:routes",
        "api.media.webhook.routes:misspelled_routes",
        "api.media.webhook.callbacks:routes",
        "api.media.webhook.deliveries:routes",
    ),
    services={
        OutboundConnections: _CLIENT,
        Download: _CLIENT,
        NewSigningSecret: "api.wiring.providers:signing_secrets",
        Notifying: _CLIENT,
        Outbound: _CLIENT,
        WebhookProbe: "api.wiring.providers:webhook_probe",
        _CLIENT: "api.wiring.providers:outbound",
        "workers.webhook.policy:Meanings": "api.wiring.providers:meanings",
    },
    past_states=("api.media.webhook.responses:past_states",),
    day_tables=(
        DayTable("finished_deliveries", "delivery_days"),
        DayTable("delivery_attempts", "delivery_days", longer=_DAYS_OF_ATTEMPTS),
    ),
    worker_roles=(
        WorkerRole("webhooks", "workers.webhook.role:webhooks"),
        WorkerRole("deliveries", "workers.webhook.sender.role:deliveries"),
    ),
)
