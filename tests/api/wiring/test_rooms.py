"""The list of rooms: what its parts must have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any

from api.audit.past_states import PastStates
from api.wiring.catalogue import AGGREGATES, RELAYED, WORKER_ROLES, migrations
from api.wiring.rooms import ROOMS
from api.wiring.services import ROUTES
from domain.client.aggregate import Client
from tests.architecture.sources import ROOT


def test_no_two_rooms_have_one_name() -> None:
    assert len({room.name for room in ROOMS}) == len(ROOMS)


def test_every_sql_file_of_the_schema_belongs_to_one_migration() -> None:
    texts = [path.read_text() for path in (ROOT / "projections").rglob("*.sql")]
    assert sorted(texts) == sorted(migration.statements for migration in migrations())


def test_migrations_are_ordered_over_all_rooms() -> None:
    names = [migration.name for migration in migrations()]
    assert names == sorted(names)
    assert len(set(names)) == len(names)


def test_only_clients_are_kept_from_kafka() -> None:
    assert {kind.KIND for kind in AGGREGATES} - RELAYED == {Client.KIND}


def test_no_two_rooms_have_one_worker_role() -> None:
    assert len(WORKER_ROLES) == sum(len(room.worker_roles) for room in ROOMS)


def test_every_aggregate_has_a_renderer_of_its_past_states(services_by_type: dict[Any, Any]) -> None:
    assert services_by_type[PastStates].kinds == {kind.KIND for kind in AGGREGATES}


def test_a_room_with_routes_is_served() -> None:
    named = [resolve_name(path) for room in ROOMS for path in room.routes]
    routers = [router for each in named for router in (each if isinstance(each, Sequence) else (each,))]
    assert routers == list(ROUTES)
