"""The worker of sessions: keeps the wanted sessions running, and no others, on the shards that it holds. See ADR 0053.

The wanted sessions are read again whenever the log may have changed them, and every second while there are sessions or other
workers. Each session is started, watched and stopped in a separate task, so that none waits for another, and none for the database
while it runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from projections.consumers.leases import Assignment, ShardLeases, shard_of
from projections.kernel.background_task import start_forever
from projections.session.store import Hold, SessionRow, SessionState, SessionStore, Wanted
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.metrics import SessionMetrics
from workers.kernel.wakeups import POLL, Waker
from workers.session.kinds import SessionKind
from workers.session.reports import Reports
from workers.session.session import RETRIES, Session, SessionRetries, Stop

# The permission to send, which a session checks before every write to another system. A worker may send as long as no other
# worker can have begun a session of the same key, whatever happens to its clock, its process or its database: see ADR 0053.

MARGIN: Final = 1 / 6
"""The part of a lease before its end in which a session is already silent: a write that was permitted takes a moment."""
LONGEST_GAP: Final = 1 / 3
"""The part of a lease between two ticks after which the process counts as having been frozen."""
TICKS: Final = 24
"""The number of ticks in a lease."""


def _awake_or_asleep() -> float:
    """Return the seconds of a clock that cannot be set, and that continues while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SendPermit:
    """The permission of one worker for all its sessions. `tick` is called continuously by a separate task."""

    def __init__(self, lease: float, *, clock: Callable[[], float] = _awake_or_asleep) -> None:
        self._margin = lease * MARGIN
        self._longest_gap = lease * LONGEST_GAP
        self._clock = clock
        self._until = float("-inf")
        self._alone = False
        self._ticked = float("-inf")
        self._frozen = True

    def renew(self, seconds: float, *, alone: bool) -> None:
        """Extend the permission: the database has answered that for so many seconds no other worker can take a shard. `alone` is
        True if there was no other worker then."""
        self._ticked = self._clock()
        self._until, self._alone, self._frozen = self._ticked + seconds, alone, False

    def tick(self) -> None:
        now = self._clock()
        self._frozen = self._frozen or now - self._ticked > self._longest_gap
        self._ticked = now

    @property
    def valid(self) -> bool:
        """True within the lease. After its end it is True only while the database does not answer, if there was no other worker,
        and if the process was not frozen since: a worker that began meanwhile may have taken over its sessions."""
        now = self._clock()
        if now < self._until - self._margin:
            return True
        return self._alone and not self._frozen and now - self._ticked <= self._longest_gap


CONSUMER: Final = "sessions"
PUSHES: Final = "pushes"
"""The consumer of the leases of pushes; `CONSUMER` is that of encoders."""
SHARDS: Final = 64
LEASE: Final = 6.0
"""Seconds after which the sessions of a dead or frozen worker are taken over by another one, which checks three times as often."""
_MIN_INTERVAL: Final = 0.05
_STATISTICS: Final = 2.0

_log = logging.getLogger(__name__)


class SessionWorker(LeasedWorker):
    """The sessions of one kind in one process. A role may have a worker for each kind, each with its own leases."""

    def __init__(
        self,
        kind: SessionKind,
        store: SessionStore,
        *,
        leases: ShardLeases,
        waker: Waker,
        host: str,
        poll: float = POLL,
        metrics: SessionMetrics | None = None,
        retries: SessionRetries = RETRIES,
    ) -> None:
        """`poll` is the number of seconds between two rounds of a worker that is alone and has no sessions."""
        super().__init__(leases, waker)
        self._poll = poll
        self._retries = retries
        self._metrics = metrics or SessionMetrics()
        self._metrics.declare(store.kind)
        self._kind = kind
        self._store = store
        self._host = host
        self._sessions: dict[str, Session] = {}
        self._given_up: dict[str, tuple[int, int]] = {}
        """The order and the number of sessions given up here, by key: their rows may not record it yet."""
        self._permit = SendPermit(leases.lease)
        self._reports = Reports()
        self._reported = float("-inf")
        self._ticking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._ticking = start_forever(self._tick, what=f"permission of {self.name}")
        await self._reports.start()
        await super().start()

    async def stop(self) -> None:
        """Hand over: stop the sessions, then release the leases, then report to the log."""
        await super().stop()
        self._reports.resume()
        await self._reports.stop()
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.wait({self._ticking})

    @property
    def sessions(self) -> Mapping[str, Session]:
        """The sessions that run here, by key."""
        return self._sessions

    @property
    def _busy(self) -> int:
        return len(self._sessions)

    async def _tick(self) -> None:
        self._permit.tick()
        await asyncio.sleep(self._leases.lease / TICKS)

    async def _turn(self) -> None:
        await self._round()
        is_idle = self._assignment.alive == 1 and not (self._sessions or self._reports.pending)
        await self._waker.sleep(self._poll if is_idle else POLL)
        await asyncio.sleep(_MIN_INTERVAL)

    async def _finish(self) -> None:
        self._reports.pause()
        self._stop_all(self._sessions.values(), Stop.HANDED_OVER)
        await asyncio.gather(*(session.finish() for session in list(self._sessions.values())))

    async def _round(self) -> None:
        """Read what is wanted first: a stop waits for nothing else. A session that is no longer wanted does not start, since it
        would not get a number."""
        everywhere = await self._store.wanted()
        wishes = {order.key: order for order in everywhere}
        self._stop_unwanted(wishes)
        self._given_up = {key: given for key, given in self._given_up.items() if key in wishes and wishes[key].wish == given[0]}
        if await self._store.handed_over(self._assignment.leases):
            self._leases.keeper.hurry()
        await self._renew()
        leases = self._assignment.leases
        if not leases or time.monotonic() >= self._assignment.until:
            return
        wanted = {order.key: order for order in everywhere if self._shard(order.key) in leases}
        rows = {row.key: row for row in await self._store.unfinished(leases)}
        for key, order in wanted.items():
            self._start_if_due(order, rows.get(key))
        self._end_left_over([row for key, row in rows.items() if key not in wanted])
        await self._report_statistics()

    def _shard(self, key: str) -> int:
        return shard_of(key, self._leases.shards)

    def _stop_unwanted(self, wanted: Mapping[str, Wanted]) -> None:
        for key, session in self._sessions.items():
            order = wanted.get(key)
            if order is None:
                session.stop(Stop.ORDERED)
            elif order != session.wanted:
                session.stop(Stop.REPLACED)

    def _start_if_due(self, wanted: Wanted, row: SessionRow | None) -> None:
        """Start a session. If it was given up under this order, the failure is reported again instead, since its owner may not have
        been notified."""
        if wanted.key in self._sessions:
            return
        if row is not None and row.state is SessionState.FAILED and row.wish == wanted.wish:
            if not self._reports.pending:
                self._reports.add(partial(self._kind.report_failure, wanted, row.number, reason=row.reason))
            return
        wish, number = self._given_up.get(wanted.key, (None, 0))
        if wish == wanted.wish and not (row is not None and row.wish == wish and row.number > number):
            return
        shard = self._shard(wanted.key)
        hold = Hold(self.name, self._leases.member, shard, self._assignment.leases[shard].epoch)
        session = Session(
            wanted,
            self._kind,
            store=self._store,
            hold=hold,
            host=self._host,
            reports=self._reports,
            may_send=lambda: self._permit.valid,
            metrics=self._metrics,
            retries=self._retries,
            ended=partial(self._on_session_end, wanted.key),
        )
        self._sessions[wanted.key] = session
        session.start()

    def _on_session_end(self, key: str) -> None:
        session = self._sessions.pop(key)
        if session.given_up:
            self._given_up[key] = session.wanted.wish, session.number
        self._waker.wake()

    def _end_left_over(self, rows: Sequence[SessionRow]) -> None:
        """End sessions of dead workers that could not report the end and that are no longer wanted. The next round handles those
        that are not reported now."""
        if self._reports.pending:
            return
        for row in rows:
            if row.key not in self._sessions and row.state is not SessionState.FAILED:
                self._reports.add(partial(self._store.settle, row.key, row.number, state=SessionState.STOPPED))
                self._reports.add(partial(self._kind.report_stop, row.owner, row.number, reason=""))

    async def _report_statistics(self) -> None:
        now = time.monotonic()
        if now - self._reported < _STATISTICS:
            return
        self._reported = now
        statistics = {
            (key, session.number): session.statistics() for key, session in self._sessions.items() if not session.stopping
        }
        documents = {key: document for key, document in statistics.items() if document is not None}
        lost = await self._store.report(documents) if documents else set()
        self._stop_all([self._sessions[key] for key, number in documents if key in lost and self._is(key, number)], Stop.LOST)

    def _is(self, key: str, number: int) -> bool:
        return key in self._sessions and self._sessions[key].number == number

    # --- leases

    async def _renew(self) -> bool:
        renewed = await super()._renew()
        if renewed:
            self._permit_again()
        return renewed

    def renewed(self, assignment: Assignment) -> None:
        before = self._assignment.until
        super().renewed(assignment)
        if self._assignment.until > before:
            self._permit_again()

    def _permit_again(self) -> None:
        seconds = self._assignment.until - time.monotonic()
        if seconds > 0:  # otherwise the process was frozen after it had asked
            self._permit.renew(seconds, alone=self._assignment.alive == 1)

    async def _begin_on_new_primary(self) -> None:
        """Keep the shards: the epochs of the new primary count, and a session of a shard with another epoch is lost."""
        self._timeline = self._leases.timeline

    def _releasable(self, assignment: Assignment) -> Collection[int]:
        """Return the shards without sessions: a running session stays where it is."""
        return assignment.excess - {self._shard(key) for key in self._sessions}

    async def _apply_assignment(self, assignment: Assignment) -> None:
        leases = assignment.leases
        lost = [
            session
            for session in self._sessions.values()
            if session.hold.shard not in leases or leases[session.hold.shard].epoch != session.hold.epoch
        ]
        if lost:
            _log.warning("%s: %d sessions went to another worker; stopping them here", self.name, len(lost))
        self._stop_all(lost, Stop.LOST)

    def _stop_all(self, sessions: Collection[Session], why: Stop) -> None:
        for session in list(sessions):
            session.stop(why)
