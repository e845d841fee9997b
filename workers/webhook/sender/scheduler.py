"""Schedules attempts over all endpoints of this process, and keeps outcomes until they are in the table. It does no input or
output.

Endpoints take turns: those whose last attempt succeeded, and the others, of which there may be many that fail. At most a quarter of
the places is used for retries and for endpoints whose last attempt failed: these may hang.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from projections.webhook.keys import shard_of
from projections.webhook.store import PENDING, AttemptOutcome, Key, PendingDelivery
from workers.webhook.sender.endpoint import EndpointSender
from workers.webhook.sender.endpoint_state import Event, Phase
from workers.webhook.sender.timer import Timer

PLACES: Final = 512
MOST_UNWRITTEN: Final = 10_000
"""The number of unwritten outcomes at which no further attempt starts."""
_MANY_ENDPOINTS: Final = 1000
_WAITING: Final = 20_000
_WAITING_EACH: Final = (50, 1000)


@dataclass(slots=True)
class ScheduledAttempt:
    """An attempt to start now. `retry` is True if it uses a place for retries."""

    endpoint: EndpointSender
    row: PendingDelivery
    retry: bool


@dataclass(slots=True)
class PendingOutcome:
    """An outcome that a read of the table may not show yet. `due` is a time of this process's monotonic clock."""

    outcome: AttemptOutcome
    endpoint: EndpointSender
    due: float


class DeliveryScheduler:
    """The endpoints, and the shards that this member owns. `changed` is called when there may be something to read or to send."""

    def __init__(self, changed: Callable[[], None], *, places: int = PLACES) -> None:
        self.timer = Timer(changed)
        self.endpoints: dict[UUID, EndpointSender] = {}
        self.shards: dict[int, int] = {}
        """The epochs of the owned shards, without those that are to be released."""
        self.releasing: dict[int, int] = {}
        self.until = float("-inf")
        """The time until which the shards are certainly owned."""
        self.to_read: dict[EndpointSender, None] = {}
        self.to_close: dict[EndpointSender, None] = {}
        self.in_flight = 0
        self.waiting_each = _WAITING_EACH[1]
        self._in_flight_retries = 0
        self._changed = changed
        self._places = places
        self._proven: deque[EndpointSender] = deque()
        self._others: deque[EndpointSender] = deque()
        self._turn_of_others = False
        self._waiting_for_place: list[EndpointSender] = []
        self._unwritten: dict[Key, PendingOutcome] = {}
        self._written: dict[Key, PendingOutcome] = {}

    def endpoint(self, webhook: UUID) -> EndpointSender | None:
        """Return the endpoint of a webhook, which is created if it is missing; None if its shard is not owned."""
        endpoint = self.endpoints.get(webhook)
        if endpoint is None:
            shard = shard_of(webhook)
            epoch = self.shards.get(shard)
            if epoch is not None:
                endpoint = self.endpoints[webhook] = EndpointSender(
                    webhook, shard=shard, epoch=epoch, timer=self.timer, mark_ready=self.mark_ready, limit=self.waiting_each
                )
                self.mark_ready(endpoint)
        return endpoint

    def in_phase(self, phase: Phase) -> int:
        """Return the number of endpoints in this phase."""
        return sum(endpoint.state.phase is phase for endpoint in self.endpoints.values())

    def mark_ready(self, endpoint: EndpointSender) -> None:
        """Record that the endpoint may have something to send or to read."""
        if endpoint.revoked:
            return
        if endpoint.closing:
            self.to_close[endpoint] = None
        elif endpoint.has_unread or endpoint.queues.to_refill:
            self.to_read[endpoint] = None
        self._queue(endpoint)
        self._changed()

    def next(self, now: float) -> ScheduledAttempt | None:
        """Return the attempt to start now; None if there is none, or no place for it."""
        if now >= self.until or len(self._unwritten) >= MOST_UNWRITTEN or self.in_flight >= self._places:
            return None
        retries_allowed = self._in_flight_retries < max(self._places // 4, 1)
        for _ in range(len(self._proven) + len(self._others)):
            first, second = (self._others, self._proven) if self._turn_of_others else (self._proven, self._others)
            endpoint = (first or second).popleft()
            endpoint.queued = False
            recently_failed = endpoint.recently_failed
            row = endpoint.next(now, retries_allowed=retries_allowed)
            if row is not None:
                self._turn_of_others = endpoint.proven
                self._queue(endpoint)
                retry = recently_failed or row.attempts > 0
                self.in_flight += 1
                self._in_flight_retries += retry
                return ScheduledAttempt(endpoint, row, retry)
            if not retries_allowed and (recently_failed or endpoint.queues.has_retry):
                self._waiting_for_place.append(endpoint)
        return None

    def _queue(self, endpoint: EndpointSender) -> None:
        if not endpoint.queued:
            endpoint.queued = True
            (self._proven if endpoint.proven else self._others).append(endpoint)

    def completed(self, attempt: ScheduledAttempt) -> None:
        """Release the places of an attempt that has ended, whatever its outcome."""
        self.in_flight -= 1
        endpoint = attempt.endpoint
        endpoint.completed(attempt.row)
        self._queue(endpoint)
        if endpoint.closing:
            self.mark_ready(endpoint)
        elif (endpoint.needs_page or endpoint.queues.to_refill) and not endpoint.revoked:
            self.to_read[endpoint] = None
            self._changed()
        if attempt.retry:
            self._in_flight_retries -= 1
            waiting, self._waiting_for_place = self._waiting_for_place, []
            for other in waiting:
                self.mark_ready(other)

    def not_sent(self, attempt: ScheduledAttempt, event: Event, *, now: float) -> None:
        """End an attempt before anything was sent; the endpoint could not be used because of this event."""
        attempt.endpoint.not_sent(attempt.row, event, now=now)
        self.mark_ready(attempt.endpoint)

    def owns(self, endpoint: EndpointSender, now: float) -> bool:
        """Return True if an attempt may start."""
        return not endpoint.revoked and now < self.until

    def hold(self, shards: Mapping[int, int], *, excess: Iterable[int], until: float) -> bool:
        """Set the owned shards with their epochs; those of `excess` are to be released. Return True if there are new ones, whose
        webhooks must be found."""
        for shard, epoch in (self.shards | self.releasing).items():
            if shards.get(shard) != epoch:
                self.revoke(shard, epoch)
        self.until = until
        self.releasing = {shard: shards[shard] for shard in excess}
        staying = {shard: epoch for shard, epoch in shards.items() if shard not in self.releasing}
        new = staying.keys() - self.shards.keys()
        self.shards = staying
        for endpoint in self.endpoints.values():
            releasing = endpoint.shard in self.releasing
            if endpoint.releasing and not releasing:  # rows were passed over meanwhile
                endpoint.read_again()
                self.mark_ready(endpoint)
            endpoint.releasing = releasing
        return bool(new)

    def free(self) -> list[int]:
        """Return the shards to release that have nothing in flight and no unwritten outcome."""
        busy = {endpoint.shard for endpoint in self.endpoints.values() if not endpoint.idle}
        return [shard for shard in self.releasing if shard not in busy]

    def revoke(self, shard: int, epoch: int) -> None:
        """Forget the endpoints and outcomes of a shard, because another member owns it."""
        for endpoint in [endpoint for endpoint in self.endpoints.values() if (endpoint.shard, endpoint.epoch) == (shard, epoch)]:
            endpoint.revoked = True
            self.remove(endpoint)
        for owned in (self.shards, self.releasing):
            if owned.get(shard) == epoch:
                del owned[shard]
        for outcomes in (self._unwritten, self._written):
            for key in [
                key for key, pending in outcomes.items() if (pending.outcome.shard, pending.outcome.epoch) == (shard, epoch)
            ]:
                del outcomes[key]

    def remove(self, endpoint: EndpointSender) -> None:
        if self.endpoints.get(endpoint.webhook) is endpoint:
            del self.endpoints[endpoint.webhook]
        self.timer.set(endpoint, None)
        self.to_read.pop(endpoint, None)
        self.to_close.pop(endpoint, None)

    def tidy(self) -> None:
        """Remove idle endpoints if there are many, and set how many rows each endpoint may keep in memory."""
        if len(self.endpoints) > _MANY_ENDPOINTS:
            for endpoint in [endpoint for endpoint in self.endpoints.values() if endpoint.evictable]:
                self.remove(endpoint)
        least, most = _WAITING_EACH
        self.waiting_each = max(least, min(most, _WAITING // max(len(self.endpoints), 1)))
        for endpoint in self.endpoints.values():
            endpoint.limit = self.waiting_each

    def add_outcome(self, pending_outcome: PendingOutcome) -> None:
        """Store an outcome in memory until it is written."""
        pending_outcome.endpoint.unwritten += 1
        if not pending_outcome.endpoint.revoked:
            self._unwritten[pending_outcome.outcome.key] = pending_outcome

    def outcome_written(self, pending_outcome: PendingOutcome) -> None:
        endpoint = pending_outcome.endpoint
        endpoint.unwritten -= 1
        key = pending_outcome.outcome.key
        if self._unwritten.get(key) is pending_outcome:
            del self._unwritten[key]
            self._written[key] = pending_outcome
        if endpoint.idle and endpoint.state.phase in (Phase.CLOSING, Phase.PROBING):
            self.mark_ready(endpoint)

    def before_read(self) -> None:
        """Record that a read of the table starts: it will show all outcomes that are written by now."""
        self._written.clear()

    def with_outcome(self, row: PendingDelivery, now: float) -> PendingDelivery | None:
        """Return a row of the table with its later outcome, if there is one; None if the delivery is done."""
        if not self._unwritten and not self._written:
            return row
        pending_outcome = self._unwritten.get(row.key) or self._written.get(row.key)
        if pending_outcome is None:
            return row
        if pending_outcome.outcome.state != PENDING:
            return None
        return row._replace(attempts=pending_outcome.outcome.attempts, wait=max(pending_outcome.due - now, row.wait, 0.0))
