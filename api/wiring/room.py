"""A room: one part of the product, with all its contributions in one place.

A process imports only the modules that it needs: `routes`, `services`, `past_states`, `notified`, `owners`, `followups` and the
`make` of a worker role are functions that import inside. The parts that every process needs (aggregates, views, migrations) are
imported at the top of the room's module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from domain.kernel.aggregate import AggregateRoot
from projections.kernel.schema.migrate import Grant, Migration
from projections.kernel.schema.view import View
from projections.kernel.sql.partitions import DayTable

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Renderer
    from api.wiring.container import Providers, Services
    from workers.event.outcomes.policy import Followup, OwnerCommand
    from workers.retention import Removal
    from workers.webhook.policy import Notified
    from workers.wiring import SharedWorkers, Worker, WorkerContext


@dataclass(frozen=True)
class WorkerRole:
    """A role of `medialedger workers NAME`. `make` returns the workers of one process, not yet started."""

    name: str
    make: Callable[[WorkerContext, SharedWorkers], Sequence[Worker]]
    needs_kafka: bool = False
    inside: bool = False
    """True if the role reaches nothing but the database of the product, so that it works while the installation is quiet."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """A part of the product. `migrations` are applied in the order of their names over all rooms. `relayed` is True if the room's
    events are relayed to Kafka."""

    name: str
    aggregates: Sequence[type[AggregateRoot]] = ()
    views: Sequence[View[Any]] = ()
    migrations: Sequence[Migration] = ()
    grants: Sequence[Grant] = ()
    routes: Callable[[], Sequence[APIRouter]] = tuple
    services: Callable[[Services], Providers] = lambda services: {}
    past_states: Callable[[Services], Mapping[str, Renderer]] = lambda services: {}
    """Renders the past states of the room's aggregates, by their kind, as a GET shows them today."""
    notified: Callable[[], Mapping[str, Notified]] = dict
    """The meaning of the domain events of the room's aggregates for the webhooks of an Event, by the kinds of the aggregates."""
    owners: Callable[[], Mapping[str, OwnerCommand]] = dict
    """The command that reports an outcome of a job to its owner, by the kinds of the room's aggregates that own jobs."""
    followups: Callable[[WorkerContext], Mapping[str, Followup]] = lambda context: {}
    """The actions that follow after an owner was notified of an outcome, by the kinds of the owners."""
    worker_roles: Sequence[WorkerRole] = ()
    day_tables: Sequence[DayTable] = ()
    removals: Callable[[], Sequence[Removal]] = tuple
    """The rules by which old rows are removed from tables without partitions."""
    relayed: bool = True
