"""The base of workers that share their work by leases: leases are renewed, handed over to other members, and released at the end.

The keeper of the process renews them, also while one turn takes longer than a lease. A turn adopts what was renewed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Final

from projections.consumers.leases import NOTHING, Assignment, MemberFault, MemberState, Renewal, ShardLease, ShardLeases
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
        """The leases that the turns have adopted."""
        self._offered: Assignment | None = None
        """The leases as they were renewed since then."""
        self._asked: Assignment | None = None
        self._gone_back = self._away = False
        self._renewed = float("-inf")
        self._begun = float("inf")
        self._stopping = False
        self._fault: MemberFault | None = None
        self._timeline = leases.timeline
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._leases.consumer

    async def start(self) -> None:
        await self._leases.start()
        self._task = start_forever(self._watched_turn, what=self.name, until=lambda: self._stopping)
        await self._leases.keeper.add(self, lease=self._leases.lease)

    async def stop(self) -> None:
        """Finish the current turn, and release the leases at once."""
        self._stopping = True
        self._wake()
        if self._task is not None:
            await asyncio.wait({self._task})
        await self._finish()
        if self._task is not None:
            await self._leases.keeper.remove(self)
        with suppress(*TRANSIENT):
            await self._leases.leave()

    def _wake(self) -> None:
        """End the wait of the current turn."""
        self._waker.wake()

    async def _watched_turn(self) -> None:
        self._begun, self._away = time.monotonic(), False
        try:
            await self._turn()
        except Exception as fault:
            since = time.monotonic() if self._fault is None else self._fault.since
            self._fault = MemberFault(since, f"{type(fault).__name__}: {fault}"[:500])
            raise
        self._fault = None

    def renewal(self) -> Renewal | None:
        """Return what the keeper is to ask for. A turn that never ends keeps no leases. Shards are taken only if the last ones were
        adopted, and no turn takes longer than a lease."""
        ended = self._task is None or (self._task.done() and not self._stopping)
        if self._away or ended:
            return None
        if (took := time.monotonic() - self._begun) > LONGEST_TURN:
            self._away = True
            _log.error("%s: one turn has taken %.0f s; its leases are no longer renewed", self.name, took)
            return None
        self._asked = self._assignment
        adopted = self._offered is None or _same_epochs(self._offered, self._assignment)
        takes = adopted and took < self._leases.lease and not self._stopping and self._timeline == self._leases.timeline
        return Renewal(self._leases, self._state, takes=takes, progress=self._progress)

    def renewed(self, assignment: Assignment) -> None:
        """Offer the renewed leases to the turns. The leases that are adopted already count as renewed at once."""
        if self._asked is None:  # they were forgotten since: what was read before does not count
            return
        asked = self._asked.leases
        if assignment.leases != asked:
            self._gone_back = self._gone_back or any(
                shard in asked and lease < asked[shard] for shard, lease in assignment.leases.items()
            )
        self._offered = assignment
        is_same = _same_epochs(assignment, self._assignment)
        if is_same and not self._gone_back:
            self._assignment = replace(self._merged(assignment), excess=self._assignment.excess)
        is_other_primary = self._timeline != self._leases.timeline
        if not is_same or self._gone_back or assignment.excess or assignment.replay or is_other_primary:
            self._wake()

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

    @property
    def _progress(self) -> tuple[int, int] | None:
        """The epoch of the lease, and the position up to which there is nothing to do; None if it is not known."""
        return None

    async def _renew(self) -> bool:
        """Adopt the leases as the keeper has renewed them. Return True if it has done so since the last call."""
        if self._timeline != self._leases.timeline:
            await self._begin_on_new_primary()
        renewed, self._offered = self._offered, None
        if renewed is None:
            return False
        if _same_epochs(renewed, self._assignment) and not self._gone_back:
            renewed = self._merged(renewed)
        self._gone_back = False
        released = frozenset(self._releasable(renewed))
        if released:
            await self._release(released)
        retained = {shard: lease for shard, lease in renewed.leases.items() if shard not in released}
        assignment = replace(renewed, leases=retained, excess=renewed.excess - released)
        await self._apply_assignment(assignment)
        self._assignment, self._renewed = assignment, time.monotonic()
        return True

    def _merged(self, renewed: Assignment) -> Assignment:
        """Return renewed leases with the checkpoints of those that are adopted, which may have moved since they were read."""
        if renewed.leases == self._assignment.leases:
            return renewed
        positions = {shard: lease.position for shard, lease in self._assignment.leases.items()}
        leases = {s: ShardLease(lease.epoch, max(lease.position, positions[s])) for s, lease in renewed.leases.items()}
        return replace(renewed, leases=leases)

    def _forget_leases(self) -> None:
        """Forget the leases after a fault, and begin again with those that the keeper asks for from now on."""
        self._assignment, self._offered, self._asked = NOTHING, None, None
        self._leases.keeper.hurry()

    async def _begin_on_new_primary(self) -> None:
        """Release all leases, because the new primary may lack what this member remembers. With new epochs everything is read
        again."""
        timeline = self._leases.timeline
        self._away = True
        self._assignment = replace(self._assignment, until=0.0)
        await self._leases.leave()
        self._timeline, self._away = timeline, False
        self._forget_leases()

    def _releasable(self, assignment: Assignment) -> Collection[int]:
        """Return the shards that can be handed over at once, because they have no work in progress."""
        return assignment.excess

    async def _release(self, shards: Collection[int]) -> None:
        await self._leases.release(shards)

    async def _apply_assignment(self, assignment: Assignment) -> None:
        """Begin the shards that are new in the assignment, and drop those that are no longer in it."""


def _same_epochs(one: Assignment, other: Assignment) -> bool:
    return one.leases == other.leases or _epochs(one) == _epochs(other)


def _epochs(assignment: Assignment) -> dict[int, int]:
    return {shard: lease.epoch for shard, lease in assignment.leases.items()}
