"""Housekeeping: deletes old log lines, leases of workers that died, and folders of jobs that have ended.

A worker cleans up after its own runs. This removes the rest, after a job was broken off elsewhere or its worker died.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import ClassVar, Final

from domain.kernel.clock import Clock
from projections.job.log_lines import prune
from projections.job.queue import TaskQueue
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database import Database
from workers.jobs.workspaces import Workspaces

KEPT: Final = timedelta(days=30)
_EVERY: Final = 600.0


class Housekeeping(BackgroundTask):
    """One beside each task worker; several at once do no harm."""

    WHAT: ClassVar[str] = "housekeeping"

    def __init__(self, database: Database, queue: TaskQueue, *, workspaces: Workspaces, clock: Clock) -> None:
        self._database = database
        self._queue = queue
        self._workspaces = workspaces
        self._clock = clock

    async def tidy(self) -> None:
        await self._queue.tidy()
        await prune(self._database, self._clock() - KEPT)
        await self._workspaces.remove(await self._queue.ended(await self._workspaces.jobs()))

    async def _turn(self) -> None:
        await asyncio.sleep(_EVERY)
        await self.tidy()
