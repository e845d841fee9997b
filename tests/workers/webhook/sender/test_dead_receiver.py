"""The memory and the turns that receivers cost that do not answer."""

from __future__ import annotations

import asyncio
from random import Random
from uuid import UUID

from tests.workers.webhook.sender.world import WEBHOOKS, World
from workers.webhook.sender.retries import DELAYS

HOURS, STEP, EVENTS = 3, 30, 2
"""The delay of two hours is over by then; the next one, of five, would not be over in six either."""


def test_a_dead_receiver_costs_no_memory_for_deliveries_that_wait() -> None:
    """There are four Events a minute, each with its own ordering key."""
    world = World(Random(1), failing=1.0, delays=DELAYS, places=512, rows_each=1000)
    world.faults = 0.0
    webhook = WEBHOOKS[0][0]

    async def hours(world: World) -> None:
        for _ in range(HOURS * 3600 // STEP):
            for _ in range(EVENTS):
                world.position += 1
                world.put((webhook, world.position, f"event-{world.position}"))
            await asyncio.sleep(STEP + 1)
            for endpoint in world.tasks:
                assert len(endpoint._lanes) <= EVENTS + 16, "no ordering key is in memory while the endpoint rests"
        assert len(world.table) == HOURS * 3600 // STEP * EVENTS
        world.skip(2 * 86400.0)
        await world.drain()
        assert all(row.done for row in world.table.values())

    world.run(hours)


def test_half_of_two_thousand_receivers_hang_and_the_others_get_theirs() -> None:
    """Each of them has a delivery at the start, and gets another one a minute later."""
    world = World(Random(1), delays=DELAYS, places=512, rows_each=50)
    world.faults = 0.0
    webhooks = [UUID(int=1000 + number) for number in range(2000)]
    world.hanging = frozenset(webhooks[::2])
    healthy = webhooks[1::2]

    async def minutes(world: World) -> None:
        for position in (1, 2):
            for webhook in webhooks:
                world.put((webhook, position, "a"))
            await asyncio.sleep(60.0)
            assert all(world.table[webhook, position, "a"].done for webhook in healthy)
        assert world.most_in_flight <= 512

    world.run(minutes)


def test_a_proven_endpoint_does_not_wait_for_any_that_hang() -> None:
    """All receivers but one hang, and fail for the first time when the delivery for the other one comes."""
    world = World(Random(1), delays=DELAYS, places=16, rows_each=50)
    world.faults = 0.0
    webhooks = [UUID(int=1000 + number) for number in range(200)]
    proven, *others = webhooks
    world.hanging = frozenset(others)

    async def seconds(world: World) -> None:
        world.put((proven, 1, "a"))
        await asyncio.sleep(5.0)
        for webhook in others:
            world.put((webhook, 2, "a"))
        await asyncio.sleep(5.0)
        world.put((proven, 3, "a"))
        await asyncio.sleep(5.0)
        assert world.table[proven, 3, "a"].done

    world.run(seconds)
