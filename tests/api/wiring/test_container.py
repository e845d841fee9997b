"""The container of services: made on demand, once, and a fault names the way to it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from api.wiring.container import Environment, Services
from api.wiring.siblings import Alone
from api.wiring.standalone_origin import nobody
from tests.api.serving import NO_FILES
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.known import KnownTargets


class First:
    pass


class Second:
    def __init__(self, first: First) -> None:
        self.first = first


@pytest.fixture
def services() -> Services:
    noon = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)
    return Services(
        {},
        Environment(
            "",
            lambda: noon,
            GuardedClient(),
            files=NO_FILES,
            machine="here",
            siblings=Alone(CollectorRegistry()),
            targets=KnownTargets(GuardedClient),
            callers=nobody,
        ),
    )


def test_a_service_is_made_once_whatever_the_order(services: Services) -> None:
    services.provide({Second: lambda: Second(services.get(First))})
    services.provide({First: First})
    assert services.get(Second).first is services.get(First)
    assert services.all() == {First: services.get(First), Second: services.get(Second)}


def test_two_rooms_cannot_provide_the_same_service(services: Services) -> None:
    services.provide({First: First})
    with pytest.raises(ValueError, match="two rooms provide First"):
        services.provide({First: First})


def test_a_service_that_no_room_provides_is_named_with_the_one_that_needs_it(services: Services) -> None:
    services.provide({Second: lambda: Second(services.get(First))})
    with pytest.raises(LookupError, match="no room provides Second -> First"):
        services.get(Second)


def test_services_that_need_each_other_are_named(services: Services) -> None:
    services.provide({First: lambda: services.get(Second), Second: lambda: services.get(First)})
    with pytest.raises(LookupError, match="services depend on each other: First -> Second -> First"):
        services.get(First)
