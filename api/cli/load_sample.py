"""`medialedger load-sample`: writes a sample schedule with the handlers of the API."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable
from socket import gethostname
from uuid import UUID

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn, track

from api.cli import sample, shell
from api.cli.remote.contexts import local_api
from api.cli.remote.rest_api import ApiError
from api.cli.run.core import open_core
from api.cli.sample import SampleEvent
from api.cli.shell import confirm
from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from api.wiring.settings import Settings
from domain.event.changes import EventChanges, TagName
from domain.event.handlers import EventHandlers
from domain.kernel.ports import Invocation
from domain.record.handlers import RecordHandlers
from domain.record.kinds.room import Room
from domain.webhook.aggregate import Webhook
from projections.custom_property.queries import PropertyQueries
from projections.event.queries import EventQueries
from projections.log_store.log_store import Logbook
from projections.record.history import RecordHistory
from projections.record.queries import RecordQueries

_CONCURRENT = 64


async def run(args: Namespace, settings: Settings) -> int:
    if args.remove:
        confirm(args, f"delete {args.events} Events and the rooms of the sample, including later changes to them")
        return await asyncio.to_thread(_remove, args.events)
    async with open_core(settings) as wired:
        webhooks = await RecordQueries(wired.database, RECORDS).all(Webhook, without_parent=True)
        if active := sum(row.details.disabled_at is None for row in webhooks):
            confirm(args, f"send notifications of {args.events} Events to {active} webhooks")
        started = time.perf_counter()
        rooms, events = sample.rooms(), list(sample.events(args.events, first_day=sample.first_day(args.around)))
        with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as progress:
            task = progress.add_task("loading", total=len(rooms) + len(events))
            loader = _Loader(wired, lambda: progress.advance(task))
            await loader.all(loader.room(room.id, room.values) for room in rooms)
            await loader.all(loader.event(event) for event in events)
        seconds = time.perf_counter() - started
    print(
        f"{len(rooms)} rooms and {len(events)} Events in {seconds:.1f} s; list some with: medialedger events list --search final "
        "--items 5"
    )
    return 0


def _remove(events: int) -> int:
    """Delete the sample through the API, because a person may have added more to an Event of the sample. A record that is already
    gone is no error."""
    api, failures = local_api(), 0
    paths = [f"/api/event/{event.id}" for event in sample.events(events)] + [f"/api/room/{room.id}" for room in sample.rooms()]
    try:
        for path in track(paths, description="removing"):
            try:
                api.call("DELETE", path)
            except ApiError as error:
                if error.status not in (400, 404):
                    print(f"{path} stays: {error}")
                    failures += 1
    finally:
        api.close()
    return 1 if failures else 0


class _Loader:
    """Calls the handlers, up to 64 at a time: appends that wait together share one commit."""

    def __init__(self, wired: Core, done: Callable[[], None]) -> None:
        self._wired = wired
        self._done = done
        records, logbook = RecordQueries(wired.database, RECORDS), Logbook(wired.database, wired.clock, machine=gethostname())
        history = RecordHistory(wired.streams, records, properties=PropertyQueries(wired.database))
        self._rooms = RecordHandlers(wired.executor, history.at(None))
        self._present = EventQueries(wired.database)
        self._events = EventHandlers(wired.executor, records, events=self._present, notes=logbook)

    async def all(self, loads: Iterable[Awaitable[None]]) -> None:
        limit = asyncio.Semaphore(_CONCURRENT)
        async with asyncio.TaskGroup() as group:
            for load in loads:
                await limit.acquire()
                group.create_task(self._run(load, limit))

    async def _run(self, load: Awaitable[None], limit: asyncio.Semaphore) -> None:
        try:
            await load
            self._done()
        finally:
            limit.release()

    async def room(self, key: UUID, values: dict[str, object]) -> None:
        await self._rooms.register(Room, values, key=str(key), invocation=_invocation())

    async def event(self, event: SampleEvent) -> None:
        """Add an Event. An existing one stays as it is, even if it was moved."""
        if await self._present.by_id(event.id) is None:
            changes = EventChanges(event.values, [TagName(name) for name in event.tags])
            await self._events.add_or_update_event(event.id, changes, invocation=_invocation())


def _invocation() -> Invocation:
    return shell.invocation(correlation_id="load-sample")
