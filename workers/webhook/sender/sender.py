"""The webhook sender: owns shards of webhooks, and runs a task for each webhook with pending deliveries.

One member owns all webhooks of a shard, so the state of an endpoint (order, attempts in flight, circuit breaker) is in its memory:
see docs/adr/0019-an-endpoint-belongs-to-one-process.md. After a crash rows are still pending; the next owner of the shard sends
them again, under the same `webhook-id`.

Its tasks continue after any exception. They log only its name, because its message might hold what was to be sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final
from uuid import UUID

from domain.kernel.clock import Clock
from projections.consumers.leases import Assignment, ShardLeases
from projections.consumers.timeline import timeline
from projections.kernel.background_task import start_forever, start_task
from projections.kernel.database.database import Database
from projections.kernel.tracing import UNTRACED, Tracer
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from projections.webhook.keys import CHANNEL
from projections.webhook.store import DeliveryStore
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import POLL, Waker
from workers.ports.outbound import Notifying
from workers.webhook.sender.attempt import SECONDS, DeliveryClient
from workers.webhook.sender.endpoint import Disable, Phase, SharedParts
from workers.webhook.sender.endpoint_configs import EndpointConfigs
from workers.webhook.sender.endpoints import Endpoints
from workers.webhook.sender.outcomes import OutcomeRecorder
from workers.webhook.sender.places import PLACES, Places
from workers.webhook.sender.retries import DELAYS, RetrySchedule

_ENDING_SECONDS: Final = 5.0


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
        metrics = metrics or WorkerMetrics()
        store = DeliveryStore(database, member=leases.member)
        self._database = database
        self._client = DeliveryClient(outbound, clock, seconds=seconds, tracer=tracer)
        self._outcomes = OutcomeRecorder(database, store)
        self._places = Places(places)
        self._endpoints = Endpoints(
            SharedParts(
                store=store,
                configs=EndpointConfigs(records, vault, version=version),
                client=self._client,
                outcomes=self._outcomes,
                disable=disable,
                schedule=RetrySchedule(delays),
                rng=rng,
                places=self._places,
                metrics=metrics,
            )
        )
        for phase in Phase:
            metrics.count_endpoints(phase.name.lower(), partial(self._endpoints.in_phase, phase))
        self._news = Waker()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def in_flight(self) -> int:
        return self._places.taken

    def wake(self, webhooks: Collection[UUID]) -> None:
        """Note that these webhooks have new deliveries, after all others."""
        for webhook in webhooks:
            self._endpoints.wake(webhook)

    async def start(self) -> None:
        await super().start()
        self._tasks = [
            start_forever(self._listen, what="listener to deliveries", pause=POLL, by_name=True),
            start_forever(self._find_new, what="reader of deliveries", pause=POLL, by_name=True),
            start_task(self._outcomes.run(), what="writer of outcomes"),
        ]

    async def stop(self) -> None:
        """Give attempts in flight some seconds to end. The next owner repeats those that do not end."""
        finding, recording = self._tasks[:2], self._tasks[2:]  # both are empty if the start has failed
        await _cancel(finding)
        await self._endpoints.end(seconds=_ENDING_SECONDS)
        await self._outcomes.finish(seconds=_ENDING_SECONDS)
        await _cancel(recording)
        await super().stop()

    async def _listen(self) -> None:
        """Listen for new and resent rows. Notifications before the LISTEN may be missed, so everything is read once after it."""
        connection = await self._database.connect("deliveries listener", seconds=3.0)
        try:
            await connection.listen(CHANNEL)
            self._endpoints.read_all_again()
            self._news.wake()
            async for notification in connection.receive():
                if notification.payload:
                    with suppress(ValueError):
                        self._endpoints.read_again(UUID(notification.payload))
                else:
                    self._news.wake()
        finally:
            await connection.close()

    async def _find_new(self) -> None:
        """Find new rows, then wait for others. The poll finds rows whose notification was lost."""
        if not await self._endpoints.find_new():
            await self._news.sleep(POLL)

    async def _turn(self) -> None:
        """Renew the leases, take and release shards. Without an answer in time nothing more is sent."""
        self._client.timeline = await timeline(self._database)
        await self._renew()
        self._endpoints.tidy()
        if not self._endpoints.is_complete:
            self._news.wake()
        await self._waker.sleep(self._leases.lease / 3)

    @property
    def _busy(self) -> int:
        return self.in_flight

    async def _begin_on_new_primary(self) -> None:
        """Stop sending first: another member may take the shards as soon as they are released."""
        self._endpoints.hold({}, excess=(), until=float("-inf"))
        await super()._begin_on_new_primary()

    def _releasable(self, assignment: Assignment) -> Collection[int]:
        epochs = {shard: lease.epoch for shard, lease in assignment.leases.items()}
        self._endpoints.hold(epochs, excess=assignment.excess, until=assignment.until)
        return self._endpoints.free()

    async def _release(self, shards: Collection[int]) -> None:
        await super()._release(shards)
        for shard in shards:
            self._endpoints.lose(shard, self._endpoints.releasing[shard])


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
