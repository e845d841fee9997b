"""An endpoint: one task that reads the pending deliveries of a webhook, sends them, and waits where that is of no use.

The state of its circuit breaker is the place in `run`:

| phase | what the task does |
|---|---|
| SENDING | up to 16 deliveries at a time are sent, of different ordering keys |
| PAUSED | it waits, because the receiver asked for it (429 or 503 with `Retry-After`) or because nothing can be sent from here |
| RESTING | it waits for 30 seconds, because ten attempts in a row have failed |
| PROBING | it sends one delivery. If that fails, it rests again |
| CLOSING | the webhook is disabled or deleted: the pending deliveries fail, and the task ends |

Deliveries that wait meanwhile lose no attempt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from random import Random
from time import monotonic
from typing import Final, NamedTuple
from uuid import UUID

from domain.kernel.errors import Unavailable
from projections.consumers.leases import LeaseLost
from projections.kernel.background_task import FAULTS, is_cancelled
from projections.webhook.store import (
    DELETED,
    DELIVERED,
    DISABLED,
    FAILED,
    PENDING,
    AttemptOutcome,
    DeliveryStore,
    EndpointHealthChange,
    PageRequest,
    PendingDelivery,
)
from workers.kernel.metrics import WorkerMetrics
from workers.webhook.sender.attempt import AttemptResult, DeliveryClient
from workers.webhook.sender.endpoint_configs import EndpointConfig, EndpointConfigs
from workers.webhook.sender.lanes import Lane, Lanes
from workers.webhook.sender.outcomes import OutcomeRecorder
from workers.webhook.sender.places import Places, Risk
from workers.webhook.sender.retries import RetrySchedule

CONCURRENCY: Final = 16
MOST_RETRIES: Final = CONCURRENCY // 4
FAILURES: Final = 10
"""The number of failures in a row after which the endpoint rests."""
RESTING_SECONDS: Final = 30.0
LONG: Final = 5.0
"""Seconds of a pause beyond which an endpoint keeps no rows in memory."""
LONGEST_FAILURE: Final = timedelta(days=5)
UNREADABLE_SECONDS: Final = 60.0
_UNAVAILABLE_SECONDS: Final = 1.0
WORK: Final = "deliveries"
"""The name of the work for metrics of faults."""
_OUTCOMES: Final = {DELIVERED: "delivered", PENDING: "to be retried", FAILED: "failed"}

_log = logging.getLogger(__name__)

Disable = Callable[[UUID, str], Awaitable[None]]


class Phase(Enum):
    """The present activity of the task of an endpoint."""

    SENDING = auto()
    PAUSED = auto()
    RESTING = auto()
    PROBING = auto()
    CLOSING = auto()


@dataclass(slots=True)
class CircuitBreaker:
    """The failures of an endpoint. All attempts have failed since `failing_since`, `failures` of them in a row in this process."""

    failures: int = 0
    failing_since: datetime | None = None
    rests_until: float = float("-inf")
    pauses_until: float = float("-inf")

    def phase(self, now: float) -> Phase:
        if now < self.pauses_until:
            return Phase.PAUSED
        if now < self.rests_until:
            return Phase.RESTING
        return Phase.PROBING if self.failures >= FAILURES else Phase.SENDING

    @property
    def until(self) -> float:
        """The end of the pause or rest."""
        return max(self.pauses_until, self.rests_until)

    def open_for(self, now: float) -> float | None:
        """Return the seconds until the open circuit breaker lets an attempt through, 0 while it is half-open; None if it is
        closed."""
        return None if self.failures < FAILURES else max(self.until - now, 0.0)

    def pause(self, now: float, seconds: float) -> None:
        self.pauses_until = max(self.pauses_until, now + seconds)

    def delivered(self) -> None:
        self.failures, self.failing_since, self.rests_until = 0, None, float("-inf")

    def failed(self, now: float, at: datetime) -> None:
        """Count a failure. The tenth in a row, and each after a rest, begins a rest."""
        rests = self.failures == FAILURES - 1 or self.phase(now) is Phase.PROBING
        self.failures += 1
        self.failing_since = self.failing_since or at
        if rests:
            self.rests_until = now + RESTING_SECONDS


class Withdrawal(NamedTuple):
    """The reason why pending deliveries fail. The webhook is to be disabled if there is a `reason`, unless its version is another
    than this one: it may have another address then."""

    error: str
    reason: str | None = None
    version: int | None = None


class Unsendable(Exception):
    """Raised when nothing can be sent for a reason that is not the receiver's. It is to be tried again after some seconds."""

    def __init__(self, seconds: float = _UNAVAILABLE_SECONDS) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass(kw_only=True)
class SharedParts:
    """The parts that all endpoints of a process use, and what they know of the process."""

    store: DeliveryStore
    configs: EndpointConfigs
    client: DeliveryClient
    outcomes: OutcomeRecorder
    disable: Disable
    """Called with a webhook that must be disabled, and the reason. It may be called twice."""
    schedule: RetrySchedule
    rng: Random
    places: Places = field(default_factory=Places)
    metrics: WorkerMetrics = field(default_factory=WorkerMetrics)
    time: Callable[[], float] = monotonic
    until: float = float("-inf")
    """The time until which the shards are certainly owned."""
    rows_each: int = 1000
    """The number of rows that each endpoint may keep in memory."""


class Endpoint:
    """A webhook with pending deliveries, in a shard that this process owns under an epoch."""

    def __init__(self, webhook: UUID, *, shard: int, epoch: int, parts: SharedParts) -> None:
        self.webhook = webhook
        self.shard = shard
        self.epoch = epoch
        self.in_flight = 0
        """The number of attempts whose outcome is not recorded yet."""
        self.is_ending = False
        self._parts = parts
        self._lanes = Lanes()
        self._breaker = CircuitBreaker()
        self._config: EndpointConfig | None = None
        """The configuration that the last attempt has read."""
        self._withdrawal: Withdrawal | None = None
        self._risk = Risk.NEW
        self._workers = {False: 0, True: 0}
        """The numbers of workers for first attempts and for retries."""
        self._queued = {False: 0, True: 0}
        """The numbers of those workers that wait for a place."""
        self._awake = asyncio.Event()

    @property
    def phase(self) -> Phase:
        return Phase.CLOSING if self._withdrawal is not None else self._breaker.phase(self._parts.time())

    @property
    def is_healthy(self) -> bool:
        """True if a new endpoint object would have the same state."""
        return self._breaker.failures == 0 and self._withdrawal is None

    @property
    def has_news(self) -> bool:
        """True if something has happened that the task has not seen."""
        return self._awake.is_set()

    def wake(self) -> None:
        """Note that there may be new deliveries, after all others."""
        self._lanes.has_unread = True
        self._awake.set()

    def read_again(self) -> None:
        """Note that deliveries before those that were read may be pending again."""
        self._lanes.forget()
        self._awake.set()

    def end(self) -> None:
        """Let the task end when the outcomes of the attempts in flight are recorded."""
        self.is_ending = True
        self._awake.set()

    # --- the task

    async def run(self) -> bool:
        """Serve the webhook until nothing is pending. Return True if it is closed: what is inserted from now on needs a new
        endpoint. Raise `LeaseLost`, in a group, if the shard belongs to another member now."""
        async with asyncio.TaskGroup() as workers:
            while not self.is_ending or self._has_workers:
                self._awake.clear()
                if self.is_ending:
                    await self._wait(None)
                    continue
                match self.phase:
                    case Phase.SENDING:
                        await self._read_page()
                        self._start_workers(workers)
                        if not self._lanes and not self._lanes.has_unread:
                            return False
                        if not self._lanes.needs_page(self._parts.rows_each):
                            await self._wait(self._next_retry)
                    case Phase.PAUSED | Phase.RESTING:
                        await self._wait(self._breaker.until)
                    case _ if self._has_workers:
                        await self._wait(None)
                    case Phase.PROBING:
                        if not await self._choose_probe() and not self._awake.is_set():
                            return False
                        self._start_workers(workers)
                        if self.phase is Phase.PROBING:
                            await self._wait(self._next_retry)
                    case Phase.CLOSING:
                        if await self._close():
                            return True
        return False

    @property
    def _has_workers(self) -> bool:
        return any(self._workers.values())

    @property
    def _next_retry(self) -> float | None:
        """The time at which a worker for retries is to be started; None if there is none, or if the workers will see to it."""
        return None if self._queued[True] or self._workers[True] == MOST_RETRIES else self._lanes.next_due

    async def _wait(self, until: float | None) -> None:
        """Wait until something has happened, or until a time."""
        try:
            async with asyncio.timeout(None if until is None else max(until - self._parts.time(), 0.0)):
                await self._awake.wait()
        except TimeoutError:
            pass

    async def _read_page(self) -> None:
        """Read the next rows, if there is memory for them."""
        if not self._lanes.needs_page(self._parts.rows_each):
            return
        page = None
        limit = self._lanes.begin_page(self._parts.rows_each)
        try:
            page = await self._parts.store.page(PageRequest(self.webhook, *self._lanes.frontier, limit))
        except BaseException as fault:
            self._suspend(fault)
        finally:
            self._lanes.end_page(page, self._parts.time())

    def _start_workers(self, workers: asyncio.TaskGroup) -> None:
        """Start a worker where there is something to send, and no other worker waits for a place already: endpoints take turns."""
        for retry in (True, False):
            if self._may_start(retry=retry):
                self._workers[retry] += 1
                self._queued[retry] += 1
                workers.create_task(self._work(retry=retry), name=WORK)

    def _may_start(self, *, retry: bool) -> bool:
        most = CONCURRENCY if self.phase is Phase.SENDING else 1
        if self._queued[retry] or sum(self._workers.values()) >= most:
            return False
        return self._has_work(retry=retry) and (not retry or self._workers[True] < MOST_RETRIES)

    def _has_work(self, *, retry: bool) -> bool:
        if self.is_ending or self.phase not in (Phase.SENDING, Phase.PROBING):
            return False
        due = self._lanes.next_due
        return due is not None and due <= self._parts.time() if retry else self._lanes.has_ready

    async def _work(self, *, retry: bool) -> None:
        """Send one delivery after another, each in a place of its own, as long as there are any."""
        try:
            while True:
                risk = self._risk_of(retry=retry)
                await self._parts.places.take(risk)
                self._queued[retry] -= 1
                try:
                    if self._has_work(retry=retry) and self._risk_of(retry=retry) <= risk:
                        await self._serve_lane(retry=retry)
                finally:
                    self._parts.places.give_back(risk)
                    self._queued[retry] += 1
                if not self._has_work(retry=retry):
                    return
        finally:
            self._queued[retry] -= 1
            self._workers[retry] -= 1
            self._awake.set()

    def _risk_of(self, *, retry: bool) -> Risk:
        return Risk.FAILING if retry else self._risk

    async def _serve_lane(self, *, retry: bool) -> None:
        """Send the next delivery of the next lane."""
        lane = self._lanes.take_due(self._parts.time()) if retry else self._lanes.take_ready()
        assert lane is not None, "there is work"
        if retry or self._may_start(retry=retry):
            self._awake.set()
        self.in_flight += 1
        try:
            due = await self._send_next(lane)
        except BaseException as fault:
            self._suspend(fault)
            due = self._parts.time()
        finally:
            self.in_flight -= 1
        if due is None:
            self._lanes.done(lane)
        else:
            self._lanes.wait(lane, due)
        if due is not None or retry or self._lanes.needs_page(self._parts.rows_each) or self.phase is not Phase.SENDING:
            self._awake.set()

    async def _send_next(self, lane: Lane) -> float | None:
        """Send the next delivery of a lane. Return the time at which the lane is to be tried again; None if it can go on."""
        row = self._lanes.next_row(lane)
        if row is None:
            page = None
            self._lanes.begin_read(lane)
            try:
                page = await self._parts.store.lane(self.webhook, lane.key)
            finally:
                self._lanes.end_read(lane, page)
            if page.rows and page.rows[0].wait:
                return self._parts.time() + page.rows[0].wait
            row = self._lanes.next_row(lane)
        return None if row is None else await self._attempt(row)

    async def _choose_probe(self) -> bool:
        """Make one ordering key the only one in memory: one whose delivery is due, or else will be next. Return False if nothing is
        pending."""
        try:
            row = await self._parts.store.probe(self.webhook)
        except BaseException as fault:
            self._suspend(fault)
            return True
        self._lanes.forget()
        if row is not None:
            self._lanes.add_waiting(row.ordering_key, self._parts.time() + row.wait)
        return row is not None

    async def _close(self) -> bool:
        """Disable the webhook if that is due, and let its pending deliveries fail. Return False if it must be tried again."""
        assert self._withdrawal is not None
        error, reason, version = self._withdrawal
        store = self._parts.store
        try:
            if reason is not None and (await store.webhook_status(self.webhook)).version == version:
                await self._parts.disable(self.webhook, reason)
            status = await store.webhook_status(self.webhook)
            if not status.enabled:
                await store.fail_pending(self.webhook, error, shard=(self.shard, self.epoch), version=status.version)
        except Exception as fault:
            _log.warning("webhook %s could not be closed: %s", self.webhook, type(fault).__name__)
            await asyncio.sleep(_UNAVAILABLE_SECONDS)
            return False
        return True

    # --- an attempt, step by step

    async def _attempt(self, row: PendingDelivery) -> float | None:
        """Send a delivery once, with the webhook as it is now, and record the outcome. Return the time of the next attempt; None
        if there is none."""
        config = await self._prepare(row)
        result = await self._parts.client.send(row, config)
        if result.unsent:
            raise Unsendable
        if result.gone and config is not None and await self._is_former(config):
            result = replace(result, gone=False)  # it is tried again at the present address
        outcome, health = self._judge(row, result, version=None if config is None else config.version)
        now = self._parts.time()
        await self._parts.outcomes.record(outcome, health)
        return now + outcome.wait if outcome.state == PENDING else None

    async def _prepare(self, row: PendingDelivery) -> EndpointConfig | None:
        """Return the configuration with the address of the row; None if that address is no longer stored."""
        config = await self._present_config()
        if row.sealed_url is not None:
            prepared = await self._parts.configs.with_url(config, row.sealed_url, job=row.ordering_key)
        else:
            prepared = config
        if self._parts.time() >= self._parts.until or self.is_ending:
            raise Unsendable
        return prepared

    async def _present_config(self) -> EndpointConfig:
        """Read the version of the webhook, so that a change applies from the moment its write was answered. The configuration, with
        its secrets, is read only when the version has changed."""
        status = await self._parts.store.webhook_status(self.webhook)
        if status.version is None or not status.enabled:
            self._withdraw(Withdrawal(DELETED if status.version is None else DISABLED))
            raise Unsendable
        if self._config is not None and self._config.version >= status.version:
            return self._config
        config = (await self._parts.configs.load([self.webhook])).get(self.webhook)
        if config is None:
            raise Unsendable(UNREADABLE_SECONDS)
        if config.disabled:
            self._withdraw(Withdrawal(DISABLED))
            raise Unsendable
        if self._config is None:  # later the endpoint knows earlier than the table since when it fails
            self._breaker.failing_since = status.failing_since
        if self._config is None or self._config.version < config.version:
            self._config = config
        return self._config

    async def _is_former(self, config: EndpointConfig) -> bool:
        """Return True if the webhook has changed since this configuration was read."""
        try:
            return (await self._parts.store.webhook_status(self.webhook)).version != config.version
        except Unavailable:
            return False

    def _judge(
        self, row: PendingDelivery, result: AttemptResult, *, version: int | None
    ) -> tuple[AttemptOutcome, EndpointHealthChange | None]:
        """Return the outcome of an attempt, and the health of the endpoint if that is to be recorded with it."""
        now, breaker = self._parts.time(), self._breaker
        since, wait = breaker.failing_since, None
        if result.error is None:
            breaker.delivered()
            self._risk = Risk.PROVEN
        elif not result.address_lost:
            if not result.gone:
                wait = self._parts.schedule.wait(row.attempts + 1, self._parts.rng.random(), requested_wait=result.requested_wait)
            self._failed(result, now, version=version)
        outcome = AttemptOutcome(
            key=row.key,
            shard=self.shard,
            epoch=self.epoch,
            state=PENDING if wait is not None else FAILED if result.error else DELIVERED,
            attempts=row.attempts + 1,
            wait=wait or 0.0,
            started_at=result.started_at,
            seconds=result.seconds,
            status=result.status,
            error=result.error,
            address=result.address,
            response=result.response,
        )
        self._parts.metrics.attempted(_OUTCOMES[outcome.state], status=result.status, seconds=result.seconds)
        open_for = None if self._withdrawal is not None else breaker.open_for(now)
        changed = breaker.failures == 1 or open_for is not None or breaker.failing_since != since
        health = EndpointHealthChange(self.webhook, self.shard, self.epoch, breaker.failing_since, open_for) if changed else None
        return outcome, health

    def _failed(self, result: AttemptResult, now: float, *, version: int | None) -> None:
        """Count a failed attempt, and draw the consequences for the endpoint."""
        self._risk = Risk.FAILING
        since = self._breaker.failing_since or result.started_at
        self._breaker.failed(now, result.started_at)
        if result.gone:
            self._withdraw(Withdrawal(DISABLED, "it answered 410 Gone", version))
        elif result.started_at - since >= LONGEST_FAILURE:
            self._withdraw(Withdrawal(DISABLED, f"nothing but failures for {LONGEST_FAILURE.days} days", version))
        elif result.pauses_endpoint:
            self._pause(result.requested_wait)
        if self._breaker.phase(now) is Phase.RESTING:
            self._lanes.forget()

    def _pause(self, seconds: float) -> None:
        self._breaker.pause(self._parts.time(), seconds)
        if seconds > LONG:
            self._lanes.forget()

    def _withdraw(self, withdrawal: Withdrawal) -> None:
        """Close the endpoint as soon as nothing is in flight. The first reason counts."""
        if self._withdrawal is None:
            self._withdrawal = withdrawal
            self._lanes.forget()

    def _suspend(self, fault: BaseException) -> None:
        """Pause after a fault that is not the receiver's. A fault that must end the task is raised again."""
        if isinstance(fault, LeaseLost) or (isinstance(fault, asyncio.CancelledError) and is_cancelled()):
            raise fault
        if isinstance(fault, Unsendable):
            self._pause(fault.seconds)
        elif isinstance(fault, Unavailable):
            self._pause(_UNAVAILABLE_SECONDS)
        else:  # only the name: a message might repeat a secret
            FAULTS[WORK] += 1
            _log.error("an attempt for webhook %s ended by a fault: %s", self.webhook, type(fault).__name__)
            self._pause(UNREADABLE_SECONDS)
            if not isinstance(fault, (Exception, asyncio.CancelledError)):
                raise fault
