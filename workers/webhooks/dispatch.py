"""All endpoints of this process: whose turn it is, and what became of tries but is not in the table yet. Pure. Issue 5, "Delivery".

Endpoints take turns. A quarter of the places is for what may hang: later tries, and tries at endpoints that failed last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from projections.deliveries.keys import shard_of
from projections.deliveries.ledger import PENDING, Key, Outcome, PendingDelivery
from workers.webhooks.endpoint import Endpoint
from workers.webhooks.lanes import Agenda

PLACES: Final = 512
MOST_UNWRITTEN: Final = 10_000
"""So many tries may lack a written outcome before there are no more."""
_KEPT: Final = 1000
_WAITING: Final = 20_000
_WAITING_EACH: Final = (50, 1000)


@dataclass(slots=True)
class Job:
    endpoint: Endpoint
    row: PendingDelivery
    late: bool


@dataclass(slots=True)
class Settled:
    """An outcome that is not written yet, or only since the last question was asked. `due` is on this process's own clock."""

    outcome: Outcome
    endpoint: Endpoint
    due: float


class Dispatch:
    """`changed` is called when there may be something to read or to send."""

    def __init__(self, changed: Callable[[], None], *, places: int = PLACES) -> None:
        self.agenda = Agenda(changed)
        self.endpoints: dict[UUID, Endpoint] = {}
        self.shares: dict[int, int] = {}
        """Epochs of the shards that are ours and are to stay so."""
        self.leaving: dict[int, int] = {}
        self.until = float("-inf")
        """Up to when the shards are surely ours."""
        self.to_read: dict[Endpoint, None] = {}
        self.to_close: dict[Endpoint, None] = {}
        self.flying = 0
        self.waiting_each = _WAITING_EACH[1]
        self._flying_late = 0
        self._changed = changed
        self._places = places
        self._runnable: deque[Endpoint] = deque()
        self._held_back: list[Endpoint] = []
        self._unwritten: dict[Key, Settled] = {}
        self._written: dict[Key, Settled] = {}

    def endpoint(self, webhook: UUID) -> Endpoint | None:
        """The endpoint, from now on if need be; None when its shard is not ours."""
        found = self.endpoints.get(webhook)
        if found is None:
            shard = shard_of(webhook)
            epoch = self.shares.get(shard)
            if epoch is not None:
                found = self.endpoints[webhook] = Endpoint(
                    webhook, shard=shard, epoch=epoch, agenda=self.agenda, awake=self.awake, limit=self.waiting_each
                )
                self.awake(found)
        return found

    def awake(self, endpoint: Endpoint) -> None:
        """It may have something to send or to read."""
        if endpoint.lost:
            return
        if endpoint.closed is not None:
            self.to_close[endpoint] = None
        elif endpoint.behind or endpoint.lanes.hungry:
            self.to_read[endpoint] = None
        if not endpoint.queued:
            endpoint.queued = True
            self._runnable.append(endpoint)
        self._changed()

    def next(self, now: float) -> Job | None:
        """What to send now."""
        if now >= self.until or len(self._unwritten) >= MOST_UNWRITTEN or self.flying >= self._places:
            return None
        late_too = self._flying_late < max(self._places // 4, 1)
        for _ in range(len(self._runnable)):
            endpoint = self._runnable.popleft()
            suspect = endpoint.suspect
            row = endpoint.next(now, late_too=late_too)
            if row is not None:
                self._runnable.append(endpoint)
                late = suspect or row.attempts > 0
                self.flying += 1
                self._flying_late += late
                return Job(endpoint, row, late)
            endpoint.queued = False
            if not late_too and (suspect or endpoint.lanes.late):
                self._held_back.append(endpoint)
        return None

    def landed(self, job: Job) -> None:
        """After the endpoint was told."""
        self.flying -= 1
        endpoint = job.endpoint
        if not endpoint.queued:
            endpoint.queued = True
            self._runnable.append(endpoint)
        if endpoint.closed is not None:
            self.awake(endpoint)
        elif (endpoint.starved or endpoint.lanes.hungry) and not endpoint.lost:
            self.to_read[endpoint] = None
            self._changed()
        if job.late:
            self._flying_late -= 1
            held, self._held_back = self._held_back, []
            for one in held:
                self.awake(one)

    def hold(self, shares: Mapping[int, int], *, surplus: Iterable[int], until: float) -> bool:
        """What this member holds, by shard with its epoch. Whether there are new shards, so that their webhooks are to be found."""
        for shard, epoch in (self.shares | self.leaving).items():
            if shares.get(shard) != epoch:
                self.lose(shard, epoch)
        self.until = until
        self.leaving = {shard: shares[shard] for shard in surplus}
        staying = {shard: epoch for shard, epoch in shares.items() if shard not in self.leaving}
        new = staying.keys() - self.shares.keys()
        self.shares = staying
        for endpoint in self.endpoints.values():
            leaves = endpoint.shard in self.leaving
            if endpoint.leaving and not leaves:  # rows were passed over meanwhile
                endpoint.read_again()
                self.awake(endpoint)
            endpoint.leaving = leaves
        return bool(new)

    def free(self) -> list[int]:
        """Shards that are to go and for which nothing is under way any more."""
        busy = {endpoint.shard for endpoint in self.endpoints.values() if not endpoint.idle}
        return [shard for shard in self.leaving if shard not in busy]

    def lose(self, shard: int, epoch: int) -> None:
        """The shard is somebody else's: forget all that is known of it."""
        for endpoint in [one for one in self.endpoints.values() if (one.shard, one.epoch) == (shard, epoch)]:
            endpoint.lost = True
            self.remove(endpoint)
        for held in (self.shares, self.leaving):
            if held.get(shard) == epoch:
                del held[shard]
        for known in (self._unwritten, self._written):
            for key in [key for key, one in known.items() if (one.outcome.shard, one.outcome.epoch) == (shard, epoch)]:
                del known[key]

    def remove(self, endpoint: Endpoint) -> None:
        if self.endpoints.get(endpoint.webhook) is endpoint:
            del self.endpoints[endpoint.webhook]
        self.to_read.pop(endpoint, None)
        self.to_close.pop(endpoint, None)

    def tidy(self) -> None:
        """Let go of endpoints that are idle, where there are many, and share out the memory anew."""
        if len(self.endpoints) > _KEPT:
            for endpoint in [one for one in self.endpoints.values() if one.forgettable]:
                self.remove(endpoint)
        least, most = _WAITING_EACH
        self.waiting_each = max(least, min(most, _WAITING // max(len(self.endpoints), 1)))
        for endpoint in self.endpoints.values():
            endpoint.limit = self.waiting_each

    def settle(self, settled: Settled) -> None:
        """There is an outcome; the table does not know yet."""
        settled.endpoint.unwritten += 1
        if not settled.endpoint.lost:
            self._unwritten[settled.outcome.key] = settled

    def wrote(self, settled: Settled) -> None:
        endpoint = settled.endpoint
        endpoint.unwritten -= 1
        key = settled.outcome.key
        if self._unwritten.get(key) is settled:
            del self._unwritten[key]
            self._written[key] = settled
        if endpoint.closed is not None and endpoint.idle:
            self.awake(endpoint)

    def asking(self) -> None:
        """A question is about to be asked of the table: what is written by now will be in its answer."""
        self._written.clear()

    def known(self, row: PendingDelivery, now: float) -> PendingDelivery | None:
        """A row as it is, with what is known beyond the table; None: it is done."""
        if not self._unwritten and not self._written:
            return row
        settled = self._unwritten.get(row.key) or self._written.get(row.key)
        if settled is None:
            return row
        if settled.outcome.state != PENDING:
            return None
        return row._replace(attempts=settled.outcome.attempts, wait=max(settled.due - now, row.wait, 0.0))
