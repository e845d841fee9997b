"""Tests of how long a reader rests after what it has taken, while there are others."""

from __future__ import annotations

from math import e, log

import pytest

from projections.kernel.database.readers import ClientBudget, ClientBudgets, Reader


class World:
    """Two readers, each of which may take half a second within about two seconds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.readers = ClientBudgets(ClientBudget(seconds=0.5, window=2.0), clock=lambda: self.now)
        self.first, self.second = self.sent("one"), self.sent("two")

    def sent(self, name: str) -> Reader:
        return self.readers.sent(name)


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_moments_are_free(world: World) -> None:
    world.first.took(0.5)
    assert world.first.rest == 0
    world.first.took(0.1)
    assert world.first.rest == pytest.approx(2 * log(1.2))
    assert world.second.rest == 0


def test_a_used_budget_recovers_with_time(world: World) -> None:
    world.first.took(0.5 * e)
    assert world.first.rest == pytest.approx(2.0)
    world.now += 0.5
    assert world.first.rest == pytest.approx(1.5)
    world.now += 1.5
    world.sent("two")
    assert world.first.rest == pytest.approx(0.0)


def test_a_single_client_does_not_pause(world: World) -> None:
    world.first.took(1.0)
    assert world.first.rest
    world.now += 1.0
    world.sent("one")
    assert world.first.rest == 0, "the other one has sent nothing for a second"
    world.sent("two")
    assert world.first.rest == pytest.approx(2 * log(2) - 1)
    assert world.second.rest == 0


def test_only_readers_that_have_taken_more_than_the_mean_rest(world: World) -> None:
    world.first.took(0.9)
    world.second.took(0.8)
    assert world.second.rest == 0
    assert world.first.rest == pytest.approx(2 * log(0.9 / 0.8)), "until its use is that of the other one"
    world.sent("three").took(0.2)
    assert world.first.rest == pytest.approx(2 * log(0.9 / 0.5))
    assert world.second.rest == pytest.approx(2 * log(0.8 / 0.55)), "two that take much do not excuse each other"


def test_no_rest_is_long_however_long_it_was_alone(world: World) -> None:
    for _ in range(1000):
        world.now += 1
        world.first.took(1)
    world.sent("two")
    assert 2.0 < world.first.rest < 4.0


def test_the_product_itself_has_no_share() -> None:
    itself = Reader("")
    itself.took(1000)
    assert itself.rest == 0


def test_clients_that_have_left_are_forgotten(world: World) -> None:
    for number in range(5000):
        world.now += 1
        world.sent(f"address {number}").took(0.01)
    assert len(world.readers._uses) <= 1000
