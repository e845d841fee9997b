"""The container makes services from the types of constructors: each once, and with messages that name who needs what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pytest

from api.wiring.container import Container

HERE = __name__


class Engine:
    pass


class Lookup(Protocol):
    def find(self) -> str: ...


class Queries:
    def find(self) -> str:
        return "found"


@dataclass
class Car:
    engine: Engine
    lookup: Lookup
    wheels: int = 4


class Garage:
    def __init__(self, cars: Car, *, engine: Engine | None, name: str = "garage") -> None:
        self.car = cars
        self.engine = engine
        self.name = name


class Street:
    def __init__(self, garage: Garage, length: float) -> None: ...


class Egg:
    def __init__(self, hen: Hen) -> None: ...


class Hen:
    def __init__(self, egg: Egg) -> None: ...


class Numbers:
    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers


Named = Callable[[str], int]


def seven(engine: Engine) -> Numbers:
    return Numbers(7)


def container() -> Container:
    return Container({Lookup: Queries})


def test_a_service_is_made_once_from_the_types_of_its_parameters() -> None:
    services = container()
    garage = services.get(Garage)
    assert garage.car is services.get(Car)
    assert garage.engine is garage.car.engine
    assert isinstance(garage.car.lookup, Queries)
    assert garage.car.lookup is services.get(Queries), "a port and its implementation are one object"


def test_a_parameter_with_a_default_is_filled_only_by_what_was_named() -> None:
    services = container()
    assert (services.get(Car).wheels, services.get(Garage).name) == (4, "garage")
    named = container()
    named.give(int, 3)
    assert named.get(Car).wheels == 3


def test_a_function_and_a_path_make_services() -> None:
    services = container()
    services.bind({Numbers: seven, Named: f"{HERE}:named", f"{HERE}:Engine": f"{HERE}:Special"})
    assert services.get(Numbers).numbers == (7,)
    assert isinstance(services.get(Engine), Special)
    assert services[Named]("three") == 5


class Special(Engine):
    pass


def named() -> Named:
    return len


def test_a_call_fills_what_it_is_not_given() -> None:
    def call(engine: Engine, *, name: str) -> tuple[Engine, str]:
        return engine, name

    services = container()
    assert services.call(call, name="a") == (services.get(Engine), "a")


def test_a_given_object_precedes_what_would_make_one_and_none_is_an_object() -> None:
    services = container()
    services.give(Engine, None)
    assert services.get(Garage).engine is None


def test_a_scope_has_the_given_objects_and_makes_the_others_itself() -> None:
    services = container()
    engine = Engine()
    services.give(Engine, engine)
    scope = services.scope()
    assert scope.get(Garage).engine is engine
    assert scope.get(Car) is not services.get(Car)
    assert scope.get(Container) is scope
    assert [type(each) for each in scope.made] == [Queries, Queries, Car, Garage]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Street, "Street needs float: no provider"),
        (Egg, "Egg needs Hen needs Egg: they need each other"),
        (Sequence[Car], f"collections.abc.Sequence[{HERE}.Car]: no provider"),
        (Lookup, "Lookup: no provider"),
    ],
)
def test_the_message_of_a_failure_names_who_needs_whom(kind: type[object], message: str) -> None:
    with pytest.raises(LookupError) as error:
        (Container() if kind is Lookup else container())[kind]
    assert error.value.args == (message,)


def test_a_type_that_was_only_imported_for_types_is_a_failure_that_says_so() -> None:
    def unknown(value: NotImported) -> None:  # type: ignore[name-defined]  # noqa: F821 - the mistake that is looked for
        pass

    with pytest.raises(LookupError, match=r"unknown: name 'NotImported' is not defined; its module must import it at run time"):
        container().call(unknown)


def test_a_failure_leaves_the_container_as_it_was() -> None:
    services = container()
    with pytest.raises(LookupError):
        services.get(Street)
    services.give(float, 1.5)
    assert isinstance(services.get(Street), Street)


def test_a_type_has_one_provider() -> None:
    services = container()
    with pytest.raises(ValueError, match="there are two providers of Lookup"):
        services.bind({Lookup: Queries})
