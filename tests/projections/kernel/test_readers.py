"""Tests of how long a reader rests after what it has taken, while there are others."""

from __future__ import annotations

import pytest

from projections.kernel.database.readers import ClientBudget, ClientBudgets, Reader


class World:
    """Two readers, in a second of which one gets a quarter."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pressure = True
        self.readers = ClientBudgets(
            ClientBudget(part=0.25, burst=0.5, rest=2.0), pressure=lambda: self.pressure, clock=lambda: self.now
        )
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
    assert world.first.rest == pytest.approx(0.4), "four times as long"
    assert world.second.rest == 0


def test_a_used_budget_recovers_with_time(world: World) -> None:
    world.first.took(0.6)
    world.now += 0.2
    assert world.first.rest == pytest.approx(0.2)
    world.now += 0.7
    world.sent("two")
    world.first.took(0.3)
    assert world.first.rest == pytest.approx(0.7), "0.6 less 0.225, and 0.3: 0.175 too much"


def test_a_single_client_does_not_pause(world: World) -> None:
    world.first.took(1.0)
    assert world.first.rest
    world.now += 1.0
    world.sent("one")
    assert world.first.rest == 0, "the other one has sent nothing for a second"
    world.first.took(0.5)
    world.sent("two")
    assert world.first.rest == pytest.approx(2.0)
    assert world.second.rest == 0


def test_nobody_rests_while_there_is_time_for_all(world: World) -> None:
    world.first.took(1.0)
    world.pressure = False
    assert world.first.rest == 0
    world.pressure = True
    assert world.first.rest == pytest.approx(2.0)


def test_no_rest_is_longer_than_the_longest_however_long_it_was_alone(world: World) -> None:
    for _ in range(100):
        world.now += 10
        world.first.took(10)
    world.sent("two")
    assert world.first.rest == pytest.approx(2.0)
    world.now += 1.9
    world.sent("two")
    assert world.first.rest == pytest.approx(0.1)


def test_the_product_itself_has_no_share() -> None:
    itself = Reader("")
    itself.took(1000)
    assert itself.rest == 0


def test_clients_with_a_full_budget_are_dropped(world: World) -> None:
    for number in range(5000):
        world.now += 1
        world.sent(f"address {number}").took(0.001)
    assert len(world.readers._taken) <= 1001
