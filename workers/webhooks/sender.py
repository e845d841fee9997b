"""Sends what is pending: takes its share of the endpoints, reads, sends, records. Issue 5, "Delivery"; architecture.md, §3.

A member owns all webhooks of a shard, so what must hold for an endpoint (order, how much is under way, the breaker) is kept in its
memory. A crash leaves rows pending; whoever takes the shard sends them again, under the same `webhook-id`.

Its tasks outlive any fault: they log it by name, for its message might hold what was to be sent, and try again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from time import monotonic
from typing import Final
from uuid import UUID

from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from projections.consumers.shares import Shares
from projections.deliveries.keys import CHANNEL
from projections.deliveries.ledger import DeliveryLedger
from projections.kernel.database import Database
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from workers.ports import Outbound
from workers.webhooks.attempt import SECONDS, Courier
from workers.webhooks.dispatch import PLACES, Dispatch, Job
from workers.webhooks.reader import Disable, Reader
from workers.webhooks.retries import DELAYS, Schedule
from workers.webhooks.targets import Targets
from workers.webhooks.verdicts import Verdicts
from workers.webhooks.writer import Writer

_POLL_SECONDS: Final = 1.0
_ENDING_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class Sender:
    """One member's sending. `disable` is told of a webhook that is to get nothing any more, and why; it may be called twice."""

    def __init__(
        self,
        database: Database,
        outbound: Outbound,
        *,
        records: RecordQueries,
        vault: Vault,
        shares: Shares,
        disable: Disable,
        version: str,
        clock: Clock,
        rng: Random,
        delays: Sequence[float] = DELAYS,
        seconds: float = SECONDS,
        places: int = PLACES,
    ) -> None:
        self._database = database
        self._shares = shares
        self._places = places
        self._courier = Courier(outbound, clock, seconds=seconds)
        self._dispatch = Dispatch(self._changed, places=places)
        ledger = DeliveryLedger(database, member=shares.member)
        targets = Targets(records, vault, version=version)
        self._reader = Reader(ledger, targets, dispatch=self._dispatch, disable=disable, time=monotonic)
        self._writer = Writer(database, ledger, dispatch=self._dispatch, written=self._send)
        self._verdicts = Verdicts(self._dispatch, self._writer, schedule=Schedule(delays), rng=rng, time=monotonic)
        self._to_do = asyncio.Event()
        self._idle: list[asyncio.Future[Job]] = []
        self._workers: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._quiet = asyncio.Event()

    @property
    def in_flight(self) -> int:
        return self._dispatch.flying

    def wake(self) -> None:
        """There are new rows, behind all others."""
        self._reader.fresh = True
        self._to_do.set()

    async def start(self) -> None:
        await self._shares.start()
        work = (self._listen(), self._hold(), self._read(), self._writer.run())
        self._tasks = [asyncio.create_task(one) for one in work]

    async def stop(self) -> None:
        """What is under way may end within some seconds; what does not is sent again by whoever is next."""
        self._stopping = True
        listening, holding, reading, writing = self._tasks
        await _ended([listening, reading])
        if self._dispatch.flying:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ENDING_SECONDS):
                    await self._quiet.wait()
        await _ended(self._workers)
        await self._writer.finish(seconds=_ENDING_SECONDS)
        await _ended([holding, writing])
        with suppress(Unavailable):
            await self._shares.leave()

    async def _listen(self) -> None:
        """Told of new rows, and of those made pending again. What may have been missed while nobody listened is read anew."""
        while True:
            try:
                connection = await self._database.connect("deliveries listener")
                try:
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._reader.again()
                    self._to_do.set()
                    async for told in connection.notifies():
                        self._told(told.payload)
                finally:
                    await connection.close()
            except Exception as fault:
                _log.warning("not told of new deliveries, trying again: %s", type(fault).__name__)
            await asyncio.sleep(_POLL_SECONDS)

    def _told(self, payload: str) -> None:
        if payload:
            with suppress(ValueError):
                endpoint = self._dispatch.endpoint(UUID(payload))
                if endpoint is not None:
                    endpoint.read_again()
                    self._dispatch.awake(endpoint)
        else:
            self.wake()

    async def _hold(self) -> None:
        """Keep the shards, take and give some. Without an answer in time nothing more is sent."""
        while True:
            try:
                holding = await self._shares.hold(busy=self._dispatch.flying)
                shares = {shard: share.epoch for shard, share in holding.shares.items()}
                if self._dispatch.hold(shares, surplus=holding.surplus, until=holding.until):
                    self._reader.to_find = True
                free = self._dispatch.free()
                if free:
                    await self._shares.release(free)
                    for shard in free:
                        self._dispatch.lose(shard, self._dispatch.leaving[shard])
                self._dispatch.tidy()
                self._to_do.set()
                self._send()
            except Exception as fault:
                _log.warning("shares of deliveries cannot be held, trying again: %s", type(fault).__name__)
            await asyncio.sleep(self._shares.lease / 3)

    async def _read(self) -> None:
        while True:
            self._to_do.clear()
            try:
                more = await self._reader.read()
            except Exception as fault:
                _log.warning("deliveries cannot be read, trying again: %s", type(fault).__name__)
                self._reader.retried()
                await asyncio.sleep(_POLL_SECONDS)
                continue
            self._send()
            if not more:
                await self._wait()

    async def _wait(self) -> None:
        """For something to do, or the next time that something is due; the poll is a net below."""
        due = self._dispatch.agenda.next_due
        seconds = _POLL_SECONDS if due is None else min(max(due - monotonic(), 0.0), _POLL_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                await self._to_do.wait()
        except TimeoutError:
            self._reader.fresh = True

    def _changed(self) -> None:
        self._to_do.set()

    def _send(self) -> None:
        """Give work to those who wait for it, and hire, up to as many as there are places."""
        while self._idle or len(self._workers) < self._places:
            job = self._next()
            if job is None:
                return
            if self._idle:
                self._idle.pop().set_result(job)
            else:
                self._workers.append(asyncio.create_task(self._work(job)))

    def _next(self) -> Job | None:
        return None if self._stopping else self._dispatch.next(monotonic())

    async def _work(self, job: Job | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if job is None:
                given: asyncio.Future[Job] = loop.create_future()
                self._idle.append(given)
                job = await given
            assert job.endpoint.target is not None
            self._verdicts.settle(job, await self._courier.send(job.row, job.endpoint.target))
            job = self._next()
            if self._stopping and not self._dispatch.flying:
                self._quiet.set()


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
