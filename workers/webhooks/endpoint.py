"""One endpoint: how much may be under way for it, and when it is left alone. Pure. Issue 5, "Delivery".

First tries are never starved by later ones, nor later ones by first tries: up to a quarter of the places is for later tries, and
they get it before others.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from projections.deliveries.ledger import PendingDelivery
from workers.webhooks.breaker import Breaker
from workers.webhooks.lanes import Agenda, Lanes
from workers.webhooks.targets import Target

CONCURRENCY: Final = 16
LATE: Final = CONCURRENCY // 4
MOST_LANES: Final = 50_000
"""So many Events may wait for another try at one endpoint before it takes nothing new."""
PROBING: Final = 50
"""So many rows are read to find one with which to probe."""
LONG: Final = 5.0
"""Seconds: an endpoint that is left alone for longer keeps nothing in memory meanwhile."""


class Endpoint:
    """What is held of a webhook while something is to be sent to it. `awake` is called when it may have something to do again."""

    def __init__(
        self, webhook: UUID, *, shard: int, epoch: int, agenda: Agenda, awake: Callable[[Endpoint], None], limit: int
    ) -> None:
        self.webhook = webhook
        self.shard = shard
        self.epoch = epoch
        self.target: Target | None = None
        self.checked = float("-inf")
        self.failing_since: datetime | None = None
        self.closed: str | None = None
        """Why nothing is sent to it any more. What is pending fails with this sentence."""
        self.to_disable: str | None = None
        self.leaving = False
        """Its shard is to go to another member."""
        self.lost = False
        """Its shard belongs to another member."""
        self.limit = limit
        """How many rows it may keep in memory."""
        self.behind = True
        """There are rows beyond the frontier that were not offered; they are read for this endpoint alone."""
        self.generation = 0
        self.flying = 0
        self.flying_late = 0
        self.unwritten = 0
        self.queued = False
        self._awake = partial(awake, self)
        self._agenda = agenda
        self._breaker = Breaker()
        self._paused_until = float("-inf")
        self.lanes = Lanes(agenda, self._awake)

    @property
    def suspect(self) -> bool:
        """What is sent to it may hang: it counts as a later try among all that the process sends."""
        return self._breaker.failures > 0

    @property
    def idle(self) -> bool:
        """Nothing is under way, and of nothing the outcome has yet to be written."""
        return self.flying == 0 and self.unwritten == 0

    @property
    def forgettable(self) -> bool:
        """It stands as one of which nothing is known."""
        return self.idle and not self.behind and not len(self.lanes) and not self.suspect and self.closed is None

    @property
    def probing(self) -> bool:
        return self._breaker.open_until is not None

    @property
    def starved(self) -> bool:
        """Pages are read when half of what was in memory is gone: a few large ones."""
        return self.behind and 2 * self.lanes.waiting <= (PROBING if self.probing else self.limit)

    def room(self, now: float) -> int:
        """How many rows it takes."""
        if self.closed is not None or self.leaving or not self._may_send(now) or len(self.lanes) >= MOST_LANES:
            return 0
        return (PROBING if self.probing else self.limit) - self.lanes.waiting

    def read_again(self) -> None:
        """Something that lies before the frontier may be pending, and the webhook may have changed."""
        self.checked = float("-inf")
        self.lanes.forget()
        self.generation += 1
        self.behind = True

    def close(self, reason: str, *, disable: str | None = None) -> None:
        self.closed = reason
        self.to_disable = disable
        self.read_again()

    def next(self, now: float, *, late_too: bool) -> PendingDelivery | None:
        """What to send now. `late_too`: the process has a place for a later try."""
        if self.closed is not None or self.leaving or self.lost or self.flying >= CONCURRENCY or not self._may_send(now):
            return None
        if self.suspect and not late_too:
            return None
        if late_too and self.lanes.late and self.flying_late < LATE:
            self.flying_late += 1
            row = self.lanes.take(late=True)
        elif self.lanes.first:
            row = self.lanes.take(late=False)
        else:
            return None
        self.flying += 1
        return row

    def succeeded(self, row: PendingDelivery) -> None:
        self._landed(row)
        self._breaker.succeeded()
        self.lanes.done(row)

    def failed(self, row: PendingDelivery, now: float, *, wait: float | None) -> None:
        """`wait`: seconds until it is tried again; None: it is not."""
        self._landed(row)
        if wait is None:
            self.lanes.done(row)
        else:
            self.lanes.again(row, now + wait)
        if self._breaker.failed(now):
            assert self._breaker.open_until is not None
            self._leave_alone(self._breaker.open_until, now)

    def pause(self, now: float, *, seconds: float) -> None:
        """The receiver asked for it."""
        if now + seconds > self._paused_until:
            self._paused_until = now + seconds
            self._leave_alone(self._paused_until, now)

    def _may_send(self, now: float) -> bool:
        return now >= self._paused_until and self._breaker.allows(now, flying=self.flying)

    def _landed(self, row: PendingDelivery) -> None:
        self.flying -= 1
        if row.attempts:
            self.flying_late -= 1

    def _leave_alone(self, until: float, now: float) -> None:
        if until - now > LONG:
            self.read_again()
        self._agenda.at(until, self._awake)
