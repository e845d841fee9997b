"""Names that clients rely on: aggregates, topics, streams, golden files; and the roles of every route."""

from __future__ import annotations

import re

import pytest
from fastapi import APIRouter

from api.http.routing import OPEN, Route, routes_of
from api.kernel.auth import Role
from api.speke.surface import KEY_PROVIDER
from api.wiring.catalogue import AGGREGATES, catalogue
from api.wiring.services import ROUTES
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import FirstEvent
from tests.golden.samples import golden_file

# Past participles that do not end in -ed.
IRREGULAR = {"broken", "set", "sent", "made", "begun", "taken", "held", "put", "deleted", "reset", "withdrawn"}
DECLARED = list(routes_of(ROUTES))
_OPEN_OF_THE_ENGINE = [
    "",
    "jobs",
    "jobs/{job_id}",
    "jobs/counts",
    "jobs/{job_id}/tasks",
    "tasks",
    "logs/{job_id}",
    "logs/{job_id}/stream",
    "dashboard",
    "dashboard/stream",
    "dashboard.html",
]
OPEN_TO_ALL = {
    *("/livez", "/readyz", "/metrics", "/asyncapi.json", "/media/{contentId}/{file}"),
    "/api/provision/callback/{template}/{infrastructure}",  # signed by the service
    *("/", "/console/", "/console/{path}"),  # files without content of the catalogue
    "/console/session",  # it is how one gets in
    *("/origin/live/{name}", "/origin/live/{name}/{file}"),
    *(f"/engine/{path}" for path in _OPEN_OF_THE_ENGINE),
}

every_aggregate = pytest.mark.parametrize("aggregate", AGGREGATES, ids=[aggregate.KIND for aggregate in AGGREGATES])
every_router = pytest.mark.parametrize("routes", ROUTES, ids=[next(routes_of([routes])).documented_path for routes in ROUTES])


def test_no_two_aggregates_and_no_two_events_share_a_name() -> None:
    assert len({aggregate.KIND for aggregate in AGGREGATES}) == len(AGGREGATES)
    topics = [event.TOPIC for aggregate in AGGREGATES for event in aggregate.EVENTS]
    assert len(set(topics)) == len(topics)


@every_aggregate
def test_the_events_that_begin_a_stream_come_first_in_the_list_and_know_their_aggregate(aggregate: type[AggregateRoot]) -> None:
    begin = [event for event in aggregate.EVENTS if issubclass(event, FirstEvent)]
    assert begin
    assert list(aggregate.EVENTS[: len(begin)]) == begin
    assert all(event.AGGREGATE is aggregate for event in begin)


def test_every_event_is_of_an_aggregate() -> None:
    """The rules below go through the events of each aggregate."""
    assert {event for aggregate in AGGREGATES for event in aggregate.EVENTS} == set(catalogue().events.values())


@every_aggregate
def test_a_topic_is_the_aggregate_and_what_happened_to_it(aggregate: type[AggregateRoot]) -> None:
    for event in aggregate.EVENTS:
        assert re.fullmatch(r"[a-z][a-z_]*\.[a-z0-9]+(_[a-z0-9]+)*", event.TOPIC)
        kind, _, verb = event.TOPIC.partition(".")
        assert kind == aggregate.KIND
        last = verb.rsplit("_", 1)[-1]
        assert last.endswith("ed") or last in IRREGULAR, f"{event.TOPIC} is not named in the past tense"


@every_aggregate
def test_a_topic_is_spelled_as_its_class_is(aggregate: type[AggregateRoot]) -> None:
    for event in aggregate.EVENTS:
        words = re.findall(r"[A-Z][a-z0-9]*", event.__name__)
        spelled = "_".join(words).lower()
        assert spelled in (event.verb(), f"{event.aggregate_kind()}_{event.verb()}")


@every_aggregate
def test_every_event_has_a_golden_file(aggregate: type[AggregateRoot]) -> None:
    assert [event.TOPIC for event in aggregate.EVENTS if not golden_file(event).exists()] == []


@every_aggregate
def test_no_event_has_a_member_for_a_secret(aggregate: type[AggregateRoot]) -> None:
    """Secrets lie in the vault; an event may hold a hash, a fingerprint or a reference."""
    forbidden = re.compile(r"(password|secret|api_key|token)$")
    members = [(event.TOPIC, name) for event in aggregate.EVENTS for name in event.model_fields]
    assert [(topic, name) for topic, name in members if forbidden.search(name)] == []


@every_aggregate
def test_every_older_version_of_an_event_can_be_lifted_to_the_next(aggregate: type[AggregateRoot]) -> None:
    """The library's convention; the golden files of the older versions stay."""
    for event in aggregate.EVENTS:
        assert event.class_version >= 1
        for version in range(1, event.class_version):
            assert callable(getattr(event, f"upcast_v{version}_v{version + 1}"))


@every_aggregate
def test_an_aggregate_can_apply_all_that_can_happen_to_it(aggregate: type[AggregateRoot]) -> None:
    """By an applier of the event's name, or because it takes the facts of every event as they are."""
    if aggregate.when is AggregateRoot.when:
        assert [event.TOPIC for event in aggregate.EVENTS if not hasattr(aggregate, f"_when_{event.verb()}")] == []


@every_router
def test_every_route_says_which_roles_may_call_it(routes: APIRouter) -> None:
    for route in routes_of([routes]):
        says_which_roles_may_call_it(route)


def says_which_roles_may_call_it(route: Route) -> None:
    """A route without a key is the exception and is named here."""
    if route.permission is OPEN:
        assert route.documented_path in OPEN_TO_ALL
    else:
        assert route.permission.roles
        assert route.permission.roles <= set(Role)
        assert Role.ADMIN in route.permission.roles, "admin may do everything"


@every_router
def test_a_role_that_only_reads_cannot_change_anything(routes: APIRouter) -> None:
    for route in routes_of([routes]):
        leaves_changes_to_other_roles(route)


def leaves_changes_to_other_roles(route: Route) -> None:
    """viewer and auditor read, keys only requests content keys, and operators do not manage clients."""
    if route.permission is OPEN:
        return
    if route.surface is KEY_PROVIDER:
        assert route.permission.roles == {Role.KEYS, Role.OPERATOR, Role.ADMIN}
        return
    if route.method != "GET":
        assert route.permission.roles.isdisjoint({Role.VIEWER, Role.AUDITOR, Role.KEYS})
    if route.documented_path.startswith("/api/audit") and route.method == "GET":
        assert route.permission.roles == {Role.AUDITOR, Role.ADMIN}
    if route.documented_path.startswith("/api/client"):
        assert route.permission.roles == {Role.ADMIN}
    assert Role.KEYS not in route.permission.roles


def test_no_two_routes_have_one_method_and_path() -> None:
    shapes = [(route.method, re.sub(r"\{[^}]*\}", "{}", route.documented_path).rstrip("/")) for route in DECLARED]
    assert sorted(shape for shape in shapes if shapes.count(shape) > 1) == []
