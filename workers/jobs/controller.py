"""The controller: gives queued jobs their slots, client by client. Document 3, "States and transitions", queued → started.

Clients are shared out among controllers by leases, so that one of them looks after a client. Should two do so for a moment, the
append lets one of them have each slot. ADR 0021.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from domain.job.commands import StartJob
from domain.kernel.cause import Cause
from domain.kernel.errors import Conflict
from projections.consumers.shares import Shares, shard_of
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database import Database
from projections.log.ledger import Ledger
from projections.queue.admission import Admission, Admitted, Capacity, admitted
from workers.kernel.rounds import Rounds
from workers.kernel.wake import Sleeper, rest

CONSUMER: Final = "controller"
SHARDS: Final = 16

_log = logging.getLogger(__name__)


class Controller(Rounds):
    """One member's part in admission."""

    def __init__(
        self, database: Database, ledger: Ledger, *, settings: EngineSettingsQueries, shares: Shares, sleeper: Sleeper
    ) -> None:
        super().__init__(shares, sleeper)
        self._ledger = ledger
        self._settings = settings
        self._admission = Admission(database)
        self._starting = 0

    @property
    def _busy(self) -> int:
        return self._starting

    async def _turn(self) -> None:
        await self._hold()
        if started := await self._round():
            await asyncio.sleep(rest(started))  # what comes meanwhile is started in one go
        else:
            await self._sleeper.sleep(self._shares.lease / 5)

    async def _round(self) -> int:
        """Start what there are slots for; how many were."""
        clients = [client for client in await self._admission.clients() if self._is_ours(client)] if self._holding.shares else []
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
        return time.monotonic() < self._holding.until and shard_of(client, self._shares.shards) in self._holding.shares

    async def _start(self, starts: Sequence[Admitted]) -> None:
        self._starting = len(starts)
        try:
            ends = await asyncio.gather(*map(self._start_one, starts), return_exceptions=True)
        finally:
            self._starting = 0
        for end in ends:
            if isinstance(end, Conflict):
                _log.info("a job was not started: %s; it is looked at again", end)
            elif end is not None:
                raise end

    async def _start_one(self, one: Admitted) -> None:
        cause = Cause.by("system", correlation_id=one.transaction_id)
        await self._ledger.execute(StartJob(one.job, one.slot, one.low_slot, one.priority), cause=cause)
