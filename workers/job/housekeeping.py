"""Housekeeping: deletes leases of workers that died, and folders of jobs that have ended.

A worker cleans up after its own runs. Housekeeping removes the rest, after a job was aborted elsewhere or its worker died.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from projections.job.queue import TaskQueue
from projections.job.worker_lease import WorkerLease
from projections.kernel.background_task import BackgroundTask
from workers.job.workspaces import RunFiles

_EVERY: Final = 600.0


class Housekeeping(BackgroundTask):
    """Runs in the process of each task worker; several at once do no harm."""

    WHAT: ClassVar[str] = "housekeeping"

    def __init__(self, queue: TaskQueue, *, lease: WorkerLease, workspaces: RunFiles) -> None:
        self._queue = queue
        self._lease = lease
        self._workspaces = workspaces

    async def tidy(self) -> None:
        await self._lease.tidy()
        await self._workspaces.remove(await self._queue.ended(await self._workspaces.jobs()))
        await self._workspaces.tidy()

    async def _turn(self) -> None:
        await asyncio.sleep(_EVERY)
        await self.tidy()
