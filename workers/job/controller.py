"""The controller: starts queued jobs when there are slots for them. ADR 0037.

Jobs are distributed among controllers by leases on shards. If two controllers start the same job, or take the same slot, the append
refuses one of them.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from projections.consumers.leases import ShardLeases
from workers.job.job_starter import JobStarter
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.wakeups import LONG_REST, REST, rest

CONSUMER: Final = "controller"
_MOST_EMPTY: Final = 4


class Controller(LeasedWorker):
    """Starts the jobs of the shards that this member owns."""

    def __init__(self, starter: JobStarter, *, leases: ShardLeases) -> None:
        super().__init__(leases, starter.waker)
        self._starter = starter
        self._empty = 0

    @property
    def _busy(self) -> int:
        return self._starter.starting

    async def _turn(self) -> None:
        """Start jobs, then pause, so that jobs that arrive and places that become free during the pause are used together.

        After several rounds in which it started none, because other members have the jobs, the pause is longer.
        """
        await self._renew()
        shards = self._assignment.leases.keys() if time.monotonic() < self._assignment.until else ()
        started = await self._starter.start(shards)
        self._empty = 0 if started else self._empty + 1
        if self._starter.backlogged:
            await self._starter.wait_for_capacity()
            return
        if started:
            await asyncio.sleep(rest(started))
            return
        await asyncio.sleep(LONG_REST if self._empty > _MOST_EMPTY else REST)
        if not await self._waker.sleep(self._leases.lease / 5):
            self._empty = 0
