"""The controller: starts queued jobs that have a slot although no worker has a free place for their next task. ADR 0122.

A worker with a free place starts such a job itself, together with the first task. So the controller leaves a job alone as long as
the queue moves. Jobs are distributed among controllers by leases on shards. If a job is started twice, or two jobs take the same
slot, the append refuses one of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import Final

from domain.job import events
from domain.job.aggregate import Job
from domain.kernel.errors import Conflict
from domain.kernel.ports import Invocation
from projections.consumers.leases import ShardLeases
from projections.job.admission import AdmittedJob, QueuedJobs
from projections.log.executor import CommandExecutor
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.wakeups import POLL, Waker

CONSUMER: Final = "controller"
FREES_SLOT: Final = frozenset({events.JobCompleted.TOPIC, events.Broken.TOPIC})
CHANGES_QUEUE: Final = FREES_SLOT | {events.Accepted.TOPIC, events.JobQueued.TOPIC, events.PriorityChanged.TOPIC}
"""The events after which a queued job may start, apart from those of settings."""
PATIENCE: Final = 0.25
"""Seconds between two looks at a queue. Jobs are started if the first of them is the same in both."""

_log = logging.getLogger(__name__)


class Controller(LeasedWorker):
    """Starts the jobs of the shards that this member owns, as far as no worker starts them."""

    def __init__(self, jobs: QueuedJobs, executor: CommandExecutor, *, leases: ShardLeases, waker: Waker) -> None:
        super().__init__(leases, waker)
        self._jobs = jobs
        self._executor = executor
        self._first: dict[tuple[str, str], int] = {}
        """The first job of each client and queue, as of the last look."""
        self._starting = 0

    @property
    def _busy(self) -> int:
        return self._starting

    async def _turn(self) -> None:
        await self._renew()
        await self.start_waiting(self._assignment.leases.keys())
        if not self._first:
            await self._waker.sleep(POLL)
        if not self._stopping:
            await asyncio.sleep(PATIENCE)

    async def start_waiting(self, shards: Collection[int]) -> None:
        """Start the jobs of these shards that no worker takes."""
        await self._start(self._waiting(await self._jobs.proposals(shards)))

    def _waiting(self, proposals: Sequence[AdmittedJob]) -> Sequence[AdmittedJob]:
        """Return the jobs that no worker takes: those of queues that have not moved since the last look, and those without any
        remaining task."""
        before, self._first = self._first, {}
        for proposal in proposals:
            self._first.setdefault((proposal.client, proposal.queued.queue), proposal.queued.job)
        stuck = {key for key, job in self._first.items() if before.get(key) == job or not key[1]}
        return [proposal for proposal in proposals if (proposal.client, proposal.queued.queue) in stuck]

    async def _start(self, jobs: Sequence[AdmittedJob]) -> None:
        self._starting = len(jobs)
        try:
            outcomes = await asyncio.gather(*map(self._start_one, jobs), return_exceptions=True)
        finally:
            self._starting = 0
        for fault in outcomes:
            if isinstance(fault, Conflict):
                _log.info("a job was not started: %s; it is retried", fault)
            elif fault is not None:
                raise fault

    async def _start_one(self, admitted: AdmittedJob) -> None:
        queued = admitted.queued
        start = Job.start.on(queued.job, slot=admitted.slot, low_slot=admitted.low_slot, priority=queued.priority)
        await self._executor.execute(start, invocation=Invocation.by("system", correlation_id=queued.transaction_id))
