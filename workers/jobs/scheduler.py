"""The scheduler: queues jobs when their time has come and their semaphore is open. ADR 0021.

It sleeps until the next job is due, until the log announces a job, or for a second at most. So `schedule_interval` only says how
often a closed semaphore is requested again. One member is active and the others stand by: if two were active at once, both would
find the same jobs, and each job would be queued once all the same.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from domain.job.commands import QueueJob
from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict
from domain.kernel.ports import Invocation
from projections.consumers.leases import ShardLeases
from projections.job.due import AT_ONCE, Due, DueJobs
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database import Database
from projections.log.executor import CommandExecutor
from projections.vault.vault import Vault
from workers.jobs.semaphores import SemaphorePoller, SemaphoreProbe
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.wakeups import POLL, Waker
from workers.ports import Outbound

CONSUMER: Final = "scheduler"
_MIN_INTERVAL: Final = 0.02
"""Seconds between two rounds at least: while many jobs run, the log announces changes all the time."""

_log = logging.getLogger(__name__)


class Scheduler(LeasedWorker):
    """One member: active, or standing by."""

    def __init__(
        self,
        database: Database,
        executor: CommandExecutor,
        *,
        outbound: Outbound,
        vault: Vault,
        settings: EngineSettingsQueries,
        leases: ShardLeases,
        waker: Waker,
        clock: Clock,
    ) -> None:
        super().__init__(leases, waker)
        self._executor = executor
        self._settings = settings
        self._jobs = DueJobs(database)
        probe = SemaphoreProbe(database, outbound, vault=vault, clock=clock)
        self._semaphores = SemaphorePoller(self._jobs, probe, opened=self._opened, ended=waker.wake)

    @property
    def _busy(self) -> int:
        return self._semaphores.under_way

    async def _turn(self) -> None:
        await self._waker.sleep(await self._round())
        await asyncio.sleep(_MIN_INTERVAL)

    async def _finish(self) -> None:
        await self._semaphores.forget()

    async def _round(self) -> float:
        """Queue due jobs and request semaphores; gives the seconds until the next round."""
        await self._renew()
        if not self._is_ours():
            await self._semaphores.forget()
            return self._leases.lease / 5
        active = await self._active(await self._jobs.clients())
        if not active:
            return POLL
        due = await self._jobs.due(active, self._semaphores.known())
        await self._queue([item for item in due if item.semaphore is None])
        for one in due:
            if one.semaphore is not None:
                self._semaphores.add(one)
        known = await self._settings.of(active)
        self._semaphores.ask({client: known[client].schedule_interval for client in active})
        if len(due) >= AT_ONCE:
            return 0.0
        next_in = await self._jobs.next_in(active)
        return POLL if next_in is None else min(max(next_in, 0.0), POLL)

    def _is_ours(self) -> bool:
        return bool(self._assignment.leases) and time.monotonic() < self._assignment.until

    async def _active(self, clients: Sequence[str]) -> list[str]:
        """Clients whose schedule is active. Read in every round, so that a schedule that is switched off stops at once."""
        if not clients:
            return []
        active = await self._settings.schedule_active(clients)
        return [client for client in clients if active[client]]

    async def _opened(self, one: Due) -> None:
        """Its semaphore may have taken a while to answer, so the other conditions are checked again."""
        if self._is_ours() and await self._active([one.client]):
            await self._queue([one])

    async def _queue(self, due: Sequence[Due]) -> None:
        ends = await asyncio.gather(*map(self._queue_one, due), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _queue_one(self, one: Due) -> None:
        try:
            queue = QueueJob(one.job, one.run_at, one.semaphore)
            await self._executor.execute(queue, invocation=Invocation.by("system", correlation_id=one.transaction_id))
        except Conflict as fault:
            _log.info("the job %d was not queued: %s; it is tried again", one.job, fault)
