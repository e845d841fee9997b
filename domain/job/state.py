"""The state of a job: the application of its events, the slots that it holds, and its snapshot. ADR 0021.

Decisions are in `aggregate.py`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from domain.job import events
from domain.job.task import Task
from domain.job.values import TERMINAL, JobState, Semaphore, Submission, TaskState
from domain.kernel.aggregate import NO_CLAIMS, AggregateRoot, Claim
from domain.kernel.event import DomainEvent
from domain.kernel.named_callback import callback_scope


def slots_of(client: str) -> str:
    """Return the scope in which each started job of a client claims a number."""
    return f"job.slot.{client}"


def low_slots_of(client: str) -> str:
    """Return the scope of `slots_of` for jobs that may not take the slots reserved for urgent ones."""
    return f"job.low_slot.{client}"


class JobBase(AggregateRoot):
    """Base of the aggregate: its state, without decisions."""

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

    # --- events of commands of clients

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

    def _when_scheduled(self, event: events.Scheduled) -> None:
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

    # --- events of commands of the engine

    def _when_queued(self, event: events.Queued) -> None:
        """Queue the job. After a resumption, failed and cancelled tasks are tried again."""
        self.state = JobState.QUEUED
        self.failed, self.reason = False, ""
        for task in self.tasks.values():
            if task.state in (TaskState.FAILED, TaskState.CANCELLED):
                task.reset()

    def _when_started(self, event: events.Started) -> None:
        self.state = JobState.STARTED
        self.slot, self.low_slot = event.slot, event.low_slot

    def _when_completed(self, event: events.Completed) -> None:
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

    # --- slots and secrets

    @property
    def holds_slot(self) -> bool:
        """True if the job has a slot. A paused job keeps its slot until its running step has ended."""
        if self.slot is None or self.state in TERMINAL:
            return False
        return self.state is JobState.STARTED or any(task.under_way for task in self.tasks.values())

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

    # --- snapshot

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
