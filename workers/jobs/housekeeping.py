"""What is left behind: lines of logs that are old, leases of workers that died, folders of jobs that have ended. Issue 7.

A worker tidies up behind itself; this is for what it could not, because the job was broken off elsewhere or the worker died.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from domain.kernel.clock import Clock
from projections.kernel.background import Background
from projections.kernel.database import Database
from projections.queue.chronicle import prune
from projections.queue.claims import TaskQueue
from workers.jobs.workspaces import Workspaces
from workers.kernel.again import again

KEPT: Final = timedelta(days=30)
_EVERY: Final = 600.0


class Housekeeping(Background):
    """Beside each runner; that several do the same does no harm."""

    def __init__(self, database: Database, queue: TaskQueue, *, workspaces: Workspaces, clock: Clock) -> None:
        self._database = database
        self._queue = queue
        self._workspaces = workspaces
        self._clock = clock

    async def tidy(self) -> None:
        await self._queue.tidy()
        await prune(self._database, self._clock() - KEPT)
        await self._workspaces.remove(await self._queue.ended(await self._workspaces.jobs()))

    async def _run(self) -> None:
        await again(self._later, what="housekeeping")

    async def _later(self) -> None:
        await asyncio.sleep(_EVERY)
        await self.tidy()
