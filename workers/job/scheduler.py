"""The scheduler: queues jobs when their time has come and their semaphore is open. ADR 0021.

It sleeps until the next job is due, until the log announces a job, or for a second at most. So `schedule_interval` only determines
how often a closed semaphore is requested again. One member is active and the others stand by: if two were active at once, both
would find the same jobs, and each job would still be queued once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from domain.job import events
from domain.job.aggregate import Job
from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict
from domain.kernel.ports import Invocation
from domain.record.kinds.schedule import Schedule
from domain.record.kinds.setting import Setting
from projections.consumers.leases import ShardLeases
from projections.job.due_jobs import AT_ONCE, DueJob, DueJobs
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.vault.vault import Vault
from workers.job.semaphores import SemaphorePoller, SemaphoreProbe
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.wakeups import POLL, Waker
from workers.ports.outbound import Outbound

CONSUMER: Final = "scheduler"
WAKES: Final = frozenset(
    {
        *(event.TOPIC for event in (events.Accepted, events.JobScheduled, events.RunTimeChanged, events.SemaphoreChanged)),
        Schedule.KIND,
        Setting.KIND,
    }
)
"""The events after which a job may be due, or may wait for its time or its semaphore."""
_MIN_INTERVAL: Final = 0.02
"""The least number of seconds between two rounds: while many jobs run, the log announces changes all the time."""

_log = logging.getLogger(__name__)


class Scheduler(LeasedWorker):
    """A member of the scheduler: active, or standing by."""

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
        return self._semaphores.in_progress

    async def _turn(self) -> None:
        await self._waker.sleep(await self._round())
        await asyncio.sleep(_MIN_INTERVAL)

    async def _finish(self) -> None:
        await self._semaphores.forget()

    async def _round(self) -> float:
        """Queue due jobs and request semaphores; return the seconds until the next round."""
        await self._renew()
        if not self._is_ours():
            await self._semaphores.forget()
            return self._leases.lease / 5
        active = await self._active(await self._jobs.clients())
        if not active:
            return POLL
        due = await self._jobs.due(active, self._semaphores.versions())
        await self._queue([job for job in due if job.semaphore is None])
        for job in due:
            if job.semaphore is not None:
                self._semaphores.add(job)
        settings = await self._settings.of(active)
        self._semaphores.ask({client: settings[client].schedule_interval for client in active})
        if len(due) >= AT_ONCE:
            return 0.0
        next_in = await self._jobs.next_in(active)
        return POLL if next_in is None else min(max(next_in, 0.0), POLL)

    def _is_ours(self) -> bool:
        return bool(self._assignment.leases) and time.monotonic() < self._assignment.until

    async def _active(self, clients: Sequence[str]) -> list[str]:
        """Return the clients whose schedule is active.

        The setting is read in every round, so that a schedule that is switched off stops at once.
        """
        if not clients:
            return []
        active = await self._settings.schedule_active(clients)
        return [client for client in clients if active[client]]

    async def _opened(self, due: DueJob) -> None:
        """Queue a job whose semaphore is open. The answer may have taken a while, so the other conditions are checked again."""
        if self._is_ours() and await self._active([due.client]):
            await self._queue([due])

    async def _queue(self, due: Sequence[DueJob]) -> None:
        ends = await asyncio.gather(*map(self._queue_one, due), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _queue_one(self, due: DueJob) -> None:
        try:
            queue = Job.queue.on(due.job, run_at=due.run_at, semaphore=due.semaphore)
            await self._executor.execute(queue, invocation=Invocation.by("system", correlation_id=due.transaction_id))
        except Conflict as fault:
            _log.info("job %d was not queued: %s; it is retried", due.job, fault)
