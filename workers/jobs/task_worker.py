"""The task worker: claims tasks that are ready, runs their steps and renews their leases. ADR 0021.

Leases are renewed by this process's event loop while steps run in processes of their own, so a step that blocks cannot stop it. A
worker that was frozen finds that its leases have expired: it stops its steps first, and the job refuses its late reports.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from domain.job.commands import ExpireLease, InterruptTask
from domain.job.values import Fenced
from domain.kernel.errors import NotFound, Unavailable
from projections.consumers.leases import ShardLeases
from projections.job.queue import Claimed, Run, TaskQueue
from projections.kernel.background_task import run_forever
from workers.jobs.step_executor import StepExecutor
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.wakeups import LONG_REST, REST, Waker, rest

_LOOK: Final = 0.05
_MAX_EMPTY_CLAIMS: Final = 4

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _LeasedRun:
    """A run with its lease. Until `until`, of `time.monotonic`, no other worker can claim it."""

    claimed: Claimed
    until: float
    task: asyncio.Task[None] = field(init=False)


class TaskWorker(LeasedWorker):
    """Runs the tasks of one queue in one process. `steps` is how many run at a time; `drain` how many seconds they have to end
    when the worker is stopped."""

    def __init__(
        self,
        queue: TaskQueue,
        executor: StepExecutor,
        *,
        presence: ShardLeases,
        waker: Waker,
        watcher: Waker,
        asked_to_end: Callable[[], None],
        steps: int,
        drain: float,
    ) -> None:
        super().__init__(presence, waker)
        self._queue = queue
        self._executor = executor
        self._watcher = watcher
        self._asked_to_end = asked_to_end
        self._steps = steps
        self._drain = drain
        self._leased: dict[Run, _LeasedRun] = {}
        self._done: list[Run] = []
        self._empty_claims = 0
        self._keeping: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await super().start()
        turns = (self._beat, self._watch, self._rescue, self._appear)
        self._keeping = [asyncio.create_task(run_forever(turn, what=self.name)) for turn in turns]

    async def _finish(self) -> None:
        """No task is claimed any more. Running steps may end within `drain` seconds; others are given back, which counts as no
        attempt."""
        running = [held.task for held in self._leased.values()]
        if running:
            self._asked_to_end()
            await asyncio.wait(running, timeout=self._drain)
        await self._give_back()
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)

    @property
    def _busy(self) -> int:
        return len(self._leased)

    async def _give_back(self) -> None:
        left = list(self._leased.values())
        for held in left:
            held.task.cancel()
        await asyncio.gather(*(held.task for held in left), return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._drain):
                for held in left:
                    run = held.claimed.run
                    with suppress(Fenced, NotFound):
                        await self._executor.report(InterruptTask(run.job, run.task, run.run), held.claimed.transaction_id)
                await self._return_leases()

    # --- claiming and running tasks

    async def _turn(self) -> None:
        """Tasks that arrive during a pause are claimed together. After several claims without a task, because other workers are
        faster, the pause is longer."""
        free = self._steps - len(self._leased)
        if free > 0:
            begun = time.monotonic()
            claimed = await self._queue.claim([self.name], limit=free)
            for one in claimed:
                self._begin(one, until=begun + self._queue.lease)
            self._empty_claims = 0 if claimed else self._empty_claims + 1
            pause = REST if len(claimed) == free else rest(len(claimed))
            await asyncio.sleep(pause if self._empty_claims < _MAX_EMPTY_CLAIMS else LONG_REST)
            if claimed:
                return
        if not await self._waker.sleep():
            self._empty_claims = 0

    def _begin(self, claimed: Claimed, *, until: float) -> None:
        held = self._leased[claimed.run] = _LeasedRun(claimed, until)
        held.task = asyncio.create_task(self._run(claimed), name=f"run {claimed.run}")

    async def _run(self, claimed: Claimed) -> None:
        run = claimed.run
        try:
            await self._executor.execute(claimed)
        except (Fenced, NotFound) as fault:
            _log.info("%s; its files are deleted", fault)
        except Exception:
            _log.exception("run %d of task %d of job %d failed unexpectedly; its lease will expire", run.run, run.task, run.job)
        finally:
            if self._leased.pop(run, None) is not None:
                self._done.append(run)
            self._waker.wake()  # there is room for another task

    # --- keeping leases

    async def _beat(self) -> None:
        """Every third of a lease. A run whose lease cannot be renewed is dropped."""
        await asyncio.sleep(self._queue.lease / 3)
        await self._return_leases()
        asked = time.monotonic()
        held = list(self._leased)
        if not held:
            return
        renewed = await self._queue.renew(held)
        for run in held:
            kept = self._leased.get(run)
            if kept is None:
                continue
            if run in renewed:
                kept.until = asked + self._queue.lease
            else:
                self._drop(run, "its lease was lost")

    async def _watch(self) -> None:
        """Stop runs of jobs that were broken off, and runs whose lease has expired."""
        await self._watcher.sleep()
        now = time.monotonic()
        for run, held in list(self._leased.items()):
            if now >= held.until:
                self._drop(run, "its lease could not be kept")
        stepping = [run for run in self._leased if self._executor.is_stepping(run)]
        if stepping:
            present = await self._queue.present(stepping)
            for run in stepping:
                if run not in present and self._executor.is_stepping(run):
                    self._drop(run, "it is not the current run of its task any more")
        await asyncio.sleep(_LOOK)

    def _drop(self, run: Run, why: str) -> None:
        held = self._leased.pop(run, None)
        if held is not None:
            _log.warning("run %d of task %d of job %d is stopped: %s", run.run, run.task, run.job, why)
            held.task.cancel()
            self._done.append(run)

    async def _return_leases(self) -> None:
        done, self._done = self._done, []
        if done:
            try:
                await self._queue.release(done)
            except Unavailable:
                self._done += done
                raise

    # --- duties for all workers

    async def _rescue(self) -> None:
        """Report expired leases, of any worker."""
        await asyncio.sleep(self._queue.lease / 6)
        for one in await self._queue.expired():
            retries = await self._executor.retries(one.client)
            with suppress(NotFound):
                await self._executor.report(ExpireLease(one.run.job, one.run.task, one.run.run, retries), one.transaction_id)

    async def _appear(self) -> None:
        """Show this worker in the engine's health. There are no shards to hold."""
        await self._renew()
        await asyncio.sleep(self._leases.lease / 3)
