"""Base of the workers that share their work by leases: they are renewed, handed over to other members, and released at the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress

from projections.consumers.leases import NOTHING, Assignment, ShardLeases
from projections.kernel.background_task import TRANSIENT, run_forever
from workers.kernel.wakeups import Waker


class LeasedWorker:
    """The share of one member. A subclass defines one turn, and calls `_renew` in each."""

    def __init__(self, leases: ShardLeases, waker: Waker) -> None:
        self._leases = leases
        self._waker = waker
        self._assignment: Assignment = NOTHING
        self._renewed = float("-inf")
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._leases.consumer

    async def start(self) -> None:
        await self._leases.start()
        work = run_forever(self._turn, what=self.name, until=lambda: self._stopping)
        self._task = asyncio.create_task(work, name=self.name)

    async def stop(self) -> None:
        """Finish the turn under way, and release the leases at once."""
        self._stopping = True
        self._waker.wake()
        if self._task is not None:
            await asyncio.wait({self._task})
        await self._finish()
        with suppress(*TRANSIENT):
            await self._leases.leave()

    async def _turn(self) -> None:
        raise NotImplementedError(type(self).__name__)

    async def _finish(self) -> None:
        """After the last turn, before the leases are released: end the work under way."""

    @property
    def _busy(self) -> int:
        """How much work is under way, for operators."""
        return 0

    async def _renew(self) -> bool:
        """Renew the leases three times within their duration. Returns whether it did now."""
        now = time.monotonic()
        if now - self._renewed < self._leases.lease / 3:
            return False
        await self._checkpoint()
        held = await self._leases.hold(busy=self._busy)
        released = frozenset(self._releasable(held))
        if released:
            await self._release(released)
        kept = {shard: lease for shard, lease in held.leases.items() if shard not in released}
        assignment = Assignment(kept, held.excess - released, held.until)
        await self._assigned(assignment)
        self._assignment, self._renewed = assignment, now
        return True

    async def _checkpoint(self) -> None:
        """Store the progress of shards before they are handed over."""

    def _releasable(self, held: Assignment) -> Collection[int]:
        """The shards that can be handed over at once, since they have no work under way."""
        return held.excess

    async def _release(self, shards: Collection[int]) -> None:
        await self._leases.release(shards)

    async def _assigned(self, assignment: Assignment) -> None:
        """Begin the shards that are new in the assignment, and drop those that are no longer in it."""
