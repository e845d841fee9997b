"""`medialedger load-sample`: writes a sample schedule with the handlers of the API."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn, track

from api.cli import shell
from api.cli.remote.contexts import local_api
from api.cli.remote.rest_api import ApiError
from api.cli.run.core import open_core
from api.cli.shell import confirm
from api.wiring.assembly import services_of
from api.wiring.core import Core
from api.wiring.settings import Settings
from domain.event.changes import EventChanges, TagName
from domain.event.handlers import EventHandlers
from domain.kernel.ports import Invocation
from domain.record.handlers import RecordHandlers
from domain.record.kinds.room import Room
from domain.webhook.aggregate import Webhook
from projections.event.queries import EventQueries
from projections.record.queries import RecordQueries

_CONCURRENT = 64


async def load_sample(settings: Settings, count: int, *, around: datetime | None, yes: bool) -> None:
    async with open_core(settings) as wired:
        webhooks = await services_of(wired).get(RecordQueries).all(Webhook, without_parent=True)
        if active := sum(row.details.disabled_at is None for row in webhooks):
            confirm(yes, f"send notifications of {count} Events to {active} webhooks")
        started = time.perf_counter()
        rooms, events = sample_rooms(), list(sample_events(count, first_day=first_day(around)))
        with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as progress:
            task = progress.add_task("loading", total=len(rooms) + len(events))
            loader = _Loader(wired, settings, done=lambda: progress.advance(task))
            await loader.all(loader.room(room.id, room.values) for room in rooms)
            await loader.all(loader.event(event) for event in events)
        seconds = time.perf_counter() - started
    print(
        f"{len(rooms)} rooms and {len(events)} Events in {seconds:.1f} s; list some with: medialedger events list --search final "
        "--items 5"
    )


def remove_sample(count: int) -> int:
    """Delete the sample through the API, because a person may have added more to an Event of the sample. A record that is already
    gone is no error."""
    api, failures = local_api(), 0
    paths = [f"/api/event/{event.id}" for event in sample_events(count)] + [f"/api/room/{room.id}" for room in sample_rooms()]
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

    def __init__(self, wired: Core, settings: Settings, *, done: Callable[[], None]) -> None:
        self._done = done
        services = services_of(wired, settings)
        self._rooms = services.get(RecordHandlers)
        self._present = services.get(EventQueries)
        self._events = services.get(EventHandlers)

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


SEED = 20310101
FIRST_DAY = datetime(2031, 1, 1, 6, 0, tzinfo=UTC)
EVENTS_A_DAY = 100

_NAMESPACE = UUID("6d656469-616c-4564-8765-722073616d70")
_PLACES = ("Plenary", "Studio", "Arena", "Hall", "Chapel", "Court", "Theatre", "Press room", "Committee room", "Pitch")
_KINDS = ("Session", "Final", "Quarter final", "Press conference", "Hearing", "Concert", "Debate", "Training", "Mass", "Derby")
_SIDES = ("Lions", "Tigers", "Ångström", "O'Neill", "São Paulo", 'The "Reds"', "Żubry", "東京", "Ölper & Söhne", "50% off!", "C++")
_REFERENCES = ("{day}/{n}", "ref#{n}", "a b&c={n}", "100%/{n}?x=y", "日程-{n}", "Ü{n}", "{n}+{day}", "back\\slash-{n}", 'q"{n}"')


@dataclass(frozen=True, slots=True)
class SampleRoom:
    id: UUID
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SampleEvent:
    id: UUID
    values: dict[str, Any]
    tags: Sequence[str]


def first_day(around: datetime | None) -> datetime:
    """Return the day before this time; `FIRST_DAY` if there is no time."""
    if around is None:
        return FIRST_DAY
    day = around.astimezone(UTC).date() - timedelta(days=1)
    return datetime.combine(day, FIRST_DAY.timetz())


def sample_rooms(count: int = 40) -> list[SampleRoom]:
    return [
        SampleRoom(
            uuid5(_NAMESPACE, f"room {n}"),
            {"name": f"{_PLACES[n % len(_PLACES)]} {n // len(_PLACES) + 1}", "reference_id": f"room/{n:03}"},
        )
        for n in range(count)
    ]


def sample_events(count: int = 10_000, *, seed: int = SEED, first_day: datetime = FIRST_DAY) -> Iterator[SampleEvent]:
    """Yield the Events of the schedule, 100 a day from the first day on."""
    chance = random.Random(seed)  # noqa: S311 - a sample, not a secret
    places = sample_rooms()
    for n in range(count):
        start = first_day + timedelta(days=n // EVENTS_A_DAY, minutes=chance.randrange(0, 17 * 60, 5))
        kind, home, away = chance.choice(_KINDS), chance.choice(_SIDES), chance.choice(_SIDES)
        reference = chance.choice(_REFERENCES).format(n=n, day=f"{start:%Y-%m-%d}")
        values: dict[str, Any] = {
            "title": f"{kind}: {home} – {away}",
            "ref_id": reference,
            "external_id": f"ext:{n:06}/{chance.choice(_SIDES)}",
            "description": f"{kind} number {n} of the sample schedule" if n % 3 else None,
            "room_id": chance.choice(places).id,
            "scheduled_start": start,
            "scheduled_end": start + timedelta(minutes=chance.choice((30, 60, 90, 120, 180))) if n % 10 else None,
            "auto_start": n % 2 == 0,
            "auto_publish": n % 4 == 0,
            "dvr_length": chance.choice((None, 1800, 7200)),
        }
        yield SampleEvent(uuid5(_NAMESPACE, f"event {n}"), values, (kind.lower(),) if n % 5 == 0 else ())
