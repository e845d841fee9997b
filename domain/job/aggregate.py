"""Job: work that a client submits, and its tasks. States and transitions: docs/reference/api/job-engine.md#states; ADR 0021.

The aggregate and the append decide what may start: a job starts once, in a slot that no other job holds, and only the current run
of a task may report its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self
from uuid import UUID

from domain.job import events
from domain.job.task import Task
from domain.job.values import (
    DEFAULT_PRIORITY,
    TERMINAL,
    Fenced,
    JobState,
    Output,
    Result,
    Semaphore,
    Submission,
    TaskState,
    check_graph,
)
from domain.kernel.aggregate import NO_CLAIMS, AggregateRoot, Claim
from domain.kernel.command import creation, decision
from domain.kernel.errors import Refused
from domain.kernel.event import DomainEvent
from domain.kernel.named_callback import callback_scope

# The state of a job: the application of its events, the slots that it holds, and its snapshot. ADR 0021. Decisions are in
# `aggregate.py`.


def slots_of(client: str) -> str:
    """Return the scope in which each started job of a client claims a number."""
    return f"job.slot.{client}"


def low_slots_of(client: str) -> str:
    """Return the scope of `slots_of` for jobs that may not take the slots reserved for urgent ones."""
    return f"job.low_slot.{client}"


MOST_LOST: Final = 2
"""The number of consecutive lost workers after which a task is given up, because it seems to kill them."""

NO_WORKERS: Final[Mapping[str, str]] = MappingProxyType({})

_OPEN = frozenset({JobState.QUEUED, JobState.PENDING, JobState.SCHEDULED, JobState.PAUSED})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of retries of a failed task, and their delay: the settings `retry_limit` and `retry_delay`."""

    limit: int
    delay: timedelta


class Job(AggregateRoot):
    """A job, by its number."""

    KIND: ClassVar[str] = "job"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS
    submission: Submission
    state: JobState
    priority: int
    run_at: datetime | None
    semaphore: Semaphore | None
    transaction_id: str
    tasks: dict[int, Task]

    def begin(self) -> None:
        self.failed = False
        self.reason = ""
        self.slot: int | None = None
        self.low_slot: int | None = None

    def copy(self) -> Self:
        twin = super().copy()
        twin.tasks = {number: replace(task) for number, task in self.tasks.items()}
        return twin

    def in_progress(self) -> bool:
        return not self.ended

    # --- decisions: commands of clients

    @creation
    @classmethod
    def accept(
        cls,
        key: int,
        at: datetime,
        /,
        submission: Submission,
        *,
        priority: int = DEFAULT_PRIORITY,
        run_at: datetime | None = None,
        semaphore: Semaphore | None = None,
        rerun_of: int | None = None,
        headers: Mapping[str, str] | None = None,
        transaction_id: str = "",
    ) -> Self:
        check_graph(submission.tasks)
        facts: dict[str, Any] = {"run_at": run_at, "semaphore": semaphore, "rerun_of": rerun_of, "headers": dict(headers or {})}
        facts["transaction_id"] = transaction_id
        optional_facts = {name: value for name, value in facts.items() if value}
        return cls._begin(events.Accepted, key, at, submission=submission, priority=priority, **optional_facts)

    @decision
    def update(self, at: datetime, /, changes: Mapping[str, object]) -> None:
        """Apply all changes. `changes` may hold `queue_state` (a JobState), `run_at`, `priority` and `semaphore` (None removes
        it)."""
        match changes.get("priority"):
            case int(priority):
                self.prioritise(at, priority)
        if "semaphore" in changes:
            semaphore = changes["semaphore"]
            assert semaphore is None or isinstance(semaphore, Semaphore), "a semaphore"
            self.set_semaphore(at, semaphore)
        match changes.get("run_at"):
            case datetime() as run_at:
                self.reschedule(at, run_at)
        match changes.get("queue_state"):
            case JobState.PAUSED:
                self.pause(at)
            case JobState.BROKEN:
                self.break_off(at)
            case JobState.QUEUED:
                self.resume(at)

    @decision
    def prioritise(self, at: datetime, /, priority: int) -> None:
        if priority != self.priority:
            self._trigger(events.PriorityChanged, at=at, previous=self.priority, priority=priority)

    @decision
    def reschedule(self, at: datetime, /, run_at: datetime) -> None:
        """Change the time of the job. A queued or paused job that gets its present time again waits for it again."""
        if run_at == self.run_at and not (self.state in (JobState.QUEUED, JobState.PAUSED) and run_at > at):
            return
        self._must_be_open("run_at")
        self._trigger(events.JobScheduled if run_at > at else events.RunTimeChanged, at=at, run_at=run_at)

    @decision
    def set_semaphore(self, at: datetime, /, semaphore: Semaphore | None) -> None:
        if (semaphore and semaphore.mark) == (self.semaphore and self.semaphore.mark):
            return
        self._must_be_open("sempahore_url")
        self._trigger(events.SemaphoreChanged, at=at, semaphore=semaphore)

    @decision
    def pause(self, at: datetime, /) -> None:
        if self.state is not JobState.PAUSED:
            self._trigger(events.Paused, at=at)

    @decision
    def resume(self, at: datetime, /) -> None:
        if self.state is not JobState.PAUSED:
            raise Refused(f"queue_state: only a paused job can be queued; this one is {self.state.name.lower()}")
        self._trigger(events.JobQueued, at=at, resumed=True)

    @decision
    def end(self, at: datetime, /) -> None:
        """Cancel a job that is no longer needed, unless it has ended."""
        if not self.ended:
            self.break_off(at)

    @decision
    def break_off(self, at: datetime, /, *, rerun_as: int | None = None) -> None:
        """Cancel the job. `rerun_as` is the job that repeats it."""
        if self.state is not JobState.BROKEN:
            self._trigger(events.Broken, at=at, **({} if rerun_as is None else {"rerun_as": rerun_as}))

    # --- decisions: commands of the engine

    @decision
    def queue(self, at: datetime, /, *, run_at: datetime | None, semaphore: Semaphore | None) -> None:
        """Queue the job. `run_at` and `semaphore` are the values that the scheduler checked. If they changed since, nothing
        happens."""
        if self.state in (JobState.SCHEDULED, JobState.PENDING) and (run_at, semaphore) == (self.run_at, self.semaphore):
            self._trigger(events.JobQueued, at=at)

    @decision
    def start(
        self, at: datetime, /, *, priority: int, slot: int, low_slot: int | None, workers: Mapping[str, str] = NO_WORKERS
    ) -> None:
        """Start the job. `priority` is the one that the slots were chosen for; if it changed since, nothing happens and the
        controller chooses again. A job that was resumed while one of its steps still ran keeps its slot, and a job with no
        remaining work needs none. `workers`, by their queues, have capacity for the first task."""
        if self.state is not JobState.QUEUED or priority != self.priority:
            return
        self._complete_if_done(at)
        if self.ended:
            return
        if self.holds_slot and self.slot is not None:
            slot, low_slot = self.slot, self.low_slot
        self._trigger(events.JobStarted, at=at, slot=slot, low_slot=low_slot)
        self._start_ready(workers, at)

    @decision
    def start_task(self, at: datetime, /, task_id: int, *, run: int, worker: str) -> None:
        """Start a task. The same worker may repeat this after a lost response."""
        task = self._task(task_id, run)
        if (task.state, task.run, task.worker) == (TaskState.RUNNING, run, worker):
            return
        if self.state_of(task) is not TaskState.READY or run != task.run + 1:
            raise Fenced(self.key, task_id, run)
        self._start_run(task, worker, at)

    @decision
    def commit_outputs(self, at: datetime, /, task_id: int, *, run: int, outputs: tuple[Output, ...], result: Result) -> None:
        """Record that the step has ended, and that these files of this run are published."""
        task = self._present(task_id, run)
        if task.state is TaskState.RUNNING:
            self._trigger(
                events.OutputsCommitted, at=at, task=task_id, name=task.plan.name, run=run, outputs=outputs, result=result
            )

    @decision
    def complete_task(
        self, at: datetime, /, task_id: int, *, run: int, result: Result | None = None, workers: Mapping[str, str] = NO_WORKERS
    ) -> None:
        """Complete a task. A task with outputs is completed when all of them are in their places. A repeat changes nothing.
        `workers`, by their queues, start the next task."""
        task = self._task(task_id, run)
        if task.state is TaskState.COMPLETED and task.run == run:
            return
        task = self._present(task_id, run)
        optional_facts = {} if result is None else {"result": result}
        self._trigger(events.TaskCompleted, at=at, task=task_id, name=task.plan.name, run=run, **optional_facts)
        self._complete_if_done(at)
        self._start_ready(workers, at)

    @decision
    def fail_task(
        self, at: datetime, /, task_id: int, *, run: int, error: str, retries: RetryPolicy, final: bool = False, cause: str = ""
    ) -> None:
        """Record a failed run. `final` says that another try would fail too, as reported by the step. `cause` is its word for the
        owner of the job."""
        task = self._present(task_id, run)
        retry_at = None if final else self._retry_at(task, retries, at)
        self._trigger(
            events.TaskFailed,
            at=at,
            task=task_id,
            name=task.plan.name,
            run=run,
            attempt=task.attempts,
            error=error,
            retry_at=retry_at,
        )
        if retry_at is None:
            tries = "" if task.attempts == 1 else f" {task.attempts} times"
            self._abandon(f"the task {task.plan.name} failed{tries}: {error}", at, cause=cause)

    @decision
    def expire_lease(self, at: datetime, /, task_id: int, *, run: int, retries: RetryPolicy) -> None:
        """Record that the run's worker has not renewed its lease. A repeat changes nothing."""
        task = self._task(task_id, run)
        if task.state is not TaskState.RUNNING or task.run != run:
            return
        lost = task.lost + 1
        retry_at = None if lost >= MOST_LOST else self._retry_at(task, retries, at)
        self._trigger(
            events.TaskLeaseExpired, at=at, task=task_id, name=task.plan.name, run=run, attempt=task.attempts, retry_at=retry_at
        )
        if retry_at is None:
            why = f"{lost} times in a row" if lost >= MOST_LOST else f"at attempt {task.attempts}, the last one"
            self._abandon(f"the worker of the task {task.plan.name} was lost {why}", at)

    @decision
    def interrupt_task(self, at: datetime, /, task_id: int, *, run: int) -> None:
        """Record that the worker stops and returns the task."""
        task = self._task(task_id, run)
        if task.state is TaskState.RUNNING and task.run == run:
            self._trigger(events.TaskInterrupted, at=at, task=task_id, name=task.plan.name, run=run)

    def _must_be_open(self, field: str) -> None:
        if self.state not in _OPEN:
            raise Refused(f"{field}: the job is {self.state.name.lower()}")

    def _task(self, task_id: int, run: int) -> Task:
        if task_id not in self.tasks:
            raise Fenced(self.key, task_id, run)
        return self.tasks[task_id]

    def _present(self, task_id: int, run: int) -> Task:
        task = self._task(task_id, run)
        if not task.in_progress or task.run != run:
            raise Fenced(self.key, task_id, run)
        return task

    def _retry_at(self, task: Task, retries: RetryPolicy, at: datetime) -> datetime | None:
        return at + retries.delay if task.attempts <= retries.limit else None

    def _start_ready(self, workers: Mapping[str, str], at: datetime) -> None:
        """Let each of these workers start the first task of its queue that is ready."""
        for queue, worker in workers.items():
            task = self.first_ready(queue, at)
            if task is not None:
                self._start_run(task, worker, at)

    def _start_run(self, task: Task, worker: str, at: datetime) -> None:
        run, attempt = task.run + 1, task.attempts + 1
        self._trigger(events.TaskStarted, at=at, task=task.plan.id, name=task.plan.name, run=run, attempt=attempt, worker=worker)

    def _complete_if_done(self, at: datetime) -> None:
        if all(task.state is TaskState.COMPLETED for task in self.tasks.values()):
            self._trigger(events.JobCompleted, at=at, failed=False)

    def _abandon(self, reason: str, at: datetime, *, cause: str = "") -> None:
        self._trigger(events.JobCompleted, at=at, failed=True, reason=reason, cause=cause)

    @property
    def number(self) -> int:
        return int(self.key)

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL

    def state_of(self, task: Task) -> TaskState:
        """Return the state of a task. A waiting task is `READY` while its job is started and all tasks before it are completed."""
        if task.state is not TaskState.WAITING or self.state is not JobState.STARTED:
            return task.state
        return TaskState.READY if self._is_next(task) else task.state

    @property
    def next_queue(self) -> str:
        """The queue of the task that is ready first when the job starts; empty if no task waits for that."""
        return next((task.plan.queue for task in self.tasks.values() if self._is_next(task)), "")

    def first_ready(self, queue: str, at: datetime) -> Task | None:
        """Return the first task of this queue that is ready and due."""
        if self.state is not JobState.STARTED:
            return None
        ready = (task for task in self.tasks.values() if task.plan.queue == queue and self._is_next(task))
        return next((task for task in ready if task.due_at is None or task.due_at <= at), None)

    def _is_next(self, task: Task) -> bool:
        """Return True if the task waits for no other task."""
        return task.state is TaskState.WAITING and all(
            self.tasks[before].state is TaskState.COMPLETED for before in task.plan.after
        )

    def _when_accepted(self, event: events.Accepted) -> None:
        self.submission = event.submission
        self.priority = event.priority
        self.run_at = event.run_at
        self.semaphore = event.semaphore
        self.transaction_id = event.transaction_id
        self.tasks = {plan.id: Task(plan) for plan in event.submission.tasks}
        if event.run_at is not None and event.run_at > event.timestamp:
            self.state = JobState.SCHEDULED
        else:
            self.state = JobState.QUEUED if event.semaphore is None else JobState.PENDING

    def _when_scheduled(self, event: events.JobScheduled) -> None:
        self.run_at = event.run_at
        self.state = JobState.SCHEDULED

    def _when_run_time_changed(self, event: events.RunTimeChanged) -> None:
        self.run_at = event.run_at

    def _when_priority_changed(self, event: events.PriorityChanged) -> None:
        self.priority = event.priority

    def _when_semaphore_changed(self, event: events.SemaphoreChanged) -> None:
        self.semaphore = event.semaphore
        if self.state is JobState.QUEUED and event.semaphore is not None:
            self.state = JobState.PENDING
        elif self.state is JobState.PENDING and event.semaphore is None:
            self.state = JobState.QUEUED

    def _when_paused(self, event: events.Paused) -> None:
        self.state = JobState.PAUSED

    def _when_broken(self, event: events.Broken) -> None:
        self._end(JobState.BROKEN, event.timestamp)

    def _when_queued(self, event: events.JobQueued) -> None:
        """Queue the job. After a resumption, failed and cancelled tasks are tried again."""
        self.state = JobState.QUEUED
        self.failed, self.reason = False, ""
        for task in self.tasks.values():
            if task.state in (TaskState.FAILED, TaskState.CANCELLED):
                task.reset()

    def _when_started(self, event: events.JobStarted) -> None:
        self.state = JobState.STARTED
        self.slot, self.low_slot = event.slot, event.low_slot

    def _when_completed(self, event: events.JobCompleted) -> None:
        self.failed, self.reason = event.failed, event.reason
        self._end(JobState.COMPLETED, event.timestamp)

    def _when_task_started(self, event: events.TaskStarted) -> None:
        task = self.tasks[event.task]
        task.state = TaskState.RUNNING
        task.run, task.attempts = event.run, event.attempt
        task.worker, task.started_at, task.ended_at = event.worker, event.timestamp, None
        task.outputs, task.result = (), None

    def _when_outputs_committed(self, event: events.OutputsCommitted) -> None:
        task = self.tasks[event.task]
        task.state = TaskState.PUBLISHING
        task.outputs, task.result = event.outputs, event.result

    def _when_task_completed(self, event: events.TaskCompleted) -> None:
        task = self.tasks[event.task]
        task.state, task.ended_at = TaskState.COMPLETED, event.timestamp
        task.lost, task.error = 0, ""
        if event.result is not None:
            task.result = event.result

    def _when_task_failed(self, event: events.TaskFailed) -> None:
        task = self.tasks[event.task]
        task.error, task.lost = event.error, 0
        self._again_or_never(task, event.retry_at, event.timestamp)

    def _when_task_lease_expired(self, event: events.TaskLeaseExpired) -> None:
        task = self.tasks[event.task]
        task.error = "its worker was lost"
        task.lost += 1
        self._again_or_never(task, event.retry_at, event.timestamp)

    def _when_task_interrupted(self, event: events.TaskInterrupted) -> None:
        task = self.tasks[event.task]
        task.attempts -= 1
        task.lost = 0
        task.wait()

    def _again_or_never(self, task: Task, retry_at: datetime | None, at: datetime) -> None:
        if retry_at is not None:
            task.wait(retry_at)
        else:
            task.state, task.ended_at = TaskState.FAILED, at

    def _end(self, state: JobState, at: datetime) -> None:
        self.state = state
        self.slot = self.low_slot = None
        for task in self.tasks.values():
            if task.state in (TaskState.WAITING, TaskState.RUNNING, TaskState.PUBLISHING):
                task.state, task.ended_at = TaskState.CANCELLED, at

    @property
    def holds_slot(self) -> bool:
        """True if the job has a slot. A paused job keeps its slot until its running step has ended."""
        if self.slot is None or self.state in TERMINAL:
            return False
        return self.state is JobState.STARTED or any(task.in_progress for task in self.tasks.values())

    def claims(self) -> frozenset[Claim]:
        if self.ended:
            return NO_CLAIMS
        job_claims = {Claim(callback_scope(callback.id), self.key, self.id) for callback in self.submission.callbacks}
        if self.holds_slot:
            job_claims.add(Claim(slots_of(self.submission.client), str(self.slot), self.id))
            if self.low_slot is not None:
                job_claims.add(Claim(low_slots_of(self.submission.client), str(self.low_slot), self.id))
        return frozenset(job_claims) if job_claims else NO_CLAIMS

    def secrets(self) -> frozenset[UUID]:
        refs = [self.submission.sealed_parameters, None if self.semaphore is None else self.semaphore.sealed_url]
        refs += [callback.sealed_url for callback in self.submission.callbacks]
        return frozenset(ref.reference for ref in refs if ref is not None)

    def _to_snapshot(self) -> dict[str, Any]:
        return {
            "submission": self.submission.model_dump(mode="json"),
            "state": int(self.state),
            "priority": self.priority,
            "run_at": self.run_at and self.run_at.isoformat(),
            "semaphore": self.semaphore and self.semaphore.model_dump(mode="json"),
            "transaction_id": self.transaction_id,
            "ended": (self.failed, self.reason),
            "slots": (self.slot, self.low_slot),
            "tasks": [task.to_snapshot() for task in self.tasks.values()],
        }

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        self.submission = Submission.model_validate(details["submission"])
        self.state = JobState(details["state"])
        self.priority = details["priority"]
        self.run_at = details["run_at"] and datetime.fromisoformat(details["run_at"])
        self.semaphore = details["semaphore"] and Semaphore.model_validate(details["semaphore"])
        self.transaction_id = details["transaction_id"]
        self.failed, self.reason = details["ended"]
        self.slot, self.low_slot = details["slots"]
        self.tasks = {task["plan"]["id"]: Task.from_snapshot(task) for task in details["tasks"]}


events.Accepted.AGGREGATE = Job
