"""The reconciler of infrastructure: brings about what the Events that share an infrastructure key want now.

It is driven by the desired state, not by single requests: two Events of one key can never destroy each other's infrastructure, and
the last one always does. Each key belongs to one member at a time, by a lease. The ends of a run are reported as commands with the
numbers of the runs that the Events wait for; if an Event has requested something else meanwhile, its number has changed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from domain.kernel.errors import Unavailable
from domain.kernel.ports import Invocation
from domain.provision.desired import Desired, Provided, desired, end_for, refusal_of
from domain.provision.handlers import ProvisionHandlers
from domain.provision.row import ProvisionRow
from domain.provision.values import ENDED, Deployment, RunEnd
from projections.consumers.leases import Assignment, ShardLeases, shard_of
from projections.kernel.background_task import TRANSIENT, start_task
from projections.log_store.log_store import Level, Logbook
from projections.provision.queries import ProvisionQueries
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.provision_metrics import ProvisionMetrics
from workers.kernel.wakeups import POLL, Waker
from workers.ports.provisioners import Halt, Provisioner


class RunProgress:
    """Writes progress entries about these subjects. An entry that cannot be stored does not stop the run."""

    def __init__(self, logbook: Logbook, subjects: Sequence[str]) -> None:
        self._logbook = logbook
        self._subjects = subjects

    async def info(self, message: str) -> None:
        await self._note(Level.INFO, message)

    async def _note(self, level: Level, message: str) -> None:
        for subject in self._subjects:
            try:
                await self._logbook.note(level, message, subject=subject)
            except Unavailable as fault:
                _log.warning("%s (about %s; not in the log store: %s)", message, subject, fault)


CONSUMER: Final = "provisioner"
SHARDS: Final = 32
_TIDY_EVERY: Final = 3600.0
"""Seconds between two removals of local state."""
_PAUSE: Final = 2.0
"""Seconds after a fault until the same key is retried."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Run:
    """The run in progress for a key. `seen` is what its Events wanted when it was checked last, `epoch` is that of the lease."""

    seen: str
    epoch: int
    halt: Halt
    desired: Desired | None = None
    task: asyncio.Task[None] | None = None


class Reconciler(LeasedWorker):
    """The keys of one member. `at_once` is the number of keys that it works on at a time."""

    def __init__(
        self,
        provisions: ProvisionQueries,
        handlers: ProvisionHandlers,
        *,
        provisioners: Mapping[Deployment, Provisioner],
        logbook: Logbook,
        metrics: ProvisionMetrics,
        leases: ShardLeases,
        waker: Waker,
        at_once: int,
        poll: float = POLL,
    ) -> None:
        """`poll` is the number of seconds between two looks of a member without runs."""
        super().__init__(leases, waker)
        self._provisions = provisions
        self._handlers = handlers
        self._provisioners = provisioners
        self._logbook = logbook
        self._metrics = metrics
        metrics.declare(state.name for state in ENDED)
        self._at_once = at_once
        self._poll = poll
        self._runs: dict[str, _Run] = {}
        self._rest_until: dict[str, float] = {}
        self._tidied = float("-inf")

    @property
    def _busy(self) -> int:
        return len(self._runs)

    async def _turn(self) -> None:
        await self._renew()
        if self._assignment.leases:
            if time.monotonic() - self._tidied > _TIDY_EVERY:
                await self._tidy()
            await self._look()
        await self._waker.sleep(POLL if self._runs or self._rest_until else self._poll)

    async def _finish(self) -> None:
        """Halt the runs. The next owner of the keys continues them."""
        for run in self._runs.values():
            run.halt.set()
        await self._wait_for(self._runs.values())

    def _releasable(self, assignment: Assignment) -> Collection[int]:
        busy = {shard_of(key, self._leases.shards) for key in self._runs}
        return assignment.excess - busy

    async def _apply_assignment(self, assignment: Assignment) -> None:
        for key, run in self._runs.items():
            if self._epoch(key, assignment) != run.epoch:
                run.halt.set()

    def _epoch(self, key: str, assignment: Assignment) -> int:
        """Return the epoch of this member's lease on the key; 0 if it has none. A lease that was lost and regained has another
        epoch."""
        lease = assignment.leases.get(shard_of(key, self._leases.shards))
        return 0 if lease is None else lease.epoch

    def _is_ours(self, key: str, epoch: int) -> bool:
        return epoch == self._epoch(key, self._assignment) != 0 and time.monotonic() < self._assignment.until

    async def _look(self) -> None:
        """Begin runs for keys with work, and halt those whose Events want something else."""
        now = time.monotonic()
        self._rest_until = {key: until for key, until in self._rest_until.items() if until > now}
        for key, wanted in (await self._provisions.with_work()).items():
            run = self._runs.get(key)
            if run is not None:
                await self._check_run(key, run, wanted)
            elif len(self._runs) < self._at_once and key not in self._rest_until:
                self._begin(key, wanted)

    async def _check_run(self, key: str, run: _Run, wanted: str) -> None:
        if run.seen == wanted or run.desired is None or run.halt.is_set():
            return
        if run.desired.is_outdated_by(desired(await self._provisions.of_key(key))):
            run.halt.set()
        run.seen = wanted

    def _begin(self, key: str, wanted: str) -> None:
        epoch = self._epoch(key, self._assignment)
        if not self._is_ours(key, epoch):
            return
        run = self._runs[key] = _Run(wanted, epoch, Halt(lambda: self._is_ours(key, epoch)))
        run.task = start_task(self._reconcile(key, run), what="provisioning")

    async def _reconcile(self, key: str, run: _Run) -> None:
        try:
            number = await self._provisions.number()
            run.desired = wanted = desired(await self._provisions.of_key(key), number=number)
            if wanted is not None:
                await self._report(wanted.refused, lambda row: refusal_of(row, key), run=run)
                provided = await self._provide(wanted, run)
                if not run.halt.forbids:  # otherwise the next run, of any member, reports the end
                    await self._report(wanted.work, lambda row: end_for(row, provided), run=run)
                await self._forget(wanted, provided, run=run)
        except TRANSIENT as fault:
            _log.warning("the infrastructure %r: %s; trying again", key, fault)
            self._rest_until[key] = time.monotonic() + _PAUSE
        except BaseException:
            self._rest_until[key] = time.monotonic() + _PAUSE
            raise
        finally:
            del self._runs[key]
            self._waker.wake()

    async def _provide(self, wanted: Desired, run: _Run) -> Provided:
        if not wanted.work:
            return Provided()
        progress = RunProgress(self._logbook, [str(row.event_id) for row in wanted.work])
        provisioner = self._provisioners.get(wanted.deployment)
        if provisioner is None:
            return Provided(reason=f"deployments of the type {wanted.deployment.value!r} are not provided here")
        began = time.monotonic()
        provided = await provisioner.provide(wanted, progress=progress, halt=run.halt)
        self._metrics.worked(wanted.deployment.value, seconds=time.monotonic() - began)
        return provided

    async def _forget(self, wanted: Desired, provided: Provided, *, run: _Run) -> None:
        """Remove the local state of a key. This is done after the end was reported: without the state another run would look for
        it. So would a run for an Event that has ordered something else meanwhile, or whose termination has failed: for these
        nothing was reported."""
        provisioner = self._provisioners.get(wanted.deployment)
        if provisioner is None or provided.left or provided.exists:
            return
        if await self._is_over(wanted.key) and not run.halt.forbids:
            await provisioner.forget(wanted.key)

    async def _tidy(self) -> None:
        """Forget local state of this machine for keys that are over. It runs between two checks, so no run begins meanwhile."""
        self._tidied = time.monotonic()
        for provisioner in self._provisioners.values():
            for key in await provisioner.local_keys():
                is_ours = key not in self._runs and self._is_ours(key, self._epoch(key, self._assignment))
                if is_ours and await self._is_over(key):
                    await provisioner.forget(key)

    async def _is_over(self, key: str) -> bool:
        """Return True if no Event has, may have, or waits for infrastructure of the key."""
        return not any(row.exists or row.work is not None for row in await self._provisions.of_key(key))

    async def _report(self, rows: Sequence[ProvisionRow], end: Callable[[ProvisionRow], RunEnd], *, run: _Run) -> None:
        """Report the end of a run to its Events, unless another member may work on the key."""
        for row in rows:
            if run.halt.forbids:
                _log.warning(
                    "the infrastructure %r belongs to another process now; the end of a run is not reported",
                    row.summary.infrastructure_key,
                )
                return
            outcome = await self._handlers.end_run(row.event_id, row.run, end=end(row), invocation=Invocation.by("system"))
            if outcome.position is not None and outcome.aggregate.state in ENDED:
                self._metrics.ended(outcome.aggregate.state.name)

    async def _wait_for(self, runs: Collection[_Run]) -> None:
        tasks = [run.task for run in runs if run.task is not None]
        if tasks:
            await asyncio.wait(tasks)
