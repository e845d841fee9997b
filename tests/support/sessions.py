"""A kind of session in memory: each session writes to the point of its key continuously, and the point checks the writers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.on_air_handlers import OnAirHandlers
from domain.event.values import EventState, Trigger
from domain.kernel.ports import Invocation
from domain.record.kinds.channel import Channel
from projections.consumers.leases import ShardLeases
from projections.kernel.database.database import Database
from projections.session.store import Drawn, SessionStore, Wanted, WantedQuery
from tests.support.feeding import configured, do, event, record
from tests.support.services import container
from workers.kernel.wakeups import Waker
from workers.session.kinds import CannotRun, SessionEnd, StartFailed
from workers.session.session import SessionRetries
from workers.session.worker import CONSUMER, SHARDS, SessionWorker

WANTED = WantedQuery(
    "memory", "SELECT on_air_channel_id::text, id::text, on_air_version FROM event_view WHERE on_air_channel_id IS NOT NULL"
)
LEASE = 2.0
FAST = SessionRetries(first=0.05, longest=0.2, most=4, stable=30.0)
_WRITE_EVERY = 0.01
LIVE, STOPPED = EventState.LIVE_UNPUBLISHED, EventState.STOPPED


@dataclass
class World:
    """The publishing points by key: every write, with the session and the worker that made it."""

    writes: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    reports: list[tuple[Any, ...]] = field(default_factory=list)

    def numbers(self, key: UUID) -> list[int]:
        """Return the numbers of the sessions that wrote, each as often as it took over."""
        results: list[int] = []
        for number, _ in self.writes.get(str(key), []):
            if not results or results[-1] != number:
                results.append(number)
        return results

    def check(self) -> None:
        """Check that no session wrote once a later one had written: there are never two at once."""
        for key in self.writes:
            numbers = self.numbers(UUID(key))
            assert numbers == sorted(set(numbers)), f"two sessions sent on {key}: {numbers}"

    def sends(self, key: UUID) -> Callable[[], bool]:
        """Return a condition that is true if something was written since this call."""
        before = len(self.writes.get(str(key), []))
        return lambda: len(self.writes.get(str(key), [])) > before

    async def silent(self, key: UUID) -> bool:
        """Return True if nothing is written for a while."""
        sends = self.sends(key)
        await asyncio.sleep(30 * _WRITE_EVERY)
        return not sends()

    def has_reported(self, kind: str, times: int = 1) -> Callable[[], bool]:
        return lambda: len(self.reported(kind)) >= times

    def reported(self, *kinds: str) -> list[tuple[Any, ...]]:
        return [report for report in self.reports if not kinds or report[0] in kinds]


class MemorySession:
    """A session that writes until it is stopped or crashes."""

    def __init__(self, world: World, key: str, *, number: int, worker: str, may_send: Callable[[], bool]) -> None:
        self._world = world
        self._key = key
        self._number = number
        self._worker = worker
        self._may_send = may_send
        self._end: asyncio.Future[SessionEnd] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while True:
            if self._may_send():
                self._world.writes.setdefault(self._key, []).append((self._number, self._worker))
            await asyncio.sleep(_WRITE_EVERY)

    def crash(self, reason: str = "it crashed", *, forgiven: bool = False) -> None:
        self._task.cancel()
        if not self._end.done():
            self._end.set_result(SessionEnd(reason, forgiven))

    async def ended(self) -> SessionEnd:
        return await asyncio.shield(self._end)

    async def stop(self, *, final: bool) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def statistics(self) -> Mapping[str, Any]:
        return {"writes": len(self._world.writes.get(self._key, []))}


class MemoryKind:
    """A kind of session. `cannot`, `fails` and `waits` are the sentences with which starts are refused."""

    wanted = WANTED

    def __init__(self, world: World, worker: str) -> None:
        self.world = world
        self.worker = worker
        self.cannot = ""
        self.fails = ""
        self.waits = ""
        self.starting: asyncio.Event | None = None
        """An event for which a start waits."""
        self.sessions: dict[str, MemorySession] = {}
        self.starts: list[int] = []

    def has_started(self, times: int) -> bool:
        return len(self.starts) == times

    async def start(self, wanted: Wanted, drawn: Drawn, *, may_send: Callable[[], bool]) -> MemorySession:
        self.starts.append(drawn.number)
        if self.starting is not None:
            await self.starting.wait()
        if self.cannot:
            raise CannotRun(self.cannot)
        if self.fails:
            raise StartFailed(self.fails)
        if self.waits:
            raise StartFailed(self.waits, waits=True)
        session = MemorySession(self.world, wanted.key, number=drawn.number, worker=self.worker, may_send=may_send)
        self.sessions[wanted.key] = session
        return session

    async def report_start(self, wanted: Wanted, number: int) -> None:
        self.world.reports.append(("started", wanted.owner, number))

    async def report_stop(self, owner: str, number: int, *, reason: str) -> None:
        self.world.reports.append(("stopped", owner, number, reason))

    async def report_failure(self, wanted: Wanted, number: int | None, *, reason: str) -> None:
        self.world.reports.append(("failed", wanted.owner, number, reason))


@dataclass
class Member:
    """A worker of sessions, as one process would run it."""

    worker: SessionWorker
    kind: MemoryKind

    async def die(self) -> None:
        """End like a process after SIGKILL: nothing is reported, no lease is released, and its children die with it."""
        keeping = self.worker._leases.keeper._task
        tasks = [task for task in (self.worker._task, keeping, self.worker._ticking) if task is not None]
        tasks += [session._task for session in self.worker.sessions.values() if session._task is not None]
        for task in tasks:
            task.cancel()
        for session in self.kind.sessions.values():
            session.crash()
        await asyncio.wait(tasks)
        await asyncio.sleep(0)


@asynccontextmanager
async def member(
    database: Database, world: World, *, name: str = "one", retries: SessionRetries = FAST, lease: float = LEASE
) -> AsyncIterator[Member]:
    kind = MemoryKind(world, name)
    leases = ShardLeases(database, CONSUMER, shards=SHARDS, member=uuid4(), host=name, lease=lease, reads_log=False)
    worker = SessionWorker(kind, SessionStore(database, WANTED), leases=leases, waker=Waker(), host=name, retries=retries)
    await worker.start()
    made = Member(worker, kind)
    try:
        yield made
    finally:
        if worker._task is not None and not worker._task.cancelled():
            await worker.stop()


async def an_event(inner: Core, number: int, *, channel: int | None = None) -> UUID:
    """Create an Event with its own channel, or with that of another one."""
    key = UUID(int=1000 + (channel or number))
    if channel is None:
        text = '{"encoders": [{"name": "enc-1", "type": "ffmpeg"}]}'
        await record(inner, Channel, key.int, **configured(f"channel {key.int}", text))
    return await event(inner, number, channel_id=key)


def channel_of(event_id: UUID) -> UUID:
    return UUID(int=1000 + event_id.int)


async def go_live(inner: Core, key: UUID, state: EventState = LIVE) -> None:
    """Start the Event as an operator does, so that it takes its channel."""
    await on_air(inner).change_state(key, state, invocation=Invocation.by("test"))


async def force_stop(inner: Core, key: UUID) -> None:
    await on_air(inner).force_stop(key, invocation=Invocation.by("test"))


def on_air(inner: Core) -> OnAirHandlers:
    return container(inner).get(OnAirHandlers)


async def stop(inner: Core, key: UUID) -> None:
    await do(inner, MediaEvent.change_state.on(key, STOPPED, trigger=Trigger.OPERATOR))


async def until(condition: Callable[[], Any], *, seconds: float = 60.0) -> float:
    """Wait for a condition, and return the duration."""
    begun = time.monotonic()
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return time.monotonic() - begun
            await asyncio.sleep(0.01)


async def rows(inner: Core) -> list[tuple[Any, ...]]:
    return await inner.database.rows("SELECT key, number, state, failures, reason FROM sessions ORDER BY key")
