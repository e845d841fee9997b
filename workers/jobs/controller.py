"""The controller: gives queued jobs their slots, client by client. Document 3, "States and transitions", queued → started.

Clients are shared out among controllers by leases, so that one of them looks after a client. Should two do so for a moment, the
append lets one of them have each slot. ADR 0021.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from domain.job.commands import StartJob
from domain.kernel.cause import Cause
from domain.kernel.errors import Conflict, Unavailable
from projections.consumers.shares import NOTHING, Holding, Shares, shard_of
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database import Database
from projections.log.ledger import Ledger
from projections.queue.admission import Admission, Admitted, Capacity, admitted
from workers.kernel.wake import Sleeper, rest

CONSUMER: Final = "controller"
SHARDS: Final = 16
_PAUSE: Final = 0.5

_log = logging.getLogger(__name__)


class Controller:
    """One member's part in admission."""

    def __init__(
        self, database: Database, ledger: Ledger, *, settings: EngineSettingsQueries, shares: Shares, sleeper: Sleeper
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._admission = Admission(database)
        self._shares = shares
        self._sleeper = sleeper
        self._holding: Holding = NOTHING
        self._renewed = float("-inf")
        self._starting = 0
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._shares.start()
        self._task = asyncio.create_task(self._run(), name="controller")

    async def stop(self) -> None:
        """Finish the round under way and let others go on at once."""
        self._stopping = True
        self._sleeper.wake()
        if self._task is not None:
            await self._task
        with suppress(Unavailable):
            await self._shares.leave()

    async def _run(self) -> None:
        trouble = ""
        while not self._stopping:
            try:
                await self._hold()
                if started := await self._round():
                    await asyncio.sleep(rest(started))  # what comes meanwhile is started in one go
                else:
                    await self._sleeper.sleep(self._shares.lease / 5)
                trouble = ""
            except Unavailable as fault:
                if str(fault) != trouble:
                    _log.warning("controller: %s; trying again until it works", fault)
                trouble = str(fault)
                await asyncio.sleep(_PAUSE)
            except Exception:
                _log.exception("controller: failed; trying again")
                await asyncio.sleep(_PAUSE)

    async def _hold(self) -> None:
        """Between two rounds nothing is under way, so what others lack can go at once."""
        now = time.monotonic()
        if now - self._renewed < self._shares.lease / 3:
            return
        held = await self._shares.hold(busy=self._starting)
        if held.surplus:
            await self._shares.release(held.surplus)
        kept = {shard: share for shard, share in held.shares.items() if shard not in held.surplus}
        self._holding, self._renewed = Holding(kept, until=held.until), now

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
