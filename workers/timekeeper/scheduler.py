"""The scheduler: queues jobs when their time has come and their gate is open. Document 3, "States and transitions"; ADR 0021.

It sleeps until the next job is due, until the log tells of a job, or for a second at most; so `schedule_interval` only says how
often a shut gate is asked again. One member does this at a time and others stand by: two at once would find the same, and the job
takes it once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from domain.job.commands import QueueJob
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict
from projections.consumers.shares import Shares
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database import Database
from projections.log.ledger import Ledger
from projections.queue.due import AT_ONCE, Due, DueJobs
from projections.vault.vault import Vault
from workers.kernel.rounds import Rounds
from workers.kernel.wake import POLL, Sleeper
from workers.ports import Outbound
from workers.timekeeper.gates import Gates, Watchman

CONSUMER: Final = "scheduler"
_BREATH: Final = 0.02
"""Seconds between two looks at least: where many jobs run, the log tells of them all the time."""

_log = logging.getLogger(__name__)


class Scheduler(Rounds):
    """One member: the active one, or one that stands by."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        *,
        outbound: Outbound,
        vault: Vault,
        settings: EngineSettingsQueries,
        shares: Shares,
        sleeper: Sleeper,
        clock: Clock,
    ) -> None:
        super().__init__(shares, sleeper)
        self._ledger = ledger
        self._settings = settings
        self._jobs = DueJobs(database)
        watchman = Watchman(database, outbound, vault=vault, clock=clock)
        self._gates = Gates(self._jobs, watchman, opened=self._opened, ended=sleeper.wake)

    @property
    def _busy(self) -> int:
        return self._gates.under_way

    async def _turn(self) -> None:
        await self._sleeper.sleep(await self._round())
        await asyncio.sleep(_BREATH)

    async def _let_go(self) -> None:
        await self._gates.forget()

    async def _round(self) -> float:
        """Queue what is due and ask for gates; how many seconds may pass until the next round."""
        await self._hold()
        if not self._is_ours():
            await self._gates.forget()
            return self._shares.lease / 5
        active = await self._active(await self._jobs.clients())
        if not active:
            return POLL
        due = await self._jobs.due(active, self._gates.known())
        await self._queue([one for one in due if one.gate is None])
        for one in due:
            if one.gate is not None:
                self._gates.add(one)
        known = await self._settings.of(active)
        self._gates.ask({client: known[client].schedule_interval for client in active})
        if len(due) >= AT_ONCE:
            return 0.0
        next_in = await self._jobs.next_in(active)
        return POLL if next_in is None else min(max(next_in, 0.0), POLL)

    def _is_ours(self) -> bool:
        return bool(self._holding.shares) and time.monotonic() < self._holding.until

    async def _active(self, clients: Sequence[str]) -> list[str]:
        """Asked in every round: a schedule that is switched off stops at once."""
        if not clients:
            return []
        active = await self._settings.schedule_active(clients)
        return [client for client in clients if active[client]]

    async def _opened(self, one: Due) -> None:
        """Its gate may have taken a while, so what else must hold is asked again."""
        if self._is_ours() and await self._active([one.client]):
            await self._queue([one])

    async def _queue(self, due: Sequence[Due]) -> None:
        ends = await asyncio.gather(*map(self._queue_one, due), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _queue_one(self, one: Due) -> None:
        try:
            cause = Cause.by("system", correlation_id=one.transaction_id)
            await self._ledger.execute(QueueJob(one.job, one.run_at, one.gate), cause=cause)
        except Conflict as fault:
            _log.info("the job %d was not queued: %s; it is looked at again", one.job, fault)
