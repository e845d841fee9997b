"""Work in rounds: look for what there is to do, do it, sleep until woken; under leases, and whatever fails meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from domain.kernel.errors import Unavailable
from projections.consumers.shares import NOTHING, Holding, Shares
from workers.kernel.again import again
from workers.kernel.wake import Sleeper


class Rounds:
    """Base of one member's part in something that is shared out by leases."""

    def __init__(self, shares: Shares, sleeper: Sleeper) -> None:
        self._shares = shares
        self._sleeper = sleeper
        self._holding: Holding = NOTHING
        self._renewed = float("-inf")
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._shares.start()
        what = self._shares.consumer
        self._task = asyncio.create_task(again(self._turn, what=what, until=lambda: self._stopping), name=what)

    async def stop(self) -> None:
        """Finish the round under way, and let others go on at once."""
        self._stopping = True
        self._sleeper.wake()
        if self._task is not None:
            await self._task
        await self._let_go()
        with suppress(Unavailable):
            await self._shares.leave()

    async def _turn(self) -> None:
        """One round, and the sleep until the next."""
        raise NotImplementedError(type(self).__name__)

    async def _let_go(self) -> None:
        """Of what may still be under way when there are no more rounds."""

    @property
    def _busy(self) -> int:
        """How much is under way, for operators."""
        return 0

    async def _hold(self) -> None:
        """Between two rounds nothing is under way, so what others lack can go at once."""
        now = time.monotonic()
        if now - self._renewed < self._shares.lease / 3:
            return
        held = await self._shares.hold(busy=self._busy)
        if held.surplus:
            await self._shares.release(held.surplus)
        kept = {shard: share for shard, share in held.shares.items() if shard not in held.surplus}
        self._holding, self._renewed = Holding(kept, until=held.until), now
