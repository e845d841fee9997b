"""A room: one part of the product, with all its contributions in one place.

A process imports only the modules that it needs. So a room names those that only some processes need by their paths, as
`package.module:name`; what every process needs (aggregates, views, migrations) is imported at the top of the room's module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.kernel.aggregate import AggregateRoot
from projections.kernel.schema.migrate import Grant, Migration
from projections.kernel.schema.view import View
from projections.kernel.sql.partitions import DayTable
from workers.retention import Removal


@dataclass(frozen=True)
class WorkerRole:
    """A role of `medialedger workers NAME`. `make` is the path of a function that returns the workers of one process, not yet
    started; the container fills its parameters, except for `arguments`."""

    name: str
    make: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    needs: Sequence[str] = ()
    """The paths of services that are made although no worker of the role takes them, such as a check at the start."""
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
    routes: Sequence[str] = ()
    """The paths of routers, or of sequences of them."""
    services: Mapping[Any, Any] = field(default_factory=dict)
    """What makes the services that the container cannot make by their constructors, by type: see `Container.bind`."""
    past_states: Sequence[str] = ()
    """Functions that return the renderers of past states of the room's aggregates, by their kind, as a GET shows them today."""
    notified: str | None = None
    """The meaning of the domain events of the room's aggregates for the webhooks of an Event, by the kinds of the aggregates."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """The command that reports an outcome of a job to its owner, by the kinds of the room's aggregates that own jobs."""
    followups: Mapping[str, str] = field(default_factory=dict)
    """The classes of actions that follow after an owner was notified of an outcome, by the kinds of the owners."""
    worker_roles: Sequence[WorkerRole] = ()
    day_tables: Sequence[DayTable] = ()
    removals: Sequence[Removal] = ()
    """The rules by which old rows are removed from tables without partitions."""
    relayed: bool = True
