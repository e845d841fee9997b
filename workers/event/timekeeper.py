"""The timekeeper: starts and stops Events, makes them public and private, shows and hides their recorded streams, gives them
channels that are free again, has their infrastructure provisioned and terminated, and has films of their playlists made, when the
schedule says so. See ADR 0052.

It sleeps until the next Event is due, until the log announces a change, or for a second at most. One member is active and the
others stand by: if two were active at once, both would find the same Events, and each would still be started once only. If
infrastructure cannot be provisioned at its time, for example because a profile is missing, this is written to the log store; it is
retried when the Event changes, or after a rest.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import ClassVar, Final

from domain.composition.events import Composed
from domain.composition.handlers import CompositionHandlers
from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.on_air_handlers import OnAirHandlers
from domain.kernel.clock import iso
from domain.kernel.command import Command
from domain.kernel.errors import Conflict, NotFound, Refused, Unavailable
from domain.kernel.ports import Executor, Invocation, ServiceNotes
from domain.provision.handlers import ProvisionHandlers
from projections.consumers.leases import ShardLeases
from projections.event.due_events import (
    AT_ONCE,
    COMPOSE,
    HIDE_RECORDING,
    PROVISION,
    PUBLISH,
    SHOW_RECORDING,
    START,
    STOP,
    TAKE,
    TERMINATE,
    WITHDRAW,
    DueEvent,
    DueEvents,
)
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import POLL, Waker

CONSUMER: Final = "timekeeper"
CHANGES_TIMES: Final = frozenset(
    event.TOPIC
    for event in (
        events.EventRegistered,
        events.Rescheduled,
        events.AutomationChanged,
        events.PublicationWindowChanged,
        events.InstantVodWindowChanged,
        events.ForceStopped,
        events.QualityMeasured,
        events.ProvisioningPlanChanged,
        events.ProvisionStateChanged,
        events.StateChanged,
        events.ChannelRefused,
        events.ChannelReleased,
        events.EventRestored,
        Composed,
    )
)
"""The topics after which an Event may be due earlier than any before, or an action that was refused may be possible."""
_REST: Final = 0.02
_LONG_REST: Final = 0.2
"""Seconds until the log may wake it again. The log announces changes continuously, and few of them are due at once."""

_DECISIONS: Final[Mapping[str, Callable[[DueEvent], Command[MediaEvent]]]] = {
    STOP: lambda event: MediaEvent.end_on_schedule.on(event.key, event.due),
    PUBLISH: lambda event: MediaEvent.publish_on_schedule.on(event.key, event.due, available_until=event.end),
    WITHDRAW: lambda event: MediaEvent.withdraw_on_schedule.on(event.key, event.due),
    SHOW_RECORDING: lambda event: MediaEvent.show_recording_on_schedule.on(event.key, event.due, instant_vod_end=event.end),
    HIDE_RECORDING: lambda event: MediaEvent.hide_recording_on_schedule.on(event.key, event.due),
    TAKE: lambda event: MediaEvent.take_channel.on(event.key),
}
"""The commands of the actions that are a single decision of the Event."""

_log = logging.getLogger(__name__)


class Timekeeper(LeasedWorker):
    """A member of the timekeeper: active, or standing by."""

    def __init__(
        self,
        due: DueEvents,
        executor: Executor,
        *,
        on_air: OnAirHandlers,
        provisions: ProvisionHandlers,
        compositions: CompositionHandlers,
        notes: ServiceNotes,
        leases: ShardLeases,
        waker: Waker,
        metrics: WorkerMetrics,
        poll: float = POLL,
    ) -> None:
        """`poll` is the number of seconds between two rounds if nothing is refused or under way."""
        super().__init__(leases, waker)
        self._poll = poll
        self._due = due
        self._executor = executor
        self._on_air = on_air
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
        """Do one round. Changes that the log announces wait for the end of a rest; Events that become due do not."""
        seconds = await self._round()
        rest = min(max(seconds, _REST), _LONG_REST)
        await asyncio.sleep(rest)
        await self._waker.sleep(max(seconds - rest, 0.0))

    async def _round(self) -> float:
        """Do what is due, and return the seconds until the next round."""
        await self._renew()
        if not self._is_ours():
            return self._leases.lease / 5
        resting = self._rests.present()
        due_events = await self._due.due(resting=resting)
        if due_events:
            await self._act(due_events)
        if len(due_events) >= AT_ONCE:
            return 0.0
        next_in = await self._due.next_in()
        poll = POLL if resting or due_events else self._poll
        return poll if next_in is None else min(max(next_in, 0.0), poll)

    def _is_ours(self) -> bool:
        return bool(self._assignment.leases) and time.monotonic() < self._assignment.until

    async def _act(self, due_events: Collection[DueEvent]) -> None:
        """Act on all Events at once, so that one append takes them together. If the database is unavailable, no Event is to
        blame."""
        asked, self._under_way = time.monotonic(), len(due_events)
        try:
            ends = await asyncio.gather(*(self._act_on(due_event, asked=asked) for due_event in due_events), return_exceptions=True)
        finally:
            self._under_way = 0
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _act_on(self, due_event: DueEvent, *, asked: float) -> None:
        try:
            await self._order(due_event)
        except Unavailable:
            raise
        except (Refused, NotFound) as refusal:
            await self._rest(due_event, refusal)
        except Conflict as fault:
            if (
                due_event.action == COMPOSE and type(fault) is Conflict
            ):  # not a lost race: another job is producing files for the Event
                await self._rest(due_event, fault)
                return
            _log.info("the Event %s was not changed (%s): %s; trying again", due_event.key, due_event.action, fault)
        except Exception:
            seconds = self._rests.begin(due_event.attempt)
            _log.exception(
                "the schedule could not %s the Event %s; trying again in %.0f s", due_event.action, due_event.key, seconds
            )
        else:
            if due_event.action != TAKE:  # no time has come
                self._metrics.reached_time(due_event.action, late=due_event.late + time.monotonic() - asked)

    async def _order(self, due_event: DueEvent) -> None:
        invocation, key, due = Invocation.by("system"), due_event.key, due_event.due
        if (decide := _DECISIONS.get(due_event.action)) is not None:
            await self._executor.execute(decide(due_event), invocation=invocation)
        elif due_event.action == START:
            await self._on_air.start_on_schedule(key, due, scheduled_end=due_event.end, invocation=invocation)
        elif due_event.action == PROVISION:
            await self._provisions.provision_on_schedule(key, due, invocation=invocation)
        elif due_event.action == TERMINATE:
            await self._provisions.terminate_on_schedule(key, due, invocation=invocation)
        else:
            await self._compositions.generate_on_schedule(key, due, invocation=invocation)

    async def _rest(self, due_event: DueEvent, refusal: Refused | NotFound | Conflict) -> None:
        """Postpone the attempt, and write a note once, as long as the Event stays as it is."""
        if self._rests.begin(due_event.attempt) > Rests.FIRST:
            return
        what = f"the schedule could not {due_event.action} what was due at {iso(due_event.due)}: {refusal}"
        message = f"{what}; it is tried again when the Event changes, and every few minutes"
        await self._notes.warn(message, subject=str(due_event.key))


class Rests:
    """The attempts that failed and rest until they are made again, each later than the last time."""

    FIRST: ClassVar[float] = 1.0
    LONGEST: ClassVar[float] = 300.0

    def __init__(self) -> None:
        self._rests: dict[str, tuple[float, float]] = {}
        """The end and the duration of the rests."""

    def begin(self, attempt: str) -> float:
        """Begin a rest, and return its seconds."""
        _, before = self._rests.get(attempt, (0.0, 0.0))
        seconds = min(max(before * 2, self.FIRST), self.LONGEST)
        self._rests[attempt] = (time.monotonic() + seconds, seconds)
        return seconds

    def present(self) -> Collection[str]:
        """Return the attempts that rest now. An attempt that has not failed again for long after its rest is forgotten."""
        now = time.monotonic()
        self._rests = {attempt: rest for attempt, rest in self._rests.items() if now < rest[0] + self.LONGEST}
        return [attempt for attempt, (until, _) in self._rests.items() if now < until]
