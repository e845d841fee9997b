"""The base of workers that share their work by leases: leases are renewed, handed over to other members, and released at the end.

A separate task also renews them while one turn takes longer than a lease.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Final

from projections.consumers.leases import NOTHING, Assignment, MemberFault, MemberState, ShardLeases
from projections.kernel.background_task import TRANSIENT, start_forever
from workers.kernel.wakeups import Waker

LONGEST_TURN: Final = 3600.0
"""Seconds of one turn after which its work counts as stuck and is assigned to another member when the lease has expired."""

_log = logging.getLogger(__name__)


class LeasedWorker:
    """The work of one member. A subclass defines one turn, and calls `_renew` in each."""

    def __init__(self, leases: ShardLeases, waker: Waker) -> None:
        self._leases = leases
        self._waker = waker
        self._assignment: Assignment = NOTHING
        self._renewed = float("-inf")
        self._holds = False
        self._begun = 0.0
        self._stopping = False
        self._fault: MemberFault | None = None
        self._timeline = leases.timeline
        self._task: asyncio.Task[None] | None = None
        self._renewals: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._leases.consumer

    async def start(self) -> None:
        await self._leases.start()
        self._task = start_forever(self._watched_turn, what=self.name, until=lambda: self._stopping)
        self._renewals = start_forever(self._renew_meanwhile, what=f"leases of {self.name}")

    async def stop(self) -> None:
        """Finish the current turn, and release the leases at once."""
        self._stopping = True
        self._waker.wake()
        if self._task is not None:
            await asyncio.wait({self._task})
        await self._finish()
        if self._renewals is not None:
            self._renewals.cancel()
            await asyncio.wait({self._renewals})
        with suppress(*TRANSIENT):
            await self._leases.leave()

    async def _watched_turn(self) -> None:
        self._begun = time.monotonic()
        try:
            await self._turn()
        except Exception as fault:
            since = time.monotonic() if self._fault is None else self._fault.since
            self._fault = MemberFault(since, f"{type(fault).__name__}: {fault}"[:500])
            raise
        self._fault = None

    async def _renew_meanwhile(self) -> None:
        """Renew the leases between two renewals of the turns while one of them takes long, but not for a turn that never ends."""
        third = self._leases.lease / 3
        await asyncio.sleep(third)
        now = time.monotonic()
        ended = self._task is None or (self._task.done() and not self._stopping)
        if now - self._renewed < 1.5 * third or not self._holds or ended:
            return
        if now - self._begun > LONGEST_TURN:
            self._holds = False
            _log.error("%s: one turn has taken %.0f s; its leases are no longer renewed", self.name, now - self._begun)
            return
        assignment = self._assignment
        renewed = await self._leases.renew(self._state)
        epochs = {shard: lease.epoch for shard, lease in renewed.leases.items()}
        if self._assignment is assignment and all(epochs.get(s) == lease.epoch for s, lease in assignment.leases.items()):
            self._assignment = replace(assignment, until=renewed.until, alive=renewed.alive)

    async def _turn(self) -> None:
        raise NotImplementedError(type(self).__name__)

    async def _finish(self) -> None:
        """End the remaining work after the last turn, before the leases are released."""

    @property
    def _busy(self) -> int:
        """The amount of work in progress, for operators."""
        return 0

    @property
    def _warning(self) -> str | None:
        """A sentence on what is less safe on this machine than it could be, for operators; None if there is nothing."""
        return None

    @property
    def _state(self) -> MemberState:
        return MemberState(self._busy, self._fault, self._warning)

    async def _renew(self) -> bool:
        """Renew the leases three times within their duration. Return True if they were renewed by this call."""
        now = time.monotonic()
        if self._timeline != self._leases.timeline:
            await self._begin_on_new_primary()
        elif now - self._renewed < self._leases.lease / 3:
            return False
        else:
            await self._checkpoint()
        renewed = await self._leases.hold(self._state)
        self._holds = bool(renewed.leases)
        released = frozenset(self._releasable(renewed))
        if released:
            await self._release(released)
        retained = {shard: lease for shard, lease in renewed.leases.items() if shard not in released}
        assignment = Assignment(retained, renewed.excess - released, renewed.until, renewed.alive)
        await self._apply_assignment(assignment)
        self._assignment, self._renewed = assignment, now
        return True

    async def _begin_on_new_primary(self) -> None:
        """Release all leases, because the new primary may lack what this member remembers. With new epochs everything is read
        again."""
        timeline = self._leases.timeline
        self._holds = False
        self._assignment, self._renewed = replace(self._assignment, until=0.0), float("-inf")
        await self._leases.leave()
        self._timeline = timeline

    async def _checkpoint(self) -> None:
        """Store the progress of shards before they are handed over."""

    def _releasable(self, assignment: Assignment) -> Collection[int]:
        """Return the shards that can be handed over at once, because they have no work in progress."""
        return assignment.excess

    async def _release(self, shards: Collection[int]) -> None:
        await self._leases.release(shards)

    async def _apply_assignment(self, assignment: Assignment) -> None:
        """Begin the shards that are new in the assignment, and drop those that are no longer in it."""
