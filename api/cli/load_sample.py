"""`medialedger load-sample`: a schedule of ten thousand Events, written through the same commands that the API sends."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli import sample
from api.cli.opened import opened
from api.cli.sample import SampleEvent
from api.core import Core
from api.media.event.changes import EventChanges
from api.media.event.wire import EventParticulars, TagModel
from api.settings import Settings
from domain.catalogue import RECORDS
from domain.kernel.cause import Cause
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import AddOrUpdateEvent, ChangeEventState
from domain.media_event.values import EventState
from domain.records.kinds.room import Room
from domain.records.record import RegisterRecord
from projections.log.ledger import Plan
from projections.records.queries import RecordQueries

_AT_ONCE = 64


async def run(args: Namespace, settings: Settings) -> int:
    async with opened(settings) as wired:
        started = time.perf_counter()
        rooms, events = sample.rooms(), list(sample.events(args.events))
        with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as progress:
            task = progress.add_task("loading", total=len(rooms) + len(events))
            loading = _Loading(wired, lambda: progress.advance(task))
            await loading.all(loading.room(room.id, room.values) for room in rooms)
            await loading.all(loading.event(event) for event in events)
        seconds = time.perf_counter() - started
    print(f"{len(rooms)} rooms and {len(events)} Events in {seconds:.1f} s; look at /api/event/?pageSize=5&search=final")
    return 0


class _Loading:
    """Sends the commands, so many at a time: the log writes those that wait together in one commit."""

    def __init__(self, wired: Core, done: Callable[[], None]) -> None:
        self._wired = wired
        self._done = done
        self._changes = EventChanges(RecordQueries(wired.database, RECORDS))

    async def all(self, loads: Iterable[Awaitable[None]]) -> None:
        places = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for load in loads:
                await places.acquire()
                group.create_task(self._one(load, places))

    async def _one(self, load: Awaitable[None], places: asyncio.Semaphore) -> None:
        try:
            await load
            self._done()
        finally:
            places.release()

    async def room(self, key: UUID, values: dict[str, object]) -> None:
        await self._wired.ledger.execute(RegisterRecord(str(key), Room, values), cause=_cause())

    async def event(self, event: SampleEvent) -> None:
        async def plan() -> Plan[MediaEvent]:
            tags, new = await self._changes.of(EventParticulars(tags=[TagModel(name=name) for name in event.tags]))
            return Plan(AddOrUpdateEvent(event.id, {**event.values, **tags}), new)

        loaded = await self._wired.ledger.execute(plan, cause=_cause())
        if event.played and loaded.details.actual_live_start is None:
            for state in (EventState.LIVE_PUBLISHED, EventState.STOPPED):
                await self._wired.ledger.execute(ChangeEventState(event.id, state), cause=_cause())


def _cause() -> Cause:
    return Cause.by("system", correlation_id="load-sample")
