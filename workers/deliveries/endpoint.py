"""One endpoint: its state, its rows in memory, and how many attempts may be in flight. Pure.

Up to a quarter of its places is for retries, which get them first. So neither first attempts nor retries wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from projections.deliveries.store import PendingDelivery
from workers.deliveries.endpoint_configs import EndpointConfig
from workers.deliveries.endpoint_state import Action, Delivered, EndpointState, Event, Failed, Phase, TimeCame, next_state
from workers.deliveries.queues import OrderedQueues
from workers.deliveries.timer import Timer

CONCURRENCY: Final = 16
MOST_RETRIES: Final = CONCURRENCY // 4
MOST_QUEUES: Final = 50_000
"""With so many queues in memory an endpoint takes no new rows."""


class Endpoint:
    """A webhook with pending deliveries. `mark_ready` is called when it may have something to read or to send again."""

    def __init__(
        self, webhook: UUID, *, shard: int, epoch: int, timer: Timer, mark_ready: Callable[[Endpoint], None], limit: int
    ) -> None:
        self.webhook = webhook
        self.shard = shard
        self.epoch = epoch
        self.state = EndpointState()
        self.config: EndpointConfig | None = None
        """As the last attempt has read it."""
        self.closed_version: int | None = None
        """The version of the webhook that is to be closed: a later one may have another address."""
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
        self.proven = False
        """Its last attempt was answered well."""
        self._probe_at = float("-inf")
        self._mark_ready = partial(mark_ready, self)
        self._timer = timer
        self.queues = OrderedQueues(self._mark_ready, self._set_timer)

    @property
    def closing(self) -> bool:
        return self.state.phase is Phase.CLOSING

    @property
    def recently_failed(self) -> bool:
        """The next attempt may hang, so it uses a place for retries."""
        return self.state.failures > 0

    @property
    def idle(self) -> bool:
        """Nothing is in flight, and all outcomes are written."""
        return self.in_flight == 0 and self.unwritten == 0

    @property
    def evictable(self) -> bool:
        """A new endpoint object would have the same state."""
        return self.idle and not self.has_unread and not len(self.queues) and self.state.failures == 0 and not self.closing

    @property
    def needs_page(self) -> bool:
        """A page is read when half of the rows in memory are sent: few large pages instead of many small ones."""
        return self.has_unread and self.state.phase is Phase.SENDING and 2 * self.queues.waiting <= self.limit

    def needs_probe(self, now: float) -> bool:
        """The single row for the next attempt must be read."""
        probing = self.state.phase is Phase.PROBING and not self.releasing
        return probing and self.idle and not len(self.queues) and now >= self._probe_at

    def capacity(self) -> int:
        """How many more rows it may keep in memory."""
        if self.state.phase is not Phase.SENDING or self.releasing or len(self.queues) >= MOST_QUEUES:
            return 0
        return self.limit - self.queues.waiting

    def read_again(self) -> None:
        """Rows before the frontier may be pending, and the webhook may have changed: start at the beginning."""
        self.queues.clear()
        self.generation += 1
        self.has_unread = True
        self._probe_at = float("-inf")

    def apply(self, event: Event, now: float) -> Action:
        """What has happened to the endpoint. Returns what the caller must do: all but reading again."""
        self.state, actions = next_state(self.state, event, now=now)
        if Action.CLOSE in actions and self.config is not None:
            self.closed_version = self.config.version
        if Action.READ_AGAIN in actions:
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
        """No delivery is due before."""
        self._probe_at = due
        self._set_timer()

    def next(self, now: float, *, retries_allowed: bool) -> PendingDelivery | None:
        """The row to send now. `retries_allowed`: the process has a place for a retry."""
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

    def succeeded(self, row: PendingDelivery, now: float) -> Action:
        self.proven = True
        self.queues.done(row)
        return self.apply(Delivered(), now)

    def failed(self, row: PendingDelivery, failure: Failed, *, now: float, wait: float | None) -> Action:
        """`wait`: seconds until the retry; None: the delivery has failed."""
        self.proven = False
        if wait is None:
            self.queues.done(row)
        else:
            self.queues.retry_later(row, now + wait)
        return self.apply(failure, now)

    def given_up(self, row: PendingDelivery, now: float) -> Action:
        """The delivery has failed, for a reason that is not the receiver's."""
        self.queues.done(row)
        return self.apply(TimeCame(), now)

    def not_sent(self, row: PendingDelivery, event: Event, *, now: float) -> Action:
        """The attempt was given up before anything was sent. Its row is read again."""
        self.queues.done(row)
        actions = self.apply(event, now)
        self.read_again()
        return actions

    def _places(self) -> int:
        return {Phase.SENDING: CONCURRENCY, Phase.PROBING: 1}.get(self.state.phase, 0)

    def completed(self, row: PendingDelivery) -> None:
        """An attempt has ended, however it did: its place is free again."""
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
