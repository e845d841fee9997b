"""Starts queued jobs for which there are slots, where possible together with their first task. ADR 0037.

The slots are claims of the append, so any number of processes may start jobs at the same time. A worker of this process that has a
free place starts the first task in the same append.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from domain.job.aggregate import Job
from domain.job.commands import StartJob
from domain.kernel.errors import Conflict
from domain.kernel.ports import Invocation
from projections.job.admission import Admission, AdmittedJob, Capacity, admit
from projections.job.settings import EngineSettingsQueries
from projections.job.view import SHARDS
from projections.kernel.database import Database
from projections.log.executor import CommandExecutor
from workers.jobs.ready_tasks import BORROWED_AFTER, WaitingLong
from workers.kernel.wakeups import Waker

_LOOK: Final = 0.1
"""Seconds until the next look at a queue for which there was no place."""

_log = logging.getLogger(__name__)


class Places(Protocol):
    """The places of a worker for the tasks of one queue."""

    @property
    def name(self) -> str:
        """The name of the queue."""
        ...

    @property
    def worker(self) -> str:
        """The name of the worker in events."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether so many places are free that it is worth looking for jobs."""
        ...

    @property
    def expects_place(self) -> bool:
        """Whether a place will probably be free in a moment."""
        ...

    def reserve(self, most: int) -> int:
        """Keep up to `most` free places; how many they are."""
        ...

    def use_place(self, job: Job | None, *, worker: str) -> None:
        """A reserved place is used for the first task of this job, or given back if it was not started."""
        ...


class JobStarter:
    """One per process, for its controller and its task workers. `line`: jobs wait for a place in this process."""

    def __init__(self, database: Database, executor: CommandExecutor, *, settings: EngineSettingsQueries, waker: Waker) -> None:
        self._executor = executor
        self._settings = settings
        self._admission = Admission(database)
        self.waker = waker
        self._places: dict[str, Places] = {}
        self._others = defaultdict[str, WaitingLong[int]](WaitingLong)
        self._borrowed = defaultdict[str, float](lambda: float("-inf"))
        self._room = Waker()
        self.line = False
        self.starting = 0

    def add(self, places: Places) -> None:
        self._places[places.name] = places

    def place_is_free(self, places: Places) -> None:
        if self.line and places.has_room:
            self._room.wake()

    async def room(self) -> None:
        """While a line waits: until there is room for some jobs of it, but not for ever."""
        await self._room.sleep(_LOOK)

    async def start(self, shards: Collection[int]) -> int:
        """Start the jobs of these shards; gives their number. Jobs wait a moment for a place where steps end fast."""
        begin = min(shards, default=0) / SHARDS
        starts = await self._proposed(shards, begin=begin)
        chosen: list[tuple[AdmittedJob, Places | None]] = []
        self.line = False
        for one in starts:
            places = self._places.get(one.queued.queue)
            if places is None:
                chosen.append((one, None))
            elif places.reserve(1):
                chosen.append((one, places))
            elif places.expects_place:
                self.line = True
            else:
                chosen.append((one, None))
        await self._start(chosen)
        return len(chosen)

    async def borrow(self, places: Places) -> None:
        """Start jobs that have had a slot for a while, whoever they belong to, in free places."""
        now = time.monotonic()
        if now - self._borrowed[places.name] < BORROWED_AFTER:
            return
        self._borrowed[places.name] = now
        found = [one for one in await self._proposed(None, begin=0.5) if one.queued.queue == places.name]
        waiting = self._others[places.name].seen((one.queued.job for one in found), now=time.monotonic())
        late = [one for one in found if one.queued.job in waiting]
        await self._start([(one, places) for one in late[: places.reserve(len(late))]])

    async def _proposed(self, shards: Collection[int] | None, *, begin: float) -> list[AdmittedJob]:
        clients = await self._admission.clients()
        if not clients or (shards is not None and not shards):
            return []
        capacities = await self._capacities(clients)
        held = await self._admission.used_slots(clients)
        queued = await self._admission.queued(capacities, held, shards=shards)
        found: list[AdmittedJob] = []
        for client, jobs in queued.items():
            found += admit(jobs, held[client], capacity=capacities[client], begin=begin)
        return found

    async def _capacities(self, clients: Sequence[str]) -> Mapping[str, Capacity]:
        settings = await self._settings.of(clients)
        return {
            client: Capacity(known.max_jobs, known.priority_slots, known.priority_threshold) for client, known in settings.items()
        }

    async def _start(self, starts: Sequence[tuple[AdmittedJob, Places | None]]) -> None:
        self.starting += len(starts)
        try:
            ends = await asyncio.gather(*(self._start_one(one, places) for one, places in starts), return_exceptions=True)
        finally:
            self.starting -= len(starts)
        for end in ends:
            if isinstance(end, Conflict):
                _log.info("a job was not started: %s; it is tried again", end)
            elif end is not None:
                raise end

    async def _start_one(self, one: AdmittedJob, places: Places | None) -> None:
        queued, job = one.queued, None
        worker = "" if places is None else places.worker
        workers = {} if places is None else {places.name: worker}
        start = StartJob(queued.job, one.slot, one.low_slot, queued.priority, workers)
        try:
            invocation = Invocation.by("system", correlation_id=queued.transaction_id)
            job = (await self._executor.execute(start, invocation=invocation)).aggregate
        finally:
            if places is not None:
                places.use_place(job, worker=worker)
