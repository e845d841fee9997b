"""Any interleaving of inserts, attempts, records, resends, faults and revoked shards loses nothing, reorders nothing and sends
nothing twice at once."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workers.webhook.sender.world import World


@pytest.mark.parametrize("failing", [0.0, 0.3, 0.8])
@given(seed=st.integers(0, 2**32), rare=st.booleans())
@settings(max_examples=20, deadline=None)
def test_whatever_happens_everything_is_sent_in_order(failing: float, seed: int, rare: bool) -> None:
    world = World(Random(seed), failing=failing)

    async def acts(world: World) -> None:
        for _ in range(150):
            await world.act(rare=rare)
        await world.drain()
        assert world.parts.places.taken == 0

    world.run(acts)
