"""The worker of one queue, a single loop: it looks for work for its free places, starts it in one append, and runs the steps.

The loop is `_turn`. What it finds is a proposal, because other workers look too: a slot is a claim, and the number of a run is a
fence, so the append starts a job or a task only once. Each worker owns shards of jobs and looks there first. Work of other shards
that has waited for a while is started by any worker with a free place. See docs/explanation/job-engine.md#workers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from domain.job import events
from domain.job.aggregate import NO_WORKERS, Job
from domain.job.values import Fenced, JobState, TaskState
from domain.kernel.command import Command
from domain.kernel.errors import Conflict, NotFound, Unavailable
from domain.record.kinds.setting import Setting
from projections.consumers.leases import Assignment, ShardLeases, shard_of
from projections.job.admission import AdmittedJob, QueuedJobs
from projections.job.queue import ActiveRun, QueuedRun, ReadyTask, TaskQueue
from projections.job.view import SHARDS
from projections.job.worker_lease import WorkerLease
from projections.kernel.background_task import start_forever, start_task
from projections.log.reader import LoggedEvent
from workers.job.controller import CHANGES_QUEUE, FREES_SLOT
from workers.job.step_executor import AssignedRun, StepExecutor, Workers
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.log_reader import Page
from workers.kernel.wakeups import POLL, REST, Waker

_MOMENT: Final = 0.01
BORROWED_AFTER: Final = 0.05
"""Seconds that work waits for the owner of its shard before any worker with a free place starts it."""
_BUSY: Final = 5
"""The factor by which a worker looks less often at the work of others while its own takes all places."""
_MOST_BORROWED: Final = 100
"""The number of tasks, and of jobs, that a look at the work of others returns."""
_LONG: Final = 0.5
"""Seconds without the start or end of a run after which all running steps count as long ones."""
_AGAIN: Final = 0.5

_CHANGES_TASKS: Final = frozenset(
    event.TOPIC
    for event in (
        events.JobStarted,
        events.TaskCompleted,
        events.TaskFailed,
        events.TaskInterrupted,
        events.TaskLeaseExpired,
        events.PriorityChanged,
    )
)
_ENDS_RUNS: Final = FREES_SLOT | {events.TaskLeaseExpired.TOPIC, events.TaskInterrupted.TOPIC}
_WAKES: Final = CHANGES_QUEUE | _CHANGES_TASKS | {event.TOPIC for event in Setting.EVENTS}

_log = logging.getLogger(__name__)


class Urgency(NamedTuple):
    """The order in which work is started: the lowest first."""

    priority: int
    job: int
    task: int


Proposal = ReadyTask | AdmittedJob
"""A task to start, or a job to start with its first task."""


def urgency(proposal: Proposal) -> Urgency:
    if isinstance(proposal, AdmittedJob):
        return Urgency(proposal.queued.priority, proposal.queued.job, 0)
    return Urgency(proposal.priority, proposal.run.job, proposal.run.task)


class OverdueProposals:
    """Finds proposals of other members' shards that were present in every look for some time."""

    def __init__(self, seconds: float = BORROWED_AFTER) -> None:
        self._seconds = seconds
        self._since: dict[Urgency, float] = {}

    def update(self, proposals: Sequence[Proposal], *, now: float) -> list[Proposal]:
        """Take the proposals that are present now, and return those that have been present long enough. Absent ones are
        forgotten."""
        self._since = {key: self._since.get(key, now) for key in map(urgency, proposals)}
        return [proposal for proposal in proposals if now - self._since[urgency(proposal)] >= self._seconds]


@dataclass(slots=True)
class _Run:
    """A run in progress. It has a place from its start to the end of its step, and while its files are deleted."""

    client: str
    task: asyncio.Task[None]
    has_place: bool = True


@dataclass(frozen=True, slots=True)
class _Ending:
    """A run whose step has ended. `workers` receives the workers that start the next task of the job in the same append."""

    run: QueuedRun
    job: Job
    workers: asyncio.Future[Workers]

    @property
    def urgency(self) -> Urgency:
        return Urgency(self.job.priority, self.job.number, 0)


class JobWorker(LeasedWorker):
    """Runs the tasks of one queue in one process, and starts the queued jobs whose next task is for this queue.

    `steps` is the number of steps that run at a time. `drain` is the number of seconds that they have to end when the worker is
    stopped. `lease` covers all runs of the worker. It is renewed while steps run in separate processes, so a step that blocks
    cannot prevent it.
    """

    def __init__(
        self,
        queue: TaskQueue,
        executor: StepExecutor,
        *,
        jobs: QueuedJobs,
        lease: WorkerLease,
        shards: ShardLeases,
        asked_to_end: Callable[[], None],
        steps: int,
        drain: float,
    ) -> None:
        super().__init__(shards, Waker())
        self._queue = queue
        self._executor = executor
        self._jobs = jobs
        self._lease = lease
        self._asked_to_end = asked_to_end
        self._steps = steps
        self._drain = drain
        self._runs: dict[QueuedRun, _Run] = {}
        self._ending: list[_Ending] = []
        self._jobs_changed = self._tasks_changed = True
        self._polled_at = self._borrowed_at = self._stirred_at = self._moved_at = float("-inf")
        self._overdue = OverdueProposals()
        self._late: Sequence[Proposal] = ()
        """The work of others that was overdue at the last look, and was not started here since."""
        self._ended_here: set[int] = set()
        """Jobs that ended here, until the log has announced it."""
        self._suspects: set[int] = set()
        self._unknown: set[QueuedRun] = set()
        self._duties: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await self._lease.keep()
        await super().start()
        self._duties = [start_forever(turn, what=self.name) for turn in (self._beat, self._rescue)]

    async def _finish(self) -> None:
        """Start no more tasks, and give running steps `drain` seconds to end; the others are handed back, which does not count as
        an attempt."""
        self._release_ended(())
        if self._runs:
            self._asked_to_end()
            await asyncio.wait({run.task for run in self._runs.values()}, timeout=self._drain)
        for duty in self._duties:
            duty.cancel()
        await asyncio.gather(*self._duties, return_exceptions=True)
        await self._hand_back()

    async def _hand_back(self) -> None:
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TimeoutError, Unavailable):
            async with asyncio.timeout(self._drain):
                for active in await self._queue.of_worker(self._lease.worker):
                    with suppress(Fenced, NotFound):
                        await self._executor.report(
                            Job.interrupt_task.on(active.run.job, active.run.task, run=active.run.run), active.transaction_id
                        )
                await self._lease.end()

    @property
    def _warning(self) -> str | None:
        return self._executor.warning

    @property
    def _busy(self) -> int:
        return len(self._runs)

    # --- the loop

    async def _turn(self) -> None:
        """Look for work for the free places, let the steps that have ended report that, and start the work."""
        await self._renew()
        await self._stop_outdated()
        chosen: Sequence[Proposal] = ()
        try:
            chosen = self._most_urgent(await self._look())
        finally:
            self._release_ended(chosen)
        self._late = [proposal for proposal in self._late if proposal not in chosen]
        await self._start_all(chosen)
        await asyncio.sleep(REST)  # what changes meanwhile is handled together
        await self._waker.sleep(self._pause())

    def _pause(self) -> float:
        borrows = self._free and not self._owns_all and time.monotonic() - self._stirred_at < POLL
        return BORROWED_AFTER if borrows else POLL

    async def _look(self) -> list[Proposal]:
        """Return work that may start now: that of the worker's own shards if anything has changed there, and that of others which
        has waited for a while."""
        now, places = time.monotonic(), self._free
        if now - self._polled_at >= POLL:
            self._polled_at, self._jobs_changed, self._tasks_changed = now, True, True
        if self._stopping or not self._lease.is_valid:
            return []
        proposals = await self._look_at_own(places) if places else await self._look_for_another_client(now)
        if not self._owns_all:
            if now - self._borrowed_at >= BORROWED_AFTER * (1 if len(proposals) < places else _BUSY):
                self._borrowed_at, self._late = now, await self._look_at_others()
            proposals += self._late if places else ()
        return proposals

    async def _look_at_own(self, places: int) -> list[Proposal]:
        shards, proposals = self._assignment.leases.keys(), list[Proposal]()
        if self._tasks_changed:
            self._tasks_changed = False
            tasks = await self._queue.first(shards, limit=places + len(self._runs))
            proposals += (ready for ready in tasks if ready.run not in self._runs)
            self._tasks_changed |= len(proposals) >= places
        if self._jobs_changed:
            self._jobs_changed = False
            jobs = await self._jobs.proposals(shards, queue=self.name, limit=places)
            proposals += jobs
            self._jobs_changed |= bool(jobs) and len(proposals) >= places
        return proposals

    async def _look_at_others(self) -> Sequence[Proposal]:
        """Return work of other members that they have not started for a while: they have no free place, or died."""
        own = self._assignment.leases.keys()
        tasks = await self._queue.first(limit=_MOST_BORROWED)
        jobs = await self._jobs.proposals(queue=self.name, limit=_MOST_BORROWED)
        others: list[Proposal] = [task for task in tasks if task.shard not in own and task.run not in self._runs]
        others += (job for job in jobs if job.queued.shard not in own)
        return self._overdue.update(others, now=time.monotonic())

    async def _look_for_another_client(self, now: float) -> list[Proposal]:
        """Return a task of another client if one client has all places and its steps take long: that task gets one more place."""
        clients = {run.client for run in self._runs.values()}
        if len(clients) > 1 or len(self._runs) != self._steps or now - self._moved_at < _LONG or not self._tasks_changed:
            return []
        self._tasks_changed = False
        return list(await self._queue.first_of_others(clients.pop(), limit=1))

    def _most_urgent(self, proposals: Sequence[Proposal]) -> Sequence[Proposal]:
        """Return what starts now. A step that has ended leaves its place, unless its job goes on and nothing is more urgent."""
        if not self._free:
            return proposals[:1]
        going_on = [ending.urgency for ending in self._ending if self._goes_on(ending.job)]
        last = sorted([*map(urgency, proposals), *going_on])[: self._free][-1:]
        return [proposal for proposal in sorted(proposals, key=urgency) if urgency(proposal) <= last[0]]

    @property
    def _owns_all(self) -> bool:
        return len(self._assignment.leases) == self._leases.shards

    @property
    def _free(self) -> int:
        """The number of runs that may begin now. A step that has ended leaves its place."""
        taken = sum(run.has_place for run in self._runs.values()) - len(self._ending)
        return max(self._steps - taken, 0) if self._lease.is_valid else 0

    # --- runs

    async def _start_all(self, chosen: Sequence[Proposal]) -> None:
        outcomes = await asyncio.gather(*map(self._start, chosen), return_exceptions=True)
        for fault in outcomes:
            if isinstance(fault, Fenced | Conflict | NotFound):
                _log.info("%s; it was changed or started elsewhere", fault)
                self._jobs_changed = self._tasks_changed = True
            elif isinstance(fault, BaseException):
                raise fault

    async def _start(self, proposal: Proposal) -> None:
        """Start a task, or a job with its first task, and begin the run."""
        worker = self._lease.worker
        if isinstance(proposal, AdmittedJob):
            queued, slot, low_slot = proposal.queued, proposal.slot, proposal.low_slot
            workers = {self.name: worker}
            start = Job.start.on(queued.job, slot=slot, low_slot=low_slot, priority=queued.priority, workers=workers)
            job = await self._until_answered(start, queued.transaction_id)
        elif not proposal.publishing:
            run = proposal.run
            start = Job.start_task.on(run.job, run.task, run=run.run, worker=worker)
            job = await self._until_answered(start, proposal.transaction_id)
        else:
            assigned = AssignedRun(proposal.run, worker, proposal.transaction_id, self._ended, publishing=True)
            self._begin(assigned, client=proposal.client)
            return
        started = self._started_in(job, worker)
        if started is not None:
            self._begin(started, client=job.submission.client)

    async def _until_answered(self, command: Command[Job], transaction_id: str) -> Job:
        """Execute a command, repeatedly until the database answers: a run that was started must not be forgotten."""
        while True:
            try:
                return await self._executor.execute_once(command, transaction_id)
            except Unavailable:
                if self._stopping:
                    raise
                await asyncio.sleep(_AGAIN)

    def _begin(self, assigned: AssignedRun, *, client: str) -> None:
        self._moved_at = time.monotonic()
        self._runs[assigned.run] = _Run(client, start_task(self._run(assigned), what=f"runs of {self.name}"))

    async def _run(self, assigned: AssignedRun) -> None:
        """Execute a run, and those that follow it in the same job."""
        following: AssignedRun | None = assigned
        try:
            while following is not None:
                following = await self._execute(following)
        finally:
            self._moved_at = time.monotonic()
            self._waker.wake()

    async def _execute(self, assigned: AssignedRun) -> AssignedRun | None:
        """Execute a run, and return the run with which the worker continues the job; None if there is none.

        A run that the last append started counts at once among those that are executed here.
        """
        run = current = assigned.run
        following: AssignedRun | None = None
        continues = False
        try:
            job = await self._executor.execute(assigned)
            self._note(job)
            following = self._started_in(job, assigned.worker)
            self._runs[run].has_place = True
            if following is not None:
                current = following.run
                self._runs[current] = self._runs.pop(run)
            await self._executor.clean_up(job, run)
            continues = following is not None
        except (Fenced, NotFound) as fault:
            _log.info("%s; its files are deleted", fault)
        except Exception:
            _log.exception("run %d of task %d of job %d failed unexpectedly; it counts as lost", run.run, run.task, run.job)
        finally:
            if not continues:
                del self._runs[current]
        return following if continues else None

    def _note(self, job: Job) -> None:
        """Note what a run has left: a free slot, or tasks that are ready now."""
        if job.ended:
            self._ended_here.add(job.number)
        self._jobs_changed |= not job.holds_slot
        self._tasks_changed |= any(job.state_of(task) is TaskState.READY for task in job.tasks.values())

    def _started_in(self, job: Job, worker: str) -> AssignedRun | None:
        """Return the run that the last append to the job started for this worker; None if it started none."""
        for task in job.tasks.values():
            run = QueuedRun(job.number, task.plan.id, task.run)
            if (task.state, task.worker, task.plan.queue) == (TaskState.RUNNING, worker, self.name) and run not in self._runs:
                return AssignedRun(run, worker, job.transaction_id, self._ended, job=job)
        return None

    async def _ended(self, run: QueuedRun, job: Job) -> Workers:
        """Wait until the loop lets the end of a step be reported. Return the workers that start the next task of the job.

        So the ends of steps and the starts of the next ones are in the same appends. Each append costs a flush and the lock of the
        log, for which all processes wait.
        """
        if self._stopping:
            return NO_WORKERS
        ending = _Ending(run, job, asyncio.get_running_loop().create_future())
        self._ending.append(ending)
        self._waker.wake()
        try:
            return await ending.workers
        finally:
            with suppress(ValueError):
                self._ending.remove(ending)

    def _release_ended(self, chosen: Sequence[Proposal]) -> None:
        """Let the steps that have ended report that. The most urgent of their jobs go on, in the places that `chosen` leaves."""
        remaining = self._free - len(chosen)
        ended, self._ending = sorted(self._ending, key=lambda ending: ending.urgency), []
        for ending in ended:
            goes_on = remaining > 0 and not self._stopping and self._lease.is_valid and self._goes_on(ending.job)
            remaining -= goes_on
            self._runs[ending.run].has_place = goes_on
            if not ending.workers.done():
                ending.workers.set_result({self.name: self._lease.worker} if goes_on else NO_WORKERS)

    def _goes_on(self, job: Job) -> bool:
        """Return True if a task of the job may follow here."""
        waiting = (task for task in job.tasks.values() if task.state is TaskState.WAITING)
        return job.state is JobState.STARTED and any(task.plan.queue == self.name for task in waiting)

    # --- what the log tells

    def see(self, page: Page | None) -> None:
        """Take note of new events. Without a page anything may have happened."""
        if page is None:
            self._jobs_changed = self._tasks_changed = True
            self._suspects.update(run.job for run in self._runs)
            self._ended_here.clear()
        elif page.topics.isdisjoint(_WAKES):
            return
        else:
            self._read(page.records)
        self._waker.wake()

    def _read(self, records: Sequence[LoggedEvent]) -> None:
        self._stirred_at = time.monotonic()
        own, running = self._assignment.leases.keys(), {run.job for run in self._runs}
        ended = {record.stream for record in records if record.topic in FREES_SLOT}
        for record in records:
            kind, _, key = record.stream.partition(":")
            if kind == Setting.KIND:
                self._jobs_changed = True
            elif kind == Job.KIND:
                job, topic = int(key), record.topic
                if topic in FREES_SLOT:
                    self._jobs_changed |= job not in self._ended_here
                    self._ended_here.discard(job)
                elif shard_of(key, SHARDS) in own and not (topic == events.JobStarted.TOPIC and job in running):
                    self._jobs_changed |= topic in CHANGES_QUEUE
                    self._tasks_changed |= topic in _CHANGES_TASKS and record.stream not in ended
                if topic in _ENDS_RUNS and job in running:
                    self._suspects.add(job)

    async def _apply_assignment(self, assignment: Assignment) -> None:
        if assignment.leases.keys() != self._assignment.leases.keys():
            self._jobs_changed = self._tasks_changed = True

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

    async def _stop_outdated(self) -> None:
        """Stop the steps of jobs that were aborted, and of runs that are no longer current."""
        suspects, self._suspects = self._suspects, set()
        polled = time.monotonic() - self._polled_at >= POLL
        stepping = [run for run in self._runs if self._executor.is_stepping(run) and (polled or run.job in suspects)]
        if stepping:
            present = await self._queue.present(stepping)
            gone = [run for run in stepping if run not in present and self._executor.is_stepping(run)]
            self._drop(gone, "it is no longer the current run of its task")

    def _drop(self, runs: Iterable[QueuedRun], why: str) -> None:
        for run in list(runs):
            _log.warning("run %d of task %d of job %d is stopped: %s", run.run, run.task, run.job, why)
            self._runs[run].task.cancel()

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
                again = AssignedRun(active.run, task.worker, active.transaction_id, self._ended, publishing=True)
                self._begin(again, client=active.client)
