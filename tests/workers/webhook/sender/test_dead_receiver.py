"""The memory that deliveries to a receiver cost that is dead for hours."""

from __future__ import annotations

from random import Random

from tests.workers.webhook.sender.world import WEBHOOKS, Row, World
from workers.webhook.sender.retries import DELAYS
from workers.webhook.sender.timer import SPARE

HOURS, STEP, EVENTS = 3, 30, 5
"""The delay of two hours is over by then; the next one, of five, would not be over in six either."""


def test_a_dead_receiver_costs_no_memory_for_deliveries_that_wait() -> None:
    """There are ten Events a minute, each with its own ordering key."""
    world = World(Random(1), failing=1.0, delays=DELAYS, places=512)
    world.scheduler.waiting_each = 1000
    world.meanwhile = lambda: None  # type: ignore[method-assign]
    hook = WEBHOOKS[0][0]
    for _ in range(HOURS * 3600 // STEP):
        for _ in range(EVENTS):
            world.position += 1
            world.table[hook, world.position, f"event-{world.position}"] = Row(due=world.now)
        world.reader.has_new = True
        for _ in range(6):
            world.read()
            while (attempt := world.scheduler.next(world.now)) is not None:
                world.in_flight.append(attempt)
            while world.in_flight:
                world.land()
            while world.unwritten:
                world.write()
        world.now += STEP + 1
        assert world.scheduler.timer.entries <= 2 + SPARE
        for endpoint in world.scheduler.endpoints.values():
            assert endpoint.queues.timed_entries <= 2 * len(endpoint.queues)
            assert len(endpoint.queues) <= EVENTS + 10, "no queue is kept while the endpoint rests"
    assert len(world.table) == HOURS * 3600 // STEP * EVENTS
    world.now += 2 * 86400.0
    world.drain()
    assert all(row.done for row in world.table.values())
