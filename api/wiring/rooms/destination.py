"""Destinations: the platforms and servers that publications go to, and their custom properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.destination.handlers import DestinationHandlers, DestinationPropertyHandlers
from domain.record.handlers import RecordHandlers
from domain.record.kinds.destination import Destination
from domain.record.ports import RecordRow
from domain.record.property_handlers import PropertyHandlers
from domain.record.record import Record
from projections.custom_property.queries import PropertyQueries
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.record.history import RecordHistory
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from workers.publication.trial import TargetTrials

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer


def _routes() -> Sequence[APIRouter]:
    from api.media import destination, destination_property

    return (destination.routes, destination_property.routes)


def _services(services: Services) -> Providers:
    get, environment = services.get, services.environment
    return {
        TargetTrials: lambda: TargetTrials(environment.targets, refused=environment.refused_targets),
        DestinationHandlers: lambda: DestinationHandlers(
            get(CommandExecutor), get(RecordQueries), vault=get(Vault), trial=get(TargetTrials), deletions=get(RecordHandlers)
        ),
        DestinationPropertyHandlers: lambda: DestinationPropertyHandlers(
            get(CommandExecutor), get(RecordQueries), properties=get(PropertyQueries), handlers=get(PropertyHandlers)
        ),
    }


def destination_handlers(
    database: Database,
    executor: CommandExecutor,
    *,
    streams: Streams,
    records: RecordQueries,
    vault: Vault,
    trial: TargetTrials,
) -> DestinationHandlers:
    """Return the use cases of destinations for workers and `medialedger destination`."""
    history = RecordHistory(streams, records, properties=PropertyQueries(database))
    deletions = RecordHandlers(executor, history.at(None))
    return DestinationHandlers(executor, records, vault=vault, trial=trial, deletions=deletions)


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.destination import DESTINATIONS
    from api.media.destination_property import PROPERTIES

    def renderer(resource: Any) -> Renderer:
        async def record(root: Record, moment: Moment) -> Any:
            return resource.shape(RecordRow.of(root))

        return record

    return {resource.kind.KIND: renderer(resource) for resource in (DESTINATIONS, PROPERTIES)}


DESTINATION = Room(
    name="destination",
    aggregates=(Destination,),
    routes=_routes,
    services=_services,
    past_states=_past_states,
)
