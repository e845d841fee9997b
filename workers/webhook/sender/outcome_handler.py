"""The effect of an attempt on its delivery: done, retry or failed. Its effect on the endpoint is in `endpoint_state.py`. Only the
sink does input or output."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from projections.webhook.endpoint_health import EndpointFailures
from projections.webhook.store import DELIVERED, FAILED, PENDING, AttemptOutcome
from workers.kernel.metrics import WorkerMetrics
from workers.webhook.sender.attempt import AttemptResult
from workers.webhook.sender.endpoint import EndpointSender
from workers.webhook.sender.endpoint_state import AttemptFailed, EndpointAction
from workers.webhook.sender.retries import RetrySchedule
from workers.webhook.sender.scheduler import DeliveryScheduler, PendingOutcome, ScheduledAttempt

_OUTCOMES: Final = {DELIVERED: "delivered", PENDING: "to be retried", FAILED: "failed"}


class OutcomeSink(Protocol):
    """Writes outcomes to the table."""

    def add(self, pending_outcome: PendingOutcome) -> None: ...

    def set_health(self, endpoint: EndpointSender, health: EndpointFailures) -> None: ...


class OutcomeHandler:
    """Handles the results of attempts. `time` is the clock of the scheduler."""

    def __init__(
        self,
        scheduler: DeliveryScheduler,
        sink: OutcomeSink,
        *,
        schedule: RetrySchedule,
        rng: Random,
        time: Callable[[], float],
        metrics: WorkerMetrics,
    ) -> None:
        self._scheduler = scheduler
        self._sink = sink
        self._schedule = schedule
        self._rng = rng
        self._time = time
        self._metrics = metrics

    def handle(self, attempt: ScheduledAttempt, result: AttemptResult) -> None:
        endpoint, row, now = attempt.endpoint, attempt.row, self._time()
        wait = None
        if result.error is None:
            actions = endpoint.succeeded(row, now)
        elif result.address_lost:
            actions = endpoint.given_up(row, now)
        else:
            if not result.gone:
                wait = self._schedule.wait(row.attempts + 1, self._rng.random(), requested_wait=result.requested_wait)
            pause = result.requested_wait if result.pauses_endpoint else 0.0
            actions = endpoint.failed(row, AttemptFailed(result.started_at, gone=result.gone, pause=pause), now=now, wait=wait)
        health = EndpointFailures(endpoint.state.failing_since, endpoint.state.open_for(now))
        first = endpoint.state.failures == 1  # failures in a row: an earlier owner may have left the circuit breaker open
        if first or health.open_for is not None or EndpointAction.WRITE_HEALTH in actions:
            self._sink.set_health(endpoint, health)
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
        self._metrics.attempted(_OUTCOMES[outcome.state], status=result.status, seconds=result.seconds)
        pending_outcome = PendingOutcome(outcome, endpoint, now + outcome.wait)
        self._scheduler.add_outcome(pending_outcome)
        self._sink.add(pending_outcome)
