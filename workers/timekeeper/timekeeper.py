"""The timekeeper: starts and stops Events, has their infrastructure provisioned and terminated, and films of their playlists made,
when the schedule says so. ADR 0052.

It sleeps until the next Event is due, until the log announces one, or for a second at most. One member is active and the others
stand by: if two were active at once, both would find the same Events, and each would be started once all the same.

Infrastructure that cannot be provisioned at its time, for want of a profile say, is told in the log store, and tried again when the
Event changes, or after a rest.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from typing import ClassVar, Final

from domain.composition.events import Composed
from domain.composition.handlers import CompositionHandlers
from domain.kernel.clock import iso
from domain.kernel.errors import Conflict, NotFound, Refused, Unavailable
from domain.kernel.ports import Executor, Invocation, ServiceNotes
from domain.media_event import events
from domain.provision.handlers import ProvisionHandlers
from projections.consumers.leases import ShardLeases
from projections.media_event.due import AT_ONCE, COMPOSE, PROVISION, TERMINATE, DueEvent, DueEvents
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import POLL, Waker

CONSUMER: Final = "timekeeper"
CHANGES_TIMES: Final = frozenset(
    event.TOPIC
    for event in (
        events.Registered,
        events.Rescheduled,
        events.AutomationChanged,
        events.ProvisioningPlanChanged,
        events.ProvisionStateChanged,
        events.StateChanged,
        events.Restored,
        Composed,
    )
)
"""After these an Event may be due earlier than any before, or what was refused may be possible."""
_REST: Final = 0.02
_LONG_REST: Final = 0.2
"""Seconds until the log may wake it again. It announces changes all the time, and few of them are due at once."""

_log = logging.getLogger(__name__)


class Timekeeper(LeasedWorker):
    """One member: active, or standing by."""

    def __init__(
        self,
        due: DueEvents,
        executor: Executor,
        *,
        provisions: ProvisionHandlers,
        compositions: CompositionHandlers,
        notes: ServiceNotes,
        leases: ShardLeases,
        waker: Waker,
        metrics: WorkerMetrics,
    ) -> None:
        super().__init__(leases, waker)
        self._due = due
        self._executor = executor
        self._provisions = provisions
        self._compositions = compositions
        self._notes = notes
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
        """Do what is due; gives the seconds until the next round."""
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
            await self._order(one)
        except Unavailable:
            raise
        except (Refused, NotFound) as refusal:
            await self._rest(one, refusal)
        except Conflict as fault:
            if one.action == COMPOSE and type(fault) is Conflict:  # no lost race: another job makes files of the Event
                await self._rest(one, fault)
                return
            _log.info("the Event %s was not changed (%s): %s; it is tried again", one.key, one.action, fault)
        except Exception:
            seconds = self._rests.begin(one.attempt)
            _log.exception("the schedule could not %s the Event %s; it is tried again in %.0f s", one.action, one.key, seconds)
        else:
            self._metrics.reached_time(one.action, late=one.late + time.monotonic() - asked)

    async def _order(self, one: DueEvent) -> None:
        invocation = Invocation.by("system")
        if one.action == PROVISION:
            await self._provisions.provision_on_schedule(one.key, one.due, invocation=invocation)
        elif one.action == TERMINATE:
            await self._provisions.terminate_on_schedule(one.key, one.due, invocation=invocation)
        elif one.action == COMPOSE:
            await self._compositions.generate_on_schedule(one.key, one.due, invocation=invocation)
        else:
            await self._executor.execute(one.command, invocation=invocation)

    async def _rest(self, one: DueEvent, refusal: Refused | NotFound | Conflict) -> None:
        """Told once, as long as the Event stays as it is."""
        if self._rests.begin(one.attempt) > Rests.FIRST:
            return
        what = f"the schedule could not {one.action} what was due at {iso(one.due)}: {refusal}"
        message = f"{what}; it is tried again when the Event changes, and every few minutes"
        await self._notes.warn(message, subject=str(one.key))


class Rests:
    """Attempts that were in vain, until they are made again: each later than the last time."""

    FIRST: ClassVar[float] = 1.0
    LONGEST: ClassVar[float] = 300.0

    def __init__(self) -> None:
        self._rests: dict[str, tuple[float, float]] = {}
        """Until when, and for how long."""

    def begin(self, attempt: str) -> float:
        """Gives the seconds."""
        _, before = self._rests.get(attempt, (0.0, 0.0))
        seconds = min(max(before * 2, self.FIRST), self.LONGEST)
        self._rests[attempt] = (time.monotonic() + seconds, seconds)
        return seconds

    def present(self) -> Collection[str]:
        """Those that rest now. One that was not in vain again for long after its rest is forgotten."""
        now = time.monotonic()
        self._rests = {attempt: rest for attempt, rest in self._rests.items() if now < rest[0] + self.LONGEST}
        return [attempt for attempt, (until, _) in self._rests.items() if now < until]
