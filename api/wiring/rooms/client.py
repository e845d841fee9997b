"""Clients: the callers of the API and their keys. Their events are not relayed to Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.client.aggregate import Client
from domain.client.handlers import ClientHandlers
from projections.client.directory import ClientDirectory
from projections.client.view import CLIENT_VIEW
from projections.kernel.schema.migrate import Migration
from projections.log.executor import CommandExecutor

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer


def _routes() -> Sequence[APIRouter]:
    from api.media.client import drm, routes

    return (routes.routes, drm.routes)


def _services(services: Services) -> Providers:
    get = services.get
    return {ClientHandlers: lambda: ClientHandlers(get(CommandExecutor), get(ClientDirectory))}


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.client import routes as responses

    async def client(root: Client, moment: Moment) -> Any:
        return responses.Client.of_aggregate(root).model_dump(mode="json")

    return {Client.KIND: client}


CLIENT = Room(
    name="client",
    aggregates=(Client,),
    views=(CLIENT_VIEW,),
    migrations=(Migration.read("0003 key use", "client/schema.sql"), Migration.read("0053 names of clients", "client/names.sql")),
    routes=_routes,
    services=_services,
    past_states=_past_states,
    relayed=False,
)
