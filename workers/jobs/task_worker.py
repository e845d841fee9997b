"""The task worker: starts tasks that are ready, runs their steps and keeps the lease of its process. ADR 0037.

Each worker owns shards of jobs and keeps their ready tasks in memory, so it starts a task with one append and asks nobody before.
The number of the run is the fence: whoever else starts the task at the same time is refused. The worker's lease covers all its
runs. It is renewed by this process's event loop while steps run in processes of their own, so a step that blocks cannot stop it.
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
from domain.job.commands import ExpireLease, InterruptTask
from domain.job.values import Fenced, TaskState
from domain.kernel.errors import NotFound, Unavailable
from domain.kernel.stream_name import StreamName
from projections.consumers.leases import Assignment, ShardLeases, shard_of
from projections.job.queue import MOST, ReadyTask, Run, RunUnderWay, TaskQueue
from projections.job.worker_lease import WorkerLease
from projections.kernel.background_task import start_forever, start_task
from workers.jobs.job_starter import JobStarter
from workers.jobs.ready_tasks import BORROWED_AFTER, ReadyTasks, Urgency, WaitingLong, urgency
from workers.jobs.step_executor import Assigned, StepExecutor, Workers
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.wakeups import POLL, REST, Waker

_MOMENT: Final = 0.01
_CHECK: Final = 0.2
"""Seconds between two questions whether runs of jobs that changed are still current."""
_ROOM: Final = 4
"""The share of places, one of so many, that makes it worth looking for jobs in a line."""
_BUSY: Final = 5
"""How much more seldom a worker looks at the work of others while a line of its own waits."""
_ENDED: Final = 1000
"""Jobs that ended here and are remembered: what is announced of them is known."""
PLACE_EXPECTED: Final = 0.5
"""Seconds after a step began or ended during which the next one is expected to end soon."""

_log = logging.getLogger(__name__)


class TaskWorker(LeasedWorker):
    """Runs the tasks of one queue in one process. `steps` is how many run at a time; `drain` how many seconds they have to end
    when the worker is stopped."""

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
        self._others = WaitingLong[Run]()
        self._late: list[ReadyTask] = []
        self._changed: set[int] = set()
        self._stirred = self._looked = self._checked = self._moved = float("-inf")
        self._runs: dict[Run, asyncio.Task[None]] = {}
        self._clients: dict[Run, str] = {}
        self._reserved = 0
        self._unknown: set[Run] = set()
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
        """No task is started any more. Running steps may end within `drain` seconds; others are given back, which counts as no
        attempt."""
        await self._until_begun()
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

    async def _until_begun(self) -> None:
        """Until the appends under way have said which runs they started."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._drain):
                while self._reserved:
                    await self._waker.sleep()

    async def _give_back(self) -> None:
        left = dict(self._runs)
        for task in left.values():
            task.cancel()
        await asyncio.gather(*left.values(), return_exceptions=True)
        with suppress(TimeoutError, Unavailable):
            async with asyncio.timeout(self._drain):
                for one in await self._queue.of_worker(self._lease.worker):
                    with suppress(Fenced, NotFound):
                        await self._executor.report(InterruptTask(*one.run), one.transaction_id)
                await self._lease.end()

    # --- what is ready

    def follow(self, streams: Sequence[str]) -> None:
        """These jobs may have tasks that are ready now, or none any more."""
        self._stirred = time.monotonic()
        for stream in streams:
            name = StreamName.read(stream)
            if name.kind == Job.KIND:
                self._changed.add(int(name.key))

    async def _turn(self) -> None:
        await self._renew()
        await self._learn()
        self._start_ready()
        if self.free and not (self._stopping or self._starter.line):
            await self._starter.borrow(self)
        await asyncio.sleep(REST)  # what happens meanwhile is learned together
        await self._waker.sleep(self._pause())

    async def _assigned(self, assignment: Assignment) -> None:
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
            self._ready.replace(own, (one for one in tasks if one.run not in self._runs), now=time.monotonic())
            self._suspects |= jobs
        if self._suspects and time.monotonic() - self._checked >= _CHECK:
            self._checked, jobs, self._suspects = time.monotonic(), self._suspects, set()
            await self._stop_outdated(run for run in self._runs if run.job in jobs)

    async def _look(self) -> None:
        """At all that is ready. What others have not started for a while is borrowed: they have no free place, or have died."""
        self._looked, self._changed = time.monotonic(), set()
        tasks = await self._queue.first()
        if len(tasks) == MOST:  # own ones may be behind those
            tasks += await self._queue.first(self._assignment.leases.keys())
        found = {one.run: one for one in tasks if one.run not in self._runs}
        self._ready.put(found.values(), now=time.monotonic())
        others = {run: one for run, one in found.items() if not (one.due_in or self._owns(one.shard))}
        late = self._others.seen(others, now=time.monotonic())
        self._late = sorted((others[run] for run in late), key=urgency, reverse=True)
        await self._stop_outdated(self._runs)

    def _owns(self, shard: int) -> bool:
        return shard in self._assignment.leases

    def _interval(self) -> float:
        """Seconds between two looks: short while something happens and there is a free place for the work of others, and no own."""
        if not self.free or self._first_ready() is not None or time.monotonic() - self._stirred > POLL:
            return POLL
        return BORROWED_AFTER * _BUSY if self._starter.line else BORROWED_AFTER

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
        """How many more runs may begin now."""
        return max(self._steps - len(self._runs) - self._reserved, 0) if self._lease.is_valid else 0

    def _start_ready(self) -> None:
        while self.free and not self._stopping and (ready := self._next_ready()) is not None:
            self._begin_ready(ready)
        if (ready := self._next_of_others()) is not None:
            self._begin_ready(ready)

    def _next_of_others(self) -> ReadyTask | None:
        """Where one client has all places, a task of another gets a further one: steps may last for hours."""
        clients = set(self._clients.values())
        if len(clients) > 1 or len(self._runs) != self._steps or self._reserved or self._stopping or not self._lease.is_valid:
            return None
        return self._ready.take_of_others(clients.pop(), time.monotonic())

    def _next_ready(self) -> ReadyTask | None:
        """The most urgent task, own or borrowed."""
        now = time.monotonic()
        own = self._ready.first(now)
        if self._late and (own is None or urgency(self._late[-1]) < urgency(own)):
            return self._late.pop()
        return self._ready.take(now)

    def _first_ready(self) -> Urgency | None:
        own = self._ready.first(time.monotonic())
        return min((urgency(one) for one in (own, *self._late[-1:]) if one is not None), default=None)

    def _begin_ready(self, ready: ReadyTask) -> None:
        if ready.run not in self._runs:
            self._begin(
                Assigned(ready.run, self._lease.worker, ready.transaction_id, ready.publishing, successors=self._successors),
                client=ready.client,
            )

    def _begin(self, assigned: Assigned, *, client: str) -> None:
        self._moved = time.monotonic()
        self._clients[assigned.run] = client
        self._runs[assigned.run] = start_task(self._run(assigned), what=f"runs of {self.name}")

    def _successors(self, job: Job) -> Workers:
        """The worker goes on with the next task of a job, if none is more urgent."""
        first = self._first_ready()
        others = first is not None and first < Urgency(job.priority, job.number, 0)
        return NO_WORKERS if others or self._stopping or not self._lease.is_valid else {self.name: self._lease.worker}

    async def _run(self, assigned: Assigned) -> None:
        """Execute a run, and those that follow it in the same job."""
        following: Assigned | None = assigned
        try:
            while following is not None:
                following = await self._execute(following)
        finally:
            self._place_is_free()

    async def _execute(self, assigned: Assigned) -> Assigned | None:
        """The run that the worker goes on with, if there is one. From the append that started it on it is among those that are
        executed here."""
        run = held = assigned.run
        following: Assigned | None = None
        going_on = False
        try:
            job = await self._executor.execute(assigned)
            if job.ended:
                self._ended.append(job.number)
            following = self._started_in(job, assigned.worker)
            if following is not None:
                held = following.run
                self._runs[held], self._clients[held] = self._runs.pop(run), self._clients.pop(run)
            await self._executor.clean_up(job, run)
            going_on = following is not None
        except (Fenced, NotFound) as fault:
            _log.info("%s; its files are deleted", fault)
        except Exception:
            _log.exception("run %d of task %d of job %d failed unexpectedly; it counts as lost", run.run, run.task, run.job)
        finally:
            if not going_on:
                del self._runs[held], self._clients[held]
        return following if going_on else None

    def _started_in(self, job: Job, worker: str) -> Assigned | None:
        """The run of this worker that the last append to the job has started, if it has."""
        for task in job.tasks.values():
            run = Run(job.number, task.plan.id, task.run)
            if (task.state, task.worker, task.plan.queue) == (TaskState.RUNNING, worker, self.name) and run not in self._runs:
                return Assigned(run, worker, job.transaction_id, job=job, successors=self._successors)
        return None

    def _place_is_free(self) -> None:
        self._moved = time.monotonic()
        self._waker.wake()
        self._starter.place_is_free(self)

    # --- places for jobs that start

    def reserve(self, most: int) -> int:
        """Keep up to `most` free places for jobs that start with a task of this queue. Ready tasks go first."""
        if self._stopping or self._first_ready() is not None:
            return 0
        found = min(self.free, most)
        self._reserved += found
        return found

    @property
    def has_room(self) -> bool:
        return self.free >= max(self._steps // _ROOM, 1)

    @property
    def worker(self) -> str:
        """The name under which a reserved place starts a task."""
        return self._lease.worker

    @property
    def expects_place(self) -> bool:
        """Whether steps end so fast that a job had better wait for a place here than start without one."""
        return self._lease.is_valid and self._first_ready() is None and time.monotonic() - self._moved < PLACE_EXPECTED

    def use_place(self, job: Job | None, *, worker: str) -> None:
        """The job has started in a reserved place, or not."""
        self._reserved -= 1
        started = None if job is None else self._started_in(job, worker)
        if job is not None and started is not None:
            self._begin(started, client=job.submission.client)
        else:
            self._place_is_free()

    # --- the lease

    async def _beat(self) -> None:
        """Every third of a lease. When it was lost, so are the runs: others may have begun them anew."""
        await asyncio.sleep(min(self._lease.seconds / 3, self._lease.remaining + _MOMENT))
        if not self._lease.is_valid:
            self._drop(self._runs, "the lease could not be kept")
        if not await self._lease.keep():
            self._drop(self._runs, "the lease was lost")
        self._waker.wake()

    async def _stop_outdated(self, runs: Iterable[Run]) -> None:
        """Stop steps of jobs that were broken off, and of runs that are not current any more."""
        stepping = [run for run in runs if self._executor.is_stepping(run)]
        if stepping:
            present = await self._queue.present(stepping)
            gone = [run for run in stepping if run not in present and self._executor.is_stepping(run)]
            self._drop(gone, "it is not the current run of its task any more")

    def _drop(self, runs: Iterable[Run], why: str) -> None:
        for run in list(runs):
            _log.warning("run %d of task %d of job %d is stopped: %s", run.run, run.task, run.job, why)
            self._runs[run].cancel()

    # --- duties for all workers

    async def _rescue(self) -> None:
        """Report the runs of workers that are lost, and those that the log has of this one and nobody executes."""
        await asyncio.sleep(self._lease.seconds / 6)
        for one in await self._queue.lost():
            await self._expire(one)
        mine = [one for one in await self._queue.of_worker(self._lease.worker) if one.run not in self._runs]
        for one in mine:
            if one.run in self._unknown and one.run not in self._runs:
                await self._expire(one)
        self._unknown = {one.run for one in mine}

    async def _expire(self, one: RunUnderWay) -> None:
        retries = await self._executor.retries(one.client)
        with suppress(NotFound):
            job = await self._executor.report(ExpireLease(*one.run, retries=retries), one.transaction_id)
            self._executor.lost(job, one.run)
            task = job.tasks[one.run.task]
            if task.state is TaskState.PUBLISHING and one.run not in self._runs and task.worker == self._lease.worker:
                again = Assigned(one.run, task.worker, one.transaction_id, publishing=True, successors=self._successors)
                self._begin(again, client=one.client)
