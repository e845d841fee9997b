"""The controller: starts queued jobs when there are slots for them. ADR 0021.

Clients are distributed among controllers by leases. If two controllers serve a client for a moment, the append gives each slot to
one job only.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from domain.job.commands import StartJob
from domain.kernel.errors import Conflict
from domain.kernel.ports import Invocation
from projections.consumers.leases import ShardLeases, shard_of
from projections.job.admission import Admission, Admitted, Capacity, admitted
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database import Database
from projections.log.executor import CommandExecutor
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.wakeups import Waker, rest

CONSUMER: Final = "controller"
SHARDS: Final = 16

_log = logging.getLogger(__name__)


class Controller(LeasedWorker):
    """Starts jobs of the clients whose leases this member holds."""

    def __init__(
        self, database: Database, executor: CommandExecutor, *, settings: EngineSettingsQueries, leases: ShardLeases, waker: Waker
    ) -> None:
        super().__init__(leases, waker)
        self._executor = executor
        self._settings = settings
        self._admission = Admission(database)
        self._starting = 0

    @property
    def _busy(self) -> int:
        return self._starting

    async def _turn(self) -> None:
        await self._renew()
        if started := await self._round():
            await asyncio.sleep(rest(started))  # jobs that arrive meanwhile are started together
        else:
            await self._waker.sleep(self._leases.lease / 5)

    async def _round(self) -> int:
        """Start the jobs for which there are slots; gives their number."""
        clients = [client for client in await self._admission.clients() if self._is_ours(client)] if self._assignment.leases else []
        if not clients:
            return 0
        settings = await self._settings.of(clients)
        held = await self._admission.held(clients)
        most = {client: settings[client].max_jobs - len(held[client].slots) for client in clients}
        queued = await self._admission.queued({client: count for client, count in most.items() if count > 0})
        starts: list[Admitted] = []
        for client, jobs in queued.items():
            known = settings[client]
            capacity = Capacity(known.max_jobs, known.priority_slots, known.priority_threshold)
            starts += admitted(jobs, held[client], capacity=capacity)
        await self._start(starts)
        return len(starts)

    def _is_ours(self, client: str) -> bool:
        return time.monotonic() < self._assignment.until and shard_of(client, self._leases.shards) in self._assignment.leases

    async def _start(self, starts: Sequence[Admitted]) -> None:
        self._starting = len(starts)
        try:
            ends = await asyncio.gather(*map(self._start_one, starts), return_exceptions=True)
        finally:
            self._starting = 0
        for end in ends:
            if isinstance(end, Conflict):
                _log.info("a job was not started: %s; it is tried again", end)
            elif end is not None:
                raise end

    async def _start_one(self, one: Admitted) -> None:
        start = StartJob(one.job, one.slot, one.low_slot, one.priority)
        await self._executor.execute(start, invocation=Invocation.by("system", correlation_id=one.transaction_id))
