"""The half-open circuit breaker of an endpoint: the row of its next attempt is read whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.workers.webhook.sender.world import WEBHOOKS, Row, World
from workers.webhook.sender import reader
from workers.webhook.sender.endpoint import EndpointSender
from workers.webhook.sender.endpoint_state import RESTING_SECONDS, Phase

HOOKS = WEBHOOKS[0]


@pytest.fixture
def world() -> World:
    """Return a world whose endpoints rest so long that the next round makes them half-open. Nothing happens automatically."""
    world = World(Random(1), failing=1.0)
    world.meanwhile = lambda: None  # type: ignore[method-assign]
    for hook in HOOKS:
        for position in range(1, 20):
            world.table[hook, position, f"event-{position}"] = Row(due=world.now)
    while len(world.scheduler.endpoints) < len(HOOKS) or not all(_is(endpoint, Phase.RESTING) for endpoint in endpoints(world)):
        world.now += 1.0
        world.read()
        world.start()
        world.land()
        world.write()
    while world.unwritten:
        world.write()
    world.now += RESTING_SECONDS
    return world


def _is(endpoint: EndpointSender, phase: Phase) -> bool:
    return endpoint.state.phase is phase


def endpoints(world: World) -> list[EndpointSender]:
    return list(world.scheduler.endpoints.values())


def probed(world: World) -> int:
    """Return the number of endpoints that get an attempt in the next rounds."""
    for _ in range(3):
        world.read()
    assert all(_is(endpoint, Phase.PROBING) for endpoint in endpoints(world))
    attempts = iter(lambda: world.scheduler.next(world.now), None)
    return len({attempt.row.webhook for attempt in attempts})


def once(act: Callable[[], object]) -> Callable[[], None]:
    acts = [act]

    def meanwhile() -> None:
        if acts:
            acts.pop()()

    return meanwhile


def test_one_that_is_to_be_read_again_while_its_row_is_read(world: World) -> None:
    """A delivery was resent, or the listener has reconnected."""
    world.meanwhile = once(world.reader.reload)  # type: ignore[method-assign]
    assert probed(world) == len(HOOKS)


def test_those_that_one_round_has_no_room_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_QUEUES", 1)
    assert probed(world) == len(HOOKS)
