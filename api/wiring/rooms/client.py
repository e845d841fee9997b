"""Clients: the callers of the API and their keys. Their events are not relayed to Kafka."""

from __future__ import annotations

from api.wiring.room import Room
from domain.client.aggregate import Client
from domain.client.handlers import AdminLookup
from projections.client.directory import ClientDirectory
from projections.client.view import CLIENT_VIEW
from projections.kernel.schema.migrate import Migration

CLIENT = Room(
    name="client",
    aggregates=(Client,),
    views=(CLIENT_VIEW,),
    migrations=(Migration.read("0003 key use", "client/schema.sql"), Migration.read("0053 names of clients", "client/names.sql")),
    routes=("api.media.client.routes:routes", "api.media.client.drm:routes"),
    services={AdminLookup: ClientDirectory},
    past_states=("api.media.client.routes:past_states",),
    relayed=False,
)
