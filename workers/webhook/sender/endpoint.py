"""An endpoint: its state, its rows in memory, and the number of attempts that may be in flight. It does no input or output.

Up to a quarter of its places is for retries, which are served first, so neither first attempts nor retries wait forever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from projections.webhook.store import PendingDelivery
from workers.webhook.sender.endpoint_configs import EndpointConfig
from workers.webhook.sender.endpoint_state import (
    AttemptDelivered,
    AttemptFailed,
    EndpointAction,
    EndpointState,
    Event,
    Phase,
    TimeCame,
    next_state,
)
from workers.webhook.sender.queues import OrderedQueues
from workers.webhook.sender.timer import Timer

CONCURRENCY: Final = 16
MOST_RETRIES: Final = CONCURRENCY // 4
MOST_QUEUES: Final = 50_000
"""The number of queues in memory above which an endpoint takes no new rows."""


class EndpointSender:
    """A webhook with pending deliveries. `mark_ready` is called when it may have something to read or to send again."""

    def __init__(
        self, webhook: UUID, *, shard: int, epoch: int, timer: Timer, mark_ready: Callable[[EndpointSender], None], limit: int
    ) -> None:
        self.webhook = webhook
        self.shard = shard
        self.epoch = epoch
        self.state = EndpointState()
        self.config: EndpointConfig | None = None
        """The configuration that the last attempt has read."""
        self.closed_version: int | None = None
        """The version of the webhook that is to be closed: a later one may have another address."""
        self.releasing = False
        """True if its shard is to be released."""
        self.revoked = False
        """True if another member owns its shard."""
        self.limit = limit
        """The number of rows that it may keep in memory."""
        self.has_unread = True
        """True if rows after the frontier were not offered; they are read by pages of this endpoint."""
        self.generation = 0
        self.in_flight = 0
        self.in_flight_retries = 0
        self.unwritten = 0
        self.queued = False
        self.proven = False
        """True if its last attempt succeeded."""
        self._probe_at = float("-inf")
        self._mark_ready = partial(mark_ready, self)
        self._timer = timer
        self.queues = OrderedQueues(self._mark_ready, self._set_timer)

    @property
    def closing(self) -> bool:
        return self.state.phase is Phase.CLOSING

    @property
    def recently_failed(self) -> bool:
        """True if the last attempt failed: the next one may hang, so it uses a place for retries."""
        return self.state.failures > 0

    @property
    def idle(self) -> bool:
        """True if nothing is in flight, and all outcomes are written."""
        return self.in_flight == 0 and self.unwritten == 0

    @property
    def evictable(self) -> bool:
        """True if a new endpoint object would have the same state."""
        return self.idle and not self.has_unread and not len(self.queues) and self.state.failures == 0 and not self.closing

    @property
    def needs_page(self) -> bool:
        """True if a page is to be read: when half of the rows in memory are sent, so that few large pages are read instead of many
        small ones."""
        return self.has_unread and self.state.phase is Phase.SENDING and 2 * self.queues.waiting <= self.limit

    def needs_probe(self, now: float) -> bool:
        """Return True if the single row for the next attempt must be read."""
        probing = self.state.phase is Phase.PROBING and not self.releasing
        return probing and self.idle and not len(self.queues) and now >= self._probe_at

    def capacity(self) -> int:
        """Return the number of further rows that it may keep in memory."""
        if self.state.phase is not Phase.SENDING or self.releasing or len(self.queues) >= MOST_QUEUES:
            return 0
        return self.limit - self.queues.waiting

    def read_again(self) -> None:
        """Restart reading at the beginning: rows before the frontier may be pending, and the webhook may have changed."""
        self.queues.clear()
        self.generation += 1
        self.has_unread = True
        self._probe_at = float("-inf")

    def apply(self, event: Event, now: float) -> EndpointAction:
        """Apply an event. Return what the caller must do, except for reading again."""
        self.state, actions = next_state(self.state, event, now=now)
        if EndpointAction.CLOSE in actions and self.config is not None:
            self.closed_version = self.config.version
        if EndpointAction.READ_AGAIN in actions:
            self.read_again()
        self._set_timer()
        return actions

    def time_came(self, now: float) -> None:
        self.apply(TimeCame(), now)
        self.queues.wake_due(now)
        if now >= self._probe_at:
            self._probe_at = float("-inf")
        self._set_timer()
        self._mark_ready()

    def probe_later(self, due: float) -> None:
        """Set the time before which no delivery is due."""
        self._probe_at = due
        self._set_timer()

    def next(self, now: float, *, retries_allowed: bool) -> PendingDelivery | None:
        """Return the row to send now. `retries_allowed` is True if the process has a place for a retry."""
        if self.releasing or self.revoked or self.in_flight >= self._places():
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

    def succeeded(self, row: PendingDelivery, now: float) -> EndpointAction:
        self.proven = True
        self.queues.done(row)
        return self.apply(AttemptDelivered(), now)

    def failed(self, row: PendingDelivery, failure: AttemptFailed, *, now: float, wait: float | None) -> EndpointAction:
        """Record a failed attempt. `wait` is the number of seconds until the retry; None if the delivery has failed."""
        self.proven = False
        if wait is None:
            self.queues.done(row)
        else:
            self.queues.retry_later(row, now + wait)
        return self.apply(failure, now)

    def given_up(self, row: PendingDelivery, now: float) -> EndpointAction:
        """Record that the delivery has failed for a reason that is not the receiver's."""
        self.queues.done(row)
        return self.apply(TimeCame(), now)

    def not_sent(self, row: PendingDelivery, event: Event, *, now: float) -> EndpointAction:
        """Record an attempt that ended before anything was sent. Its row is read again."""
        self.queues.done(row)
        actions = self.apply(event, now)
        self.read_again()
        return actions

    def _places(self) -> int:
        return {Phase.SENDING: CONCURRENCY, Phase.PROBING: 1}.get(self.state.phase, 0)

    def completed(self, row: PendingDelivery) -> None:
        """Release the place of an attempt that has ended, whatever its outcome."""
        self.in_flight -= 1
        if row.attempts:
            self.in_flight_retries -= 1

    def _set_timer(self) -> None:
        match self.state.phase:
            case Phase.PAUSED | Phase.RESTING:
                due: float | None = self.state.until
            case Phase.PROBING if self._probe_at > float("-inf"):
                due = self._probe_at
            case _:
                due = self.queues.next_due
        self._timer.set(self, None if self.revoked else due)
