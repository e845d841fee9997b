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
from domain.kernel.errors import Conflict
from domain.kernel.ports import Invocation
from projections.job.admission import AdmittedJob, Capacity, QueuedJobs, admit
from projections.job.settings import EngineSettingsQueries
from projections.job.view import SHARDS
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from workers.job.ready_tasks import BORROWED_AFTER, OverdueKeys
from workers.kernel.wakeups import Waker

_LOOK: Final = 0.1
"""Seconds until the next look at a queue that had no free place."""

_log = logging.getLogger(__name__)


class QueuePlaces(Protocol):
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
        """Return True if enough places are free to make a look for jobs worthwhile."""
        ...

    @property
    def expects_place(self) -> bool:
        """Return True if a place will probably become free in a moment."""
        ...

    def reserve(self, most: int) -> int:
        """Reserve up to `most` free places, and return their number."""
        ...

    def use_place(self, job: Job | None, *, worker: str) -> None:
        """Use a reserved place for the first task of this job, or release the place if the task was not started."""
        ...


class JobStarter:
    """Starts jobs for the controller and the task workers of a process; each process has one.

    `backlogged` is True while jobs wait for a place in this process.
    """

    def __init__(self, database: Database, executor: CommandExecutor, *, settings: EngineSettingsQueries, waker: Waker) -> None:
        self._executor = executor
        self._settings = settings
        self._admission = QueuedJobs(database)
        self.waker = waker
        self._places: dict[str, QueuePlaces] = {}
        self._others = defaultdict[str, OverdueKeys[int]](OverdueKeys)
        self._looked_for_unowned = defaultdict[str, float](lambda: float("-inf"))
        self._capacity = Waker()
        self.backlogged = False
        self.starting = 0

    def add(self, places: QueuePlaces) -> None:
        self._places[places.name] = places

    def place_is_free(self, places: QueuePlaces) -> None:
        if self.backlogged and places.has_room:
            self._capacity.wake()

    async def wait_for_capacity(self) -> None:
        """Wait until a worker has room for some of the waiting jobs, or for 0.1 s at most."""
        await self._capacity.sleep(_LOOK)

    async def start(self, shards: Collection[int]) -> int:
        """Start the jobs of these shards, and return their number. Jobs wait a moment for a place if steps end fast here."""
        begin = min(shards, default=0) / SHARDS
        starts = await self._proposals(shards, begin=begin)
        chosen: list[tuple[AdmittedJob, QueuePlaces | None]] = []
        self.backlogged = False
        for admitted_job in starts:
            places = self._places.get(admitted_job.queued.queue)
            if places is None:
                chosen.append((admitted_job, None))
            elif places.reserve(1):
                chosen.append((admitted_job, places))
            elif places.expects_place:
                self.backlogged = True
            else:
                chosen.append((admitted_job, None))
        await self._start(chosen)
        return len(chosen)

    async def start_unowned(self, places: QueuePlaces) -> None:
        """Start, in free places, jobs of any shard that have had a slot for a while and were not started by their owner."""
        now = time.monotonic()
        if now - self._looked_for_unowned[places.name] < BORROWED_AFTER:
            return
        self._looked_for_unowned[places.name] = now
        proposals = [proposal for proposal in await self._proposals(None, begin=0.5) if proposal.queued.queue == places.name]
        waiting = self._others[places.name].update((proposal.queued.job for proposal in proposals), now=time.monotonic())
        late = [proposal for proposal in proposals if proposal.queued.job in waiting]
        await self._start([(proposal, places) for proposal in late[: places.reserve(len(late))]])

    async def _proposals(self, shards: Collection[int] | None, *, begin: float) -> list[AdmittedJob]:
        clients = await self._admission.clients()
        if not clients or (shards is not None and not shards):
            return []
        capacities = await self._capacities(clients)
        taken = await self._admission.used_slots(clients)
        queued = await self._admission.queued(capacities, taken, shards=shards)
        starts: list[AdmittedJob] = []
        for client, jobs in queued.items():
            starts += admit(jobs, taken[client], capacity=capacities[client], begin=begin)
        return starts

    async def _capacities(self, clients: Sequence[str]) -> Mapping[str, Capacity]:
        settings = await self._settings.of(clients)
        return {
            client: Capacity(limits.max_jobs, limits.priority_slots, limits.priority_threshold)
            for client, limits in settings.items()
        }

    async def _start(self, starts: Sequence[tuple[AdmittedJob, QueuePlaces | None]]) -> None:
        self.starting += len(starts)
        try:
            ends = await asyncio.gather(*(self._start_one(start, places) for start, places in starts), return_exceptions=True)
        finally:
            self.starting -= len(starts)
        for end in ends:
            if isinstance(end, Conflict):
                _log.info("a job was not started: %s; it is retried", end)
            elif end is not None:
                raise end

    async def _start_one(self, admitted_job: AdmittedJob, places: QueuePlaces | None) -> None:
        queued, job = admitted_job.queued, None
        worker = "" if places is None else places.worker
        workers = {} if places is None else {places.name: worker}
        start = Job.start.on(
            queued.job, slot=admitted_job.slot, low_slot=admitted_job.low_slot, priority=queued.priority, workers=workers
        )
        try:
            invocation = Invocation.by("system", correlation_id=queued.transaction_id)
            job = (await self._executor.execute(start, invocation=invocation)).aggregate
        finally:
            if places is not None:
                places.use_place(job, worker=worker)
