"""The timekeeper: starts and stops Events when the schedule says so. ADR 0052.

It sleeps until the next Event is due, until the log announces one, or for a second at most. One member is active and the others
stand by: if two were active at once, both would find the same Events, and each would be started once all the same.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from typing import ClassVar, Final
from uuid import UUID

from domain.kernel.errors import Conflict, Unavailable
from domain.kernel.ports import Executor, Invocation
from domain.media_event import events
from projections.consumers.leases import ShardLeases
from projections.media_event.due import AT_ONCE, DueEvent, DueEvents
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import POLL, Waker

CONSUMER: Final = "timekeeper"
CHANGES_TIMES: Final = frozenset(
    event.TOPIC for event in (events.Registered, events.Rescheduled, events.AutomationChanged, events.StateChanged, events.Restored)
)
"""After these an Event may be due earlier than any before."""
_REST: Final = 0.02
_LONG_REST: Final = 0.2
"""Seconds until the log may wake it again. It announces changes all the time, and few of them are due at once."""

_log = logging.getLogger(__name__)


class Timekeeper(LeasedWorker):
    """One member: active, or standing by."""

    def __init__(self, due: DueEvents, executor: Executor, *, leases: ShardLeases, waker: Waker, metrics: WorkerMetrics) -> None:
        super().__init__(leases, waker)
        self._due = due
        self._executor = executor
        self._metrics = metrics
        self._rests = Rests()
        self._under_way = 0

    @property
    def _busy(self) -> int:
        return self._under_way

    async def _turn(self) -> None:
        """What the log announces waits for the end of a rest. What becomes due does not."""
        seconds = await self._round()
        rest = min(max(seconds, _REST), _LONG_REST)
        await asyncio.sleep(rest)
        await self._waker.sleep(max(seconds - rest, 0.0))

    async def _round(self) -> float:
        """Start and stop what is due; gives the seconds until the next round."""
        await self._renew()
        if not self._is_ours():
            return self._leases.lease / 5
        found = await self._due.due(resting=self._rests.present())
        if found:
            await self._act(found)
        if len(found) >= AT_ONCE:
            return 0.0
        next_in = await self._due.next_in()
        return POLL if next_in is None else min(max(next_in, 0.0), POLL)

    def _is_ours(self) -> bool:
        return bool(self._assignment.leases) and time.monotonic() < self._assignment.until

    async def _act(self, found: Collection[DueEvent]) -> None:
        """All at once, so that one append takes them together. Where the database is away, none of them is to blame."""
        asked, self._under_way = time.monotonic(), len(found)
        try:
            ends = await asyncio.gather(*(self._act_on(one, asked=asked) for one in found), return_exceptions=True)
        finally:
            self._under_way = 0
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _act_on(self, one: DueEvent, *, asked: float) -> None:
        try:
            await self._executor.execute(one.command, invocation=Invocation.by("system"))
        except Unavailable:
            raise
        except Conflict as fault:
            _log.info("the Event %s was not changed (%s): %s; it is tried again", one.key, one.action, fault)
        except Exception:
            seconds = self._rests.begin(one.key)
            _log.exception("the schedule could not %s the Event %s; it is tried again in %.0f s", one.action, one.key, seconds)
        else:
            self._metrics.kept_time(one.action, late=one.late + time.monotonic() - asked)


class Rests:
    """Events that could not be changed, until they are tried again: each later than the last time."""

    FIRST: ClassVar[float] = 1.0
    LONGEST: ClassVar[float] = 300.0

    def __init__(self) -> None:
        self._rests: dict[UUID, tuple[float, float]] = {}
        """Until when, and for how long."""

    def begin(self, key: UUID) -> float:
        """Gives the seconds."""
        _, before = self._rests.get(key, (0.0, 0.0))
        seconds = min(max(before * 2, self.FIRST), self.LONGEST)
        self._rests[key] = (time.monotonic() + seconds, seconds)
        return seconds

    def present(self) -> Collection[UUID]:
        """Those that rest now. One that has not failed again for as long as it last rested is forgotten."""
        now = time.monotonic()
        self._rests = {key: (until, seconds) for key, (until, seconds) in self._rests.items() if now < until + seconds}
        return [key for key, (until, _) in self._rests.items() if now < until]
