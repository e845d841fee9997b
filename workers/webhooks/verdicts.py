"""What a try means for its delivery, and for the endpoint. Issue 5, "Delivery". Pure but for who is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Final, Protocol

from projections.deliveries.ledger import DELIVERED, FAILED, PENDING, Outcome
from workers.webhooks.attempt import Tried
from workers.webhooks.dispatch import Dispatch, Job, Settled
from workers.webhooks.endpoint import Endpoint
from workers.webhooks.retries import Schedule

NOTHING_BUT_FAILURE: Final = timedelta(days=5)
DISABLED: Final = "the webhook is disabled"


class Record(Protocol):
    """Who writes it down."""

    def add(self, settled: Settled) -> None: ...

    def turn(self, endpoint: Endpoint, since: datetime | None) -> None: ...


class Verdicts:
    """Settles tries. `time` is that of `Dispatch`."""

    def __init__(self, dispatch: Dispatch, record: Record, *, schedule: Schedule, rng: Random, time: Callable[[], float]) -> None:
        self._dispatch = dispatch
        self._record = record
        self._schedule = schedule
        self._rng = rng
        self._time = time

    def settle(self, job: Job, tried: Tried) -> None:
        endpoint, row, now = job.endpoint, job.row, self._time()
        wait = None
        if tried.error is None:
            endpoint.succeeded(row)
            if endpoint.failing_since is not None:
                self._turn(endpoint, None)
        else:
            if not tried.gone:
                wait = self._schedule.wait(row.attempts + 1, self._rng.random(), asked=tried.asked)
            endpoint.failed(row, now, wait=wait)
            self._judge(endpoint, tried, now=now)
        outcome = Outcome(
            key=row.key,
            shard=endpoint.shard,
            epoch=endpoint.epoch,
            state=PENDING if wait is not None else FAILED if tried.error else DELIVERED,
            attempts=row.attempts + 1,
            wait=wait or 0.0,
            started_at=tried.started_at,
            seconds=tried.seconds,
            status=tried.status,
            error=tried.error,
            address=tried.address,
            response=tried.response,
        )
        settled = Settled(outcome, endpoint, now + outcome.wait)
        self._dispatch.settle(settled)
        self._record.add(settled)
        self._dispatch.landed(job)

    def _judge(self, endpoint: Endpoint, tried: Tried, *, now: float) -> None:
        if tried.pauses:
            endpoint.pause(now, seconds=tried.asked)
        if endpoint.failing_since is None:
            self._turn(endpoint, tried.started_at)
        if endpoint.closed is not None:
            return
        if tried.gone:
            endpoint.close(DISABLED, disable="it answered 410 Gone")
        elif endpoint.failing_since is not None and tried.started_at - endpoint.failing_since >= NOTHING_BUT_FAILURE:
            endpoint.close(DISABLED, disable=f"nothing but failures for {NOTHING_BUT_FAILURE.days} days")

    def _turn(self, endpoint: Endpoint, since: datetime | None) -> None:
        endpoint.failing_since = since
        self._record.turn(endpoint, since)
