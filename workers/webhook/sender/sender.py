"""The webhook sender: owns shards of endpoints, reads pending deliveries, sends them, and records outcomes.

One member owns all webhooks of a shard, so the state of an endpoint (order, attempts in flight, circuit breaker) is in its memory:
see docs/adr/0019-an-endpoint-belongs-to-one-process.md. After a crash rows are still pending; the next owner of the shard sends
them again, under the same `webhook-id`.

Its tasks continue after any exception. They log only its name, because its message might hold what was to be sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from time import monotonic
from typing import Final
from uuid import UUID

from domain.kernel.clock import Clock
from projections.consumers.leases import Assignment, ShardLeases
from projections.consumers.timeline import timeline
from projections.kernel.background_task import FAULTS, is_cancelled, start_forever, start_task
from projections.kernel.database.database import Database
from projections.kernel.tracing import UNTRACED, Tracer
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from projections.webhook.keys import CHANNEL
from projections.webhook.store import DeliveryStore
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import Waker
from workers.ports.outbound import Notifying
from workers.webhook.sender.attempt import SECONDS, DeliveryClient
from workers.webhook.sender.config_check import UNREADABLE_SECONDS, ConfigCheck
from workers.webhook.sender.endpoint_configs import EndpointConfigs
from workers.webhook.sender.endpoint_state import Event, Phase, TimeCame, Unsendable
from workers.webhook.sender.outcome_handler import OutcomeHandler
from workers.webhook.sender.reader import DeliveryReader, Disable
from workers.webhook.sender.retries import DELAYS, RetrySchedule
from workers.webhook.sender.scheduler import PLACES, DeliveryScheduler, ScheduledAttempt
from workers.webhook.sender.writer import OutcomeWriter

_POLL_SECONDS: Final = 1.0
_ENDING_SECONDS: Final = 5.0
_SHORTAGE_SECONDS: Final = 1.0
_WORK: Final = "deliveries"

_log = logging.getLogger(__name__)


class Sender(LeasedWorker):
    """A member of the sender. `disable` is called with a webhook that must be disabled, and the reason; it may be called twice."""

    def __init__(
        self,
        database: Database,
        outbound: Notifying,
        *,
        records: RecordQueries,
        vault: Vault,
        leases: ShardLeases,
        disable: Disable,
        version: str,
        clock: Clock,
        rng: Random,
        delays: Sequence[float] = DELAYS,
        seconds: float = SECONDS,
        places: int = PLACES,
        metrics: WorkerMetrics | None = None,
        tracer: Tracer = UNTRACED,
    ) -> None:
        super().__init__(leases, Waker())
        self._database = database
        self._client = DeliveryClient(outbound, clock, seconds=seconds, tracer=tracer)
        self._scheduler = DeliveryScheduler(self._changed, places=places)
        store = DeliveryStore(database, member=leases.member)
        self._check = ConfigCheck(store, EndpointConfigs(records, vault, version=version), time=monotonic)
        self._reader = DeliveryReader(store, scheduler=self._scheduler, disable=disable, time=monotonic)
        self._writer = OutcomeWriter(database, store, scheduler=self._scheduler, written=self._send)
        metrics = metrics or WorkerMetrics()
        for phase in Phase:
            metrics.count_endpoints(phase.name.lower(), partial(self._scheduler.in_phase, phase))
        self._outcome_handler = OutcomeHandler(
            self._scheduler, self._writer, schedule=RetrySchedule(delays), rng=rng, time=monotonic, metrics=metrics
        )
        self._to_do = asyncio.Event()
        self._workers: set[asyncio.Task[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._ending = False
        self._nothing_in_flight = asyncio.Event()

    @property
    def in_flight(self) -> int:
        return self._scheduler.in_flight

    def wake(self) -> None:
        """Record that there are new rows, after all others."""
        self._reader.has_new = True
        self._to_do.set()

    async def start(self) -> None:
        await super().start()
        self._tasks = [
            start_forever(self._listen, what="listener to deliveries", pause=_POLL_SECONDS, by_name=True),
            start_forever(self._read, what="reader of deliveries", pause=_POLL_SECONDS, by_name=True),
            start_task(self._writer.run(), what="writer of outcomes"),
        ]

    async def stop(self) -> None:
        """Give attempts in flight some seconds to end. The next owner repeats those that do not end."""
        self._ending = True
        reading, writing = self._tasks[:2], self._tasks[2:]  # both are empty if the start has failed
        await _cancel(reading)
        if self._scheduler.in_flight:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ENDING_SECONDS):
                    await self._nothing_in_flight.wait()
        await _cancel(list(self._workers))
        await self._writer.finish(seconds=_ENDING_SECONDS)
        await _cancel(writing)
        await super().stop()

    async def _listen(self) -> None:
        """Listen for new and resent rows. Notifications before the LISTEN may be missed, so everything is read once after it."""
        connection = await self._database.connect("deliveries listener", seconds=3.0)
        try:
            await connection.listen(CHANNEL)
            self._reader.reload()
            self._to_do.set()
            async for notification in connection.receive():
                self._on_notification(notification.payload)
        finally:
            await connection.close()

    def _on_notification(self, payload: str) -> None:
        if payload:
            with suppress(ValueError):
                endpoint = self._scheduler.endpoint(UUID(payload))
                if endpoint is not None:
                    endpoint.read_again()
                    self._scheduler.mark_ready(endpoint)
        else:
            self.wake()

    async def _turn(self) -> None:
        """Renew the leases, take and release shards. Without an answer in time nothing more is sent."""
        self._client.timeline = await timeline(self._database)
        await self._renew()
        self._scheduler.tidy()
        self._to_do.set()
        self._send()
        await self._waker.sleep(self._leases.lease / 3)

    @property
    def _busy(self) -> int:
        return self._scheduler.in_flight

    async def _begin_on_new_primary(self) -> None:
        """Stop sending first: another member may take the shards as soon as they are released."""
        self._scheduler.hold({}, excess=(), until=float("-inf"))
        await super()._begin_on_new_primary()

    def _releasable(self, assignment: Assignment) -> Collection[int]:
        epochs = {shard: lease.epoch for shard, lease in assignment.leases.items()}
        if self._scheduler.hold(epochs, excess=assignment.excess, until=assignment.until):
            self._reader.find_webhooks = True
        return self._scheduler.free()

    async def _release(self, shards: Collection[int]) -> None:
        await super()._release(shards)
        for shard in shards:
            self._scheduler.revoke(shard, self._scheduler.releasing[shard])

    async def _read(self) -> None:
        self._to_do.clear()
        try:
            more = await self._reader.read()
        except Exception:
            self._reader.after_failure()
            raise
        self._send()
        if not more:
            await self._wait()

    async def _wait(self) -> None:
        """Wait for something to do or until the next retry is due. The poll finds rows whose notification was lost."""
        due = self._scheduler.timer.next_due
        seconds = _POLL_SECONDS if due is None else min(max(due - monotonic(), 0.0), _POLL_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                await self._to_do.wait()
        except TimeoutError:
            self._reader.has_new = True

    def _changed(self) -> None:
        self._to_do.set()

    def _send(self) -> None:
        """Start the attempts for which there are places."""
        while (attempt := self._next()) is not None:
            worker = start_task(self._work(attempt), what=_WORK)
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def _next(self) -> ScheduledAttempt | None:
        return None if self._ending else self._scheduler.next(monotonic())

    async def _work(self, attempt: ScheduledAttempt | None) -> None:
        """Make one attempt after another, as long as there are any. Each releases its place in all cases."""
        while attempt is not None:
            try:
                await self._attempt(attempt)
            except BaseException as fault:
                if isinstance(fault, asyncio.CancelledError) and is_cancelled():
                    raise
                FAULTS[_WORK] += 1
                _log.error("an attempt for webhook %s ended by a fault: %s", attempt.row.webhook, type(fault).__name__)
                self._scheduler.not_sent(attempt, Unsendable(UNREADABLE_SECONDS), now=monotonic())
                if not isinstance(fault, (Exception, asyncio.CancelledError)):
                    raise
            finally:
                self._scheduler.completed(attempt)
            attempt = self._next()
            if self._ending and not self._scheduler.in_flight:
                self._nothing_in_flight.set()

    async def _attempt(self, attempt: ScheduledAttempt) -> None:
        """Make one attempt, with the webhook as it is when the attempt starts."""
        endpoint = attempt.endpoint
        config = await self._check.current_config(endpoint, attempt.row)
        if isinstance(config, Event) or not self._scheduler.owns(endpoint, monotonic()):
            self._scheduler.not_sent(attempt, config if isinstance(config, Event) else TimeCame(), now=monotonic())
            return
        result = await self._client.send(attempt.row, config)
        if result.gone and config is not None and await self._check.is_former(endpoint.webhook, config):
            result = replace(result, gone=False)  # it is retried at the current address
        if result.unsent:
            self._scheduler.not_sent(attempt, Unsendable(_SHORTAGE_SECONDS), now=monotonic())
        else:
            self._outcome_handler.handle(attempt, result)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
