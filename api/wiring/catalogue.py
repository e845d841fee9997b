"""The contributions of all rooms together: aggregates, views, migrations, grants and worker roles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from api.wiring.room import WorkerRole
from api.wiring.rooms import ROOMS
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import Catalogue
from domain.record.record import Record
from projections.kernel.schema.migrate import Grant, Migration
from projections.kernel.schema.view import View, Views
from projections.kernel.sql.partitions import DayTable
from projections.record.view import record_view
from workers.retention import Removal

if TYPE_CHECKING:
    from fastapi import APIRouter

    from workers.event.outcomes.policy import OwnerCommand
    from workers.webhook.policy import Notified

AGGREGATES: tuple[type[AggregateRoot], ...] = tuple(kind for room in ROOMS for kind in room.aggregates)
RECORDS: tuple[type[Record], ...] = tuple(kind for kind in AGGREGATES if issubclass(kind, Record))
RELAYED = frozenset(kind.KIND for room in ROOMS if room.relayed for kind in room.aggregates)
"""The kinds of aggregates whose events are relayed to Kafka."""
WORKER_ROLES: dict[str, WorkerRole] = {role.name: role for room in ROOMS for role in room.worker_roles}


DAY_TABLES: tuple[DayTable, ...] = tuple(table for room in ROOMS for table in room.day_tables)


REMOVALS: tuple[Removal, ...] = tuple(removal for room in ROOMS for removal in room.removals)
"""The rules by which old rows are removed from tables without partitions."""


def _own_views() -> tuple[View[Any], ...]:
    return tuple(view for room in ROOMS for view in room.views)


def _records_without_a_view() -> tuple[type[Record], ...]:
    shown = {kind for view in _own_views() for kind in view.kinds}
    return tuple(kind for kind in RECORDS if kind.KIND not in shown)


RECORD_VIEW = record_view(_records_without_a_view())


def notified() -> dict[str, Notified]:
    """Return the meaning of domain events for the webhooks of an Event, by the kinds of their aggregates."""
    paths = [room.notified for room in ROOMS if room.notified is not None]
    return {kind: meaning for path in paths for kind, meaning in resolve_name(path).items()}


def owners() -> dict[str, OwnerCommand]:
    """Return the commands that report the outcomes of jobs to their owners, by the kinds of the owners."""
    return {kind: resolve_name(path) for room in ROOMS for kind, path in room.owners.items()}


def routes() -> Sequence[APIRouter]:
    """Return the routers of all rooms, in the order of the documentation."""
    named = [resolve_name(path) for room in ROOMS for path in room.routes]
    return [router for each in named for router in (each if isinstance(each, Sequence) else [each])]


def catalogue() -> Catalogue:
    return Catalogue(AGGREGATES)


@cache
def views() -> Views:
    return Views((*_own_views(), RECORD_VIEW))


def migrations() -> list[Migration]:
    """Return the migrations in the order of their application. A released migration is never edited; a change is a new file."""
    return sorted((migration for room in ROOMS for migration in room.migrations), key=lambda migration: migration.name)


def grants() -> list[Grant]:
    """Return the grants in which the running product may do less, or more, than read and write every table."""
    return [grant for room in ROOMS for grant in room.grants]
