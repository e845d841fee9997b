"""What an attempt means for its delivery and for the endpoint: done, retry, failed, pause, disable. Pure except for the sink."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Final, Protocol

from projections.deliveries.store import DELIVERED, FAILED, PENDING, AttemptOutcome
from workers.deliveries.attempt import AttemptResult
from workers.deliveries.endpoint import Endpoint
from workers.deliveries.fanout import DISABLED
from workers.deliveries.retries import Schedule
from workers.deliveries.scheduler import DeliveryScheduler, PendingOutcome, ScheduledAttempt

LONGEST_FAILURE: Final = timedelta(days=5)


class OutcomeSink(Protocol):
    """Writes outcomes to the table."""

    def add(self, pending_outcome: PendingOutcome) -> None: ...

    def set_failing_since(self, endpoint: Endpoint, since: datetime | None) -> None: ...


class OutcomeHandler:
    """Handles results of attempts. `time` is the clock of the scheduler."""

    def __init__(
        self, scheduler: DeliveryScheduler, sink: OutcomeSink, *, schedule: Schedule, rng: Random, time: Callable[[], float]
    ) -> None:
        self._scheduler = scheduler
        self._sink = sink
        self._schedule = schedule
        self._rng = rng
        self._time = time

    def handle(self, attempt: ScheduledAttempt, result: AttemptResult) -> None:
        endpoint, row, now = attempt.endpoint, attempt.row, self._time()
        wait = None
        if result.error is None:
            endpoint.succeeded(row)
            if endpoint.failing_since is not None:
                self._set_failing_since(endpoint, None)
        else:
            if not result.gone:
                wait = self._schedule.wait(row.attempts + 1, self._rng.random(), requested_wait=result.requested_wait)
            endpoint.failed(row, now, wait=wait)
            self._check_endpoint(endpoint, result, now=now)
        outcome = AttemptOutcome(
            key=row.key,
            shard=endpoint.shard,
            epoch=endpoint.epoch,
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
        pending_outcome = PendingOutcome(outcome, endpoint, now + outcome.wait)
        self._scheduler.add_outcome(pending_outcome)
        self._sink.add(pending_outcome)
        self._scheduler.completed(attempt)

    def _check_endpoint(self, endpoint: Endpoint, result: AttemptResult, *, now: float) -> None:
        if result.pauses_endpoint:
            endpoint.pause(now, seconds=result.requested_wait)
        if endpoint.failing_since is None:
            self._set_failing_since(endpoint, result.started_at)
        if endpoint.closed_reason is not None:
            return
        if result.gone:
            endpoint.close(DISABLED, disable="it answered 410 Gone")
        elif endpoint.failing_since is not None and result.started_at - endpoint.failing_since >= LONGEST_FAILURE:
            endpoint.close(DISABLED, disable=f"nothing but failures for {LONGEST_FAILURE.days} days")

    def _set_failing_since(self, endpoint: Endpoint, since: datetime | None) -> None:
        endpoint.failing_since = since
        self._sink.set_failing_since(endpoint, since)
