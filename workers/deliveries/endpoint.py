"""One endpoint: how many attempts may be in flight, and when it gets none. Pure.

Up to a quarter of its places is for retries, which get them first. So neither first attempts nor retries wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from projections.deliveries.store import PendingDelivery
from workers.deliveries.circuit_breaker import CircuitBreaker
from workers.deliveries.endpoint_configs import EndpointConfig
from workers.deliveries.queues import OrderedQueues, Timer

CONCURRENCY: Final = 16
MOST_RETRIES: Final = CONCURRENCY // 4
MOST_QUEUES: Final = 50_000
"""With so many queues in memory an endpoint takes no new rows."""
PROBING: Final = 50
"""Rows to read for the single attempt that tests an endpoint after a pause."""
LONG: Final = 5.0
"""Seconds: during a longer pause an endpoint keeps no rows in memory."""


class Endpoint:
    """A webhook with pending deliveries. `mark_ready` is called when it may have something to read or to send again."""

    def __init__(
        self, webhook: UUID, *, shard: int, epoch: int, timer: Timer, mark_ready: Callable[[Endpoint], None], limit: int
    ) -> None:
        self.webhook = webhook
        self.shard = shard
        self.epoch = epoch
        self.config: EndpointConfig | None = None
        self.checked = float("-inf")
        self.failing_since: datetime | None = None
        self.closed_reason: str | None = None
        """Why nothing is sent any more; the error of its pending deliveries. None while it is open."""
        self.disable_reason: str | None = None
        self.releasing = False
        """Its shard is to be released."""
        self.revoked = False
        """Another member owns its shard."""
        self.limit = limit
        """How many rows it may keep in memory."""
        self.has_unread = True
        """Rows after the frontier were not offered; they are read by pages of this endpoint."""
        self.generation = 0
        self.in_flight = 0
        self.in_flight_retries = 0
        self.unwritten = 0
        self.queued = False
        self._mark_ready = partial(mark_ready, self)
        self._timer = timer
        self._breaker = CircuitBreaker()
        self._paused_until = float("-inf")
        self.queues = OrderedQueues(timer, self._mark_ready)

    @property
    def recently_failed(self) -> bool:
        """The next attempt may hang, so it uses a place for retries."""
        return self._breaker.failures > 0

    @property
    def idle(self) -> bool:
        """Nothing is in flight, and all outcomes are written."""
        return self.in_flight == 0 and self.unwritten == 0

    @property
    def evictable(self) -> bool:
        """A new endpoint object would have the same state."""
        return (
            self.idle and not self.has_unread and not len(self.queues) and not self.recently_failed and self.closed_reason is None
        )

    @property
    def probing(self) -> bool:
        return self._breaker.open_until is not None

    @property
    def needs_page(self) -> bool:
        """A page is read when half of the rows in memory are sent: few large pages instead of many small ones."""
        return self.has_unread and 2 * self.queues.waiting <= (PROBING if self.probing else self.limit)

    def capacity(self, now: float) -> int:
        """How many more rows it may keep in memory."""
        if self.closed_reason is not None or self.releasing or not self._may_send(now) or len(self.queues) >= MOST_QUEUES:
            return 0
        return (PROBING if self.probing else self.limit) - self.queues.waiting

    def read_again(self) -> None:
        """Rows before the frontier may be pending, and the webhook may have changed: start at the beginning."""
        self.checked = float("-inf")
        self.queues.clear()
        self.generation += 1
        self.has_unread = True

    def close(self, reason: str, *, disable: str | None = None) -> None:
        self.closed_reason = reason
        self.disable_reason = disable
        self.read_again()

    def next(self, now: float, *, retries_allowed: bool) -> PendingDelivery | None:
        """The row to send now. `retries_allowed`: the process has a place for a retry."""
        if (
            self.closed_reason is not None
            or self.releasing
            or self.revoked
            or self.in_flight >= CONCURRENCY
            or not self._may_send(now)
        ):
            return None
        if self.recently_failed and not retries_allowed:
            return None
        if retries_allowed and self.queues.has_retry and self.in_flight_retries < MOST_RETRIES:
            self.in_flight_retries += 1
            row = self.queues.take(retry=True)
        elif self.queues.has_first:
            row = self.queues.take(retry=False)
        else:
            return None
        self.in_flight += 1
        return row

    def succeeded(self, row: PendingDelivery) -> None:
        self._completed(row)
        self._breaker.succeeded()
        self.queues.done(row)

    def failed(self, row: PendingDelivery, now: float, *, wait: float | None) -> None:
        """`wait`: seconds until the retry; None: the delivery has failed."""
        self._completed(row)
        if wait is None:
            self.queues.done(row)
        else:
            self.queues.retry_later(row, now + wait)
        if self._breaker.failed(now):
            assert self._breaker.open_until is not None
            self._pause_until(self._breaker.open_until, now)

    def pause(self, now: float, *, seconds: float) -> None:
        """Send nothing for so long, as the receiver asked."""
        if now + seconds > self._paused_until:
            self._paused_until = now + seconds
            self._pause_until(self._paused_until, now)

    def _may_send(self, now: float) -> bool:
        return now >= self._paused_until and self._breaker.allows(now, in_flight=self.in_flight)

    def _completed(self, row: PendingDelivery) -> None:
        self.in_flight -= 1
        if row.attempts:
            self.in_flight_retries -= 1

    def _pause_until(self, until: float, now: float) -> None:
        if until - now > LONG:
            self.read_again()
        self._timer.at(until, self._mark_ready)
