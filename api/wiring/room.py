"""Room: one part of the product, with everything that it brings, in one place.

A process imports only what it needs: `routes`, `services`, `past_states`, `notified`, `owners`, `followups` and the `make` of a
worker role are functions that import inside. What every process needs (aggregates, views, migrations) is imported at the top of the
room's module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.kernel.aggregate import AggregateRoot
from projections.kernel.migrate import Grant, Migration
from projections.kernel.partitions import DayTable
from projections.kernel.view import View

if TYPE_CHECKING:
    from api.audit.past_states import Renderer
    from api.http.router import Router
    from api.wiring.container import Providers, Services
    from workers.outcomes.owner_commands import Followup, OwnerCommand
    from workers.retention import Removal
    from workers.webhooks.policy import Notified
    from workers.wiring import SharedWorkers, Worker, WorkerContext


@dataclass(frozen=True)
class WorkerRole:
    """What `medialedger workers NAME` runs. `make` gives the workers of one process, not yet started."""

    name: str
    make: Callable[[WorkerContext, SharedWorkers], Sequence[Worker]]
    needs_kafka: bool = False
    inside: bool = False
    """Whether it reaches nothing but the database of the product, and so works while the installation is quiet."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """`migrations` are applied in the order of their names, over all rooms. `relayed`: whether Kafka gets the room's events."""

    name: str
    aggregates: Sequence[type[AggregateRoot]] = ()
    views: Sequence[View] = ()
    migrations: Sequence[Migration] = ()
    grants: Sequence[Grant] = ()
    routes: Callable[[], Sequence[Router]] = tuple
    services: Callable[[Services], Providers] = lambda services: {}
    past_states: Callable[[Services], Mapping[str, Renderer]] = lambda services: {}
    """Renders the past states of the room's aggregates, by their kind, as a GET shows them today."""
    notified: Callable[[], Mapping[str, Notified]] = dict
    """What the domain events of the room's aggregates mean to the webhooks of an Event, by the kinds of the aggregates."""
    owners: Callable[[], Mapping[str, OwnerCommand]] = dict
    """The command that an outcome of a job is to its owner, by the kinds of the room's aggregates that own jobs."""
    followups: Callable[[WorkerContext], Mapping[str, Followup]] = lambda context: {}
    """What is done after an owner was told of an outcome, by the kinds of the owners."""
    worker_roles: Sequence[WorkerRole] = ()
    day_tables: Sequence[DayTable] = ()
    removals: Callable[[], Sequence[Removal]] = tuple
    """What is removed by age from tables without partitions."""
    relayed: bool = True
