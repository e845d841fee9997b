"""The task worker: starts tasks that are ready, runs their steps and keeps the lease of its process. ADR 0037.

Each worker owns shards of jobs and keeps their ready tasks in memory, so it starts a task with one append and no query before it.
The number of the run is the fence: another worker that starts the task at the same time is refused. The worker's lease covers all
its runs. It is renewed by this process's event loop while steps run in separate processes, so a step that blocks cannot prevent it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from domain.job.aggregate import NO_WORKERS, Job
from domain.job.values import Fenced, TaskState
from domain.kernel.errors import NotFound, Unavailable
from domain.kernel.stream_name import StreamName
from projections.consumers.leases import Assignment, ShardLeases, shard_of
from projections.job.queue import MOST, ActiveRun, QueuedRun, ReadyTask, TaskQueue
from projections.job.worker_lease import WorkerLease
from projections.kernel.background_task import start_forever, start_task
from workers.job.job_starter import JobStarter
from workers.job.ready_tasks import BORROWED_AFTER, OverdueKeys, ReadyTasks, Urgency, urgency
from workers.job.step_executor import AssignedRun, StepExecutor, Workers
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.wakeups import POLL, REST, Waker

_MOMENT: Final = 0.01
_CHECK: Final = 0.2
"""Seconds between two checks that the runs of jobs that changed are still current."""
_ROOM: Final = 4
"""The share of places, one in this many, that must be free to make a look for waiting jobs worthwhile."""
_BUSY: Final = 5
"""The factor by which a worker looks less often at the work of others while jobs wait for its own places."""
_ENDED: Final = 1000
"""The number of jobs that ended here and are remembered, so that their announced changes need no query."""
PLACE_EXPECTED: Final = 0.5
"""Seconds after a step began or ended during which the next one is expected to end soon."""

_log = logging.getLogger(__name__)


class TaskWorker(LeasedWorker):
    """Runs the tasks of one queue in one process.

    `steps` is the number of steps that run at a time. `drain` is the number of seconds that they have to end when the worker is
    stopped.
    """

    def __init__(
        self,
        queue: TaskQueue,
        executor: StepExecutor,
        *,
        starter: JobStarter,
        lease: WorkerLease,
        shards: ShardLeases,
        waker: Waker,
        asked_to_end: Callable[[], None],
        steps: int,
        drain: float,
    ) -> None:
        super().__init__(shards, waker)
        self._queue = queue
        self._executor = executor
        self._starter = starter
        self._lease = lease
        self._asked_to_end = asked_to_end
        self._steps = steps
        self._drain = drain
        self._ready = ReadyTasks()
        self._others = OverdueKeys[QueuedRun]()
        self._late: list[ReadyTask] = []
        self._changed: set[int] = set()
        self._stirred = self._looked = self._checked = self._moved = float("-inf")
        self._runs: dict[QueuedRun, asyncio.Task[None]] = {}
        self._clients: dict[QueuedRun, str] = {}
        self._reserved = 0
        self._unknown: set[QueuedRun] = set()
        self._suspects: set[int] = set()
        self._ended = deque[int](maxlen=_ENDED)
        self._keeping: list[asyncio.Task[None]] = []
        starter.add(self)

    async def start(self) -> None:
        await self._lease.keep()
        await super().start()
        turns = (self._beat, self._rescue)
        self._keeping = [start_forever(turn, what=self.name) for turn in turns]

    async def _finish(self) -> None:
        """Start no more tasks, and give running steps `drain` seconds to end; the others are handed back, which does not count as
        an attempt."""
        await self._wait_for_starts()
        if self._runs:
            self._asked_to_end()
            await asyncio.wait(set(self._runs.values()), timeout=self._drain)
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        await self._give_back()

    @property
    def _warning(self) -> str | None:
        return self._executor.warning

    @property
    def _busy(self) -> int:
        return len(self._runs)

    async def _wait_for_starts(self) -> None:
        """Wait until the appends under way have reported which runs they started, for `drain` seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._drain):
                while self._reserved:
                    await self._waker.sleep()

    async def _give_back(self) -> None:
        remaining = dict(self._runs)
        for task in remaining.values():
            task.cancel()
        await asyncio.gather(*remaining.values(), return_exceptions=True)
        with suppress(TimeoutError, Unavailable):
            async with asyncio.timeout(self._drain):
                for active in await self._queue.of_worker(self._lease.worker):
                    with suppress(Fenced, NotFound):
                        await self._executor.report(
                            Job.interrupt_task.on(active.run.job, active.run.task, run=active.run.run),
                            active.transaction_id,
                        )
                await self._lease.end()

    # --- what is ready

    def follow(self, streams: Sequence[str]) -> None:
        """Note that these jobs may have tasks that are ready now, or no ready tasks any more."""
        self._stirred = time.monotonic()
        for stream in streams:
            name = StreamName.read(stream)
            if name.kind == Job.KIND:
                self._changed.add(int(name.key))

    async def _turn(self) -> None:
        await self._renew()
        await self._learn()
        self._start_ready()
        if self.free and not (self._stopping or self._starter.backlogged):
            await self._starter.start_unowned(self)
        await asyncio.sleep(REST)  # changes meanwhile are read together
        await self._waker.sleep(self._pause())

    async def _apply_assignment(self, assignment: Assignment) -> None:
        if assignment.leases.keys() != self._assignment.leases.keys():
            self._ready.own(assignment.leases.keys())
            self._ready.put(await self._queue.first(assignment.leases.keys()), now=time.monotonic())

    async def _learn(self) -> None:
        """Bring what is in memory up to date: for the jobs that changed, and now and then for all."""
        if time.monotonic() - self._looked >= self._interval():
            await self._look()
        elif self._changed:
            jobs, self._changed = self._changed.difference(self._ended), set()
            own = [job for job in jobs if self._owns(shard_of(str(job), self._leases.shards))]
            tasks = await self._queue.of_jobs(own)
            self._ready.replace(own, (ready for ready in tasks if ready.run not in self._runs), now=time.monotonic())
            self._suspects |= jobs
        if self._suspects and time.monotonic() - self._checked >= _CHECK:
            self._checked, jobs, self._suspects = time.monotonic(), self._suspects, set()
            await self._stop_outdated(run for run in self._runs if run.job in jobs)

    async def _look(self) -> None:
        """Read all ready tasks. Tasks that their owners have not started for a while are borrowed: those workers have no free
        place, or died."""
        self._looked, self._changed = time.monotonic(), set()
        tasks = await self._queue.first()
        if len(tasks) == MOST:  # its own tasks may be behind those
            tasks += await self._queue.first(self._assignment.leases.keys())
        by_run = {ready.run: ready for ready in tasks if ready.run not in self._runs}
        self._ready.put(by_run.values(), now=time.monotonic())
        others = {run: ready for run, ready in by_run.items() if not (ready.due_in or self._owns(ready.shard))}
        late = self._others.update(others, now=time.monotonic())
        self._late = sorted((others[run] for run in late), key=urgency, reverse=True)
        await self._stop_outdated(self._runs)

    def _owns(self, shard: int) -> bool:
        return shard in self._assignment.leases

    def _interval(self) -> float:
        """Return the seconds between two looks.

        They are few while something happens and there is a free place for the work of others but no ready task of its own.
        """
        if not self.free or self._first_ready() is not None or time.monotonic() - self._stirred > POLL:
            return POLL
        return BORROWED_AFTER * _BUSY if self._starter.backlogged else BORROWED_AFTER

    def _pause(self) -> float:
        due_in = self._ready.due_in(time.monotonic())
        waits = [self._interval()]
        if self._suspects:
            waits.append(_CHECK)
        if self.free and due_in is not None:
            waits.append(due_in)
        return min(waits)

    # --- running tasks

    @property
    def free(self) -> int:
        """The number of runs that may begin now in addition to those under way."""
        return max(self._steps - len(self._runs) - self._reserved, 0) if self._lease.is_valid else 0

    def _start_ready(self) -> None:
        while self.free and not self._stopping and (ready := self._next_ready()) is not None:
            self._begin_ready(ready)
        if (ready := self._next_of_others()) is not None:
            self._begin_ready(ready)

    def _next_of_others(self) -> ReadyTask | None:
        """Take a task of another client if one client has all places: it gets one more place, since steps may last hours."""
        clients = set(self._clients.values())
        if len(clients) > 1 or len(self._runs) != self._steps or self._reserved or self._stopping or not self._lease.is_valid:
            return None
        return self._ready.take_of_others(clients.pop(), time.monotonic())

    def _next_ready(self) -> ReadyTask | None:
        """Take the most urgent task, own or borrowed."""
        now = time.monotonic()
        own = self._ready.first(now)
        if self._late and (own is None or urgency(self._late[-1]) < urgency(own)):
            return self._late.pop()
        return self._ready.take(now)

    def _first_ready(self) -> Urgency | None:
        own = self._ready.first(time.monotonic())
        return min((urgency(ready) for ready in (own, *self._late[-1:]) if ready is not None), default=None)

    def _begin_ready(self, ready: ReadyTask) -> None:
        if ready.run not in self._runs:
            self._begin(
                AssignedRun(ready.run, self._lease.worker, ready.transaction_id, ready.publishing, successors=self._successors),
                client=ready.client,
            )

    def _begin(self, assigned: AssignedRun, *, client: str) -> None:
        self._moved = time.monotonic()
        self._clients[assigned.run] = client
        self._runs[assigned.run] = start_task(self._run(assigned), what=f"runs of {self.name}")

    def _successors(self, job: Job) -> Workers:
        """Return this worker for the next task of a job, or no worker if a more urgent task is ready."""
        first = self._first_ready()
        others = first is not None and first < Urgency(job.priority, job.number, 0)
        return NO_WORKERS if others or self._stopping or not self._lease.is_valid else {self.name: self._lease.worker}

    async def _run(self, assigned: AssignedRun) -> None:
        """Execute a run, and those that follow it in the same job."""
        following: AssignedRun | None = assigned
        try:
            while following is not None:
                following = await self._execute(following)
        finally:
            self._place_is_free()

    async def _execute(self, assigned: AssignedRun) -> AssignedRun | None:
        """Execute a run, and return the run with which the worker continues the job; None if there is none.

        A run that the last append started counts at once among those that are executed here.
        """
        run = current = assigned.run
        following: AssignedRun | None = None
        continues = False
        try:
            job = await self._executor.execute(assigned)
            if job.ended:
                self._ended.append(job.number)
            following = self._started_in(job, assigned.worker)
            if following is not None:
                current = following.run
                self._runs[current], self._clients[current] = self._runs.pop(run), self._clients.pop(run)
            await self._executor.clean_up(job, run)
            continues = following is not None
        except (Fenced, NotFound) as fault:
            _log.info("%s; its files are deleted", fault)
        except Exception:
            _log.exception("run %d of task %d of job %d failed unexpectedly; it counts as lost", run.run, run.task, run.job)
        finally:
            if not continues:
                del self._runs[current], self._clients[current]
        return following if continues else None

    def _started_in(self, job: Job, worker: str) -> AssignedRun | None:
        """Return the run that the last append to the job started for this worker; None if it started none."""
        for task in job.tasks.values():
            run = QueuedRun(job.number, task.plan.id, task.run)
            if (task.state, task.worker, task.plan.queue) == (TaskState.RUNNING, worker, self.name) and run not in self._runs:
                return AssignedRun(run, worker, job.transaction_id, job=job, successors=self._successors)
        return None

    def _place_is_free(self) -> None:
        self._moved = time.monotonic()
        self._waker.wake()
        self._starter.place_is_free(self)

    # --- places for jobs that start

    def reserve(self, most: int) -> int:
        """Reserve up to `most` free places for jobs that start with a task of this queue, and return their number. Ready tasks go
        first."""
        if self._stopping or self._first_ready() is not None:
            return 0
        places = min(self.free, most)
        self._reserved += places
        return places

    @property
    def has_room(self) -> bool:
        return self.free >= max(self._steps // _ROOM, 1)

    @property
    def worker(self) -> str:
        """The name under which a reserved place starts a task."""
        return self._lease.worker

    @property
    def expects_place(self) -> bool:
        """Return True if steps end so fast that a job had better wait for a place here than start without one."""
        return self._lease.is_valid and self._first_ready() is None and time.monotonic() - self._moved < PLACE_EXPECTED

    def use_place(self, job: Job | None, *, worker: str) -> None:
        """Use a reserved place for the first task of this job, or release it if the job has not started here."""
        self._reserved -= 1
        started = None if job is None else self._started_in(job, worker)
        if job is not None and started is not None:
            self._begin(started, client=job.submission.client)
        else:
            self._place_is_free()

    # --- the lease

    async def _beat(self) -> None:
        """Renew the lease every third of its duration.

        If the lease was lost, all runs are stopped: other workers may have started them again.
        """
        await asyncio.sleep(min(self._lease.seconds / 3, self._lease.remaining + _MOMENT))
        if not self._lease.is_valid:
            self._drop(self._runs, "the lease could not be kept")
        if not await self._lease.keep():
            self._drop(self._runs, "the lease was lost")
        self._waker.wake()

    async def _stop_outdated(self, runs: Iterable[QueuedRun]) -> None:
        """Stop the steps of jobs that were aborted, and of runs that are no longer current."""
        stepping = [run for run in runs if self._executor.is_stepping(run)]
        if stepping:
            present = await self._queue.present(stepping)
            gone = [run for run in stepping if run not in present and self._executor.is_stepping(run)]
            self._drop(gone, "it is no longer the current run of its task")

    def _drop(self, runs: Iterable[QueuedRun], why: str) -> None:
        for run in list(runs):
            _log.warning("run %d of task %d of job %d is stopped: %s", run.run, run.task, run.job, why)
            self._runs[run].cancel()

    # --- duties for all workers

    async def _rescue(self) -> None:
        """Report the runs of workers that are lost, and runs that the log assigns to this worker but that it does not execute."""
        await asyncio.sleep(self._lease.seconds / 6)
        for active in await self._queue.lost():
            await self._expire(active)
        mine = [active for active in await self._queue.of_worker(self._lease.worker) if active.run not in self._runs]
        for active in mine:
            if active.run in self._unknown and active.run not in self._runs:
                await self._expire(active)
        self._unknown = {active.run for active in mine}

    async def _expire(self, active: ActiveRun) -> None:
        retries = await self._executor.retries(active.client)
        with suppress(NotFound):
            job = await self._executor.report(
                Job.expire_lease.on(active.run.job, active.run.task, run=active.run.run, retries=retries),
                active.transaction_id,
            )
            self._executor.lost(job, active.run)
            task = job.tasks[active.run.task]
            if task.state is TaskState.PUBLISHING and active.run not in self._runs and task.worker == self._lease.worker:
                again = AssignedRun(active.run, task.worker, active.transaction_id, publishing=True, successors=self._successors)
                self._begin(again, client=active.client)
