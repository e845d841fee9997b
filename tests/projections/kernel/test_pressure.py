"""Tests of the times when the event loop counts as busy."""

from __future__ import annotations

import time

import pytest

from projections.kernel.database.readers import Pressure, busy_seconds


class World:
    """A thread that is busy for a part of the time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.busy = 7.0
        self.pressure = Pressure(busy=lambda: self.busy, clock=lambda: self.now)

    def passes(self, seconds: float, *, part: float) -> bool:
        self.now += seconds
        self.busy += seconds * part
        return self.pressure()


@pytest.fixture
def world() -> World:
    return World()


def test_there_is_pressure_from_half_of_the_time_on(world: World) -> None:
    assert not world.pressure()
    assert not world.passes(0.3, part=0.4)
    assert world.passes(0.3, part=0.6)


def test_a_short_time_gives_no_verdict(world: World) -> None:
    assert not world.passes(0.2, part=0.9)
    assert not world.passes(0.2, part=0.0), "0.18 of 0.4 s"
    assert world.passes(10, part=0.9)


def test_pressure_lasts_for_some_seconds(world: World) -> None:
    assert world.passes(0.3, part=1.0)
    assert world.passes(4.9, part=0.0)
    assert not world.passes(0.2, part=0.0)


def test_the_time_of_this_thread_grows_with_its_work() -> None:
    before, until = busy_seconds(), time.monotonic() + 0.05
    while time.monotonic() < until:
        pass
    assert busy_seconds() - before > 0.02
