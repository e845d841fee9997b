"""Checks of the jobs in the event log after the faults.

The log is folded here by separate rules, not by the aggregate's, so faults of the aggregate are found too. Rules are checked at
every position, so temporary violations are found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import psycopg

from api.wiring.catalogue import catalogue
from domain.job import events
from domain.job.values import TaskPlan
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper

MOST_SHOWN: Final = 20
_CONSECUTIVE_LOSSES: Final = 2
_EVENTS = """
SELECT position, originator_id, originator_version, topic, state, extract(epoch FROM recorded_at)::float8
FROM events WHERE position > %s AND originator_id LIKE 'job:%%' ORDER BY position
"""


class Rule(StrEnum):
    """The rules that must hold at every position of the log."""

    ENDS_ONCE = "ends once"
    SLOTS = "max_jobs"
    RESERVED = "reserved slots"
    STARTS = "starts when it may"
    ONE_RUN = "one run"
    OVERTAKEN = "overtaken runs are silent"
    PUBLISHED_ONCE = "published once"
    GIVEN_UP = "given up for a reason"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a client, which do not change while its jobs are counted."""

    max_jobs: int
    priority_slots: int
    priority_threshold: int

    @property
    def low(self) -> int:
        return self.max_jobs - self.priority_slots


@dataclass(frozen=True, slots=True)
class Fact:
    """A domain event with its position. `at` is the time when the log recorded it."""

    position: int
    at: float
    event: DomainEvent


@dataclass(slots=True)
class TaskSeen:
    """A task, from its events. `lost` counts the last consecutive runs that were lost; `done` is the run that completed it."""

    plan: TaskPlan
    run: int = 0
    in_progress: bool = False
    lost: int = 0
    committed: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The files of each run whose outputs were committed."""
    done: int | None = None


class Phase(StrEnum):
    """The part of a job's state that the rules need."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    PENDING = "pending"
    STARTED = "started"
    PAUSED = "paused"
    COMPLETED = "completed"
    BROKEN = "broken"


_TERMINAL = (Phase.COMPLETED, Phase.BROKEN)


@dataclass(slots=True)
class JobSeen:
    """A job, from its events. `low` is None without a slot, else True if the slot is one for jobs that are not urgent."""

    number: int
    client: str
    content_id: str
    accepted_at: float
    phase: Phase
    priority: int
    run_at: datetime | None
    rerun_of: int | None
    tasks: dict[int, TaskSeen]
    failed: bool = False
    reason: str = ""
    low: bool | None = None
    low_slot: int | None = None
    ended_at: float = 0.0

    @property
    def ended(self) -> bool:
        return self.phase in _TERMINAL

    @property
    def holds_slot(self) -> bool:
        """True if the job holds a slot. A paused job holds it until its step has ended."""
        return self.phase is Phase.STARTED or any(task.in_progress for task in self.tasks.values())


def facts(conninfo: str, after: int) -> Iterator[Fact]:
    """Yield the events of jobs after that position. This blocks."""
    mapper = EventMapper(catalogue())
    with psycopg.connect(conninfo) as connection, connection.cursor("jobs") as cursor:
        cursor.execute(_EVENTS.encode(), (after,))
        for position, stream, version, topic, state, at in cursor:
            yield Fact(position, at, mapper.read(topic, stream=stream, version=version, state=bytes(state)))


class LogCheck:
    """Checks the log, fact by fact. `breaches` counts the violations of each rule; `violations` describes the first of them."""

    def __init__(self, limits: dict[str, Limits]) -> None:
        self.jobs: dict[int, JobSeen] = {}
        self.breaches: Counter[Rule] = Counter()
        self.violations: list[str] = []
        self.topics: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.most_low: Counter[str] = Counter()
        self._limits = limits
        self._used: Counter[str] = Counter()
        self._used_low: Counter[str] = Counter()
        self._fact: Fact

    def take_all(self, job_facts: Iterable[Fact]) -> LogCheck:
        for fact in job_facts:
            self.take(fact)
        return self

    def take(self, fact: Fact) -> None:
        self._fact = fact
        event, number = fact.event, int(fact.event.originator_id.partition(":")[2])
        self.topics[event.TOPIC] += 1
        if isinstance(event, events.Accepted):
            self.jobs[number] = _accepted(number, event, fact.at)
            return
        job = self.jobs[number]
        _HANDLERS[type(event)](self, job, event)
        self._settle_slot(job)

    def _break(self, rule: Rule, job: JobSeen, how: str) -> None:
        self.breaches[rule] += 1
        if len(self.violations) < MOST_SHOWN:
            self.violations.append(f"position {self._fact.position}, job {job.number}: {how} ({rule})")

    # --- slots

    def _settle_slot(self, job: JobSeen) -> None:
        """Update the counts of slots. The kind of a slot is decided when a job gets it."""
        holds = job.holds_slot
        if holds == (job.low is not None):
            return
        limits, change = self._limits[job.client], 1 if holds else -1
        low = job.priority >= limits.priority_threshold if job.low is None else job.low
        job.low = low if holds else None
        self._used[job.client] += change
        self._used_low[job.client] += change * low
        self._count(job, limits)

    def _count(self, job: JobSeen, limits: Limits) -> None:
        used, low = self._used[job.client], self._used_low[job.client]
        self.most[job.client] = max(self.most[job.client], used)
        self.most_low[job.client] = max(self.most_low[job.client], low)
        if job.low is not None and used > limits.max_jobs:
            self._break(Rule.SLOTS, job, f"{used} jobs of {job.client} are started, {limits.max_jobs} may be")
        if job.low and low > limits.low:
            others = [
                other.number for other in self.jobs.values() if other.client == job.client and other.low and other.low_slot is None
            ]
            how = f"{low} jobs of {job.client} that are not urgent are started, {limits.low} may be; started as urgent: {others}"
            self._break(Rule.RESERVED, job, how)

    # --- jobs

    def scheduled(self, job: JobSeen, event: events.JobScheduled) -> None:
        job.run_at, job.phase = event.run_at, Phase.SCHEDULED

    def run_time_changed(self, job: JobSeen, event: events.RunTimeChanged) -> None:
        job.run_at = event.run_at

    def priority_changed(self, job: JobSeen, event: events.PriorityChanged) -> None:
        job.priority = event.priority

    def semaphore_changed(self, job: JobSeen, event: events.SemaphoreChanged) -> None:
        if job.phase in (Phase.QUEUED, Phase.PENDING):
            job.phase = Phase.QUEUED if event.semaphore is None else Phase.PENDING

    def queued(self, job: JobSeen, event: events.JobQueued) -> None:
        allowed = (Phase.PAUSED,) if event.resumed else (Phase.SCHEDULED, Phase.PENDING)
        if job.phase not in allowed:
            self._break(Rule.STARTS, job, f"queued although it was {job.phase}")
        if not event.resumed and job.run_at is not None and job.run_at.timestamp() > self._fact.at:
            self._break(Rule.STARTS, job, f"queued before {job.run_at}")
        job.phase, job.failed = Phase.QUEUED, False

    def started(self, job: JobSeen, event: events.JobStarted) -> None:
        if job.phase is not Phase.QUEUED:
            self._break(Rule.STARTS, job, f"started although it was {job.phase}")
        job.phase, job.low_slot = Phase.STARTED, event.low_slot

    def paused(self, job: JobSeen, event: events.Paused) -> None:
        job.phase = Phase.PAUSED

    def broken(self, job: JobSeen, event: events.Broken) -> None:
        """Handle a break. A client may also break a completed job."""
        if job.phase is Phase.BROKEN:
            self._break(Rule.ENDS_ONCE, job, "broken off a second time")
        self._end(job, Phase.BROKEN)

    def completed(self, job: JobSeen, event: events.JobCompleted) -> None:
        """Handle a completion. A job that was paused or resumed meanwhile also completes when its last step ends."""
        if job.ended:
            self._break(Rule.ENDS_ONCE, job, f"completed although it was {job.phase}")
        if not event.failed and any(task.done is None for task in job.tasks.values()):
            self._break(Rule.ENDS_ONCE, job, "completed although a task is not")
        if event.failed and not any(task.lost >= _CONSECUTIVE_LOSSES for task in job.tasks.values()):
            self._break(Rule.GIVEN_UP, job, f"given up: {event.reason}")
        job.failed, job.reason = event.failed, event.reason
        self._end(job, Phase.COMPLETED)

    def _end(self, job: JobSeen, phase: Phase) -> None:
        job.phase, job.ended_at = phase, self._fact.at
        for task in job.tasks.values():
            task.in_progress, task.lost = False, 0

    # --- runs of tasks

    def task_started(self, job: JobSeen, event: events.TaskStarted) -> None:
        task = job.tasks[event.task]
        if event.run <= task.run or task.in_progress:
            self._break(Rule.ONE_RUN, job, f"run {event.run} of task {event.task} began during run {task.run}")
        if job.phase is not Phase.STARTED or task.done is not None or self._waits(job, task):
            self._break(Rule.STARTS, job, f"run {event.run} of task {event.task} began when it could not")
        task.run, task.in_progress = event.run, True

    @staticmethod
    def _waits(job: JobSeen, task: TaskSeen) -> bool:
        return any(job.tasks[before].done is None for before in task.plan.after)

    def outputs_committed(self, job: JobSeen, event: events.OutputsCommitted) -> None:
        task = self._task_of_current_run(job, event.task, event.run)
        if event.run in task.committed or task.done is not None:
            self._break(Rule.PUBLISHED_ONCE, job, f"outputs of run {event.run} of task {event.task} committed once more")
        task.committed[event.run] = tuple(output.name for output in event.outputs)

    def task_completed(self, job: JobSeen, event: events.TaskCompleted) -> None:
        task = self._task_of_current_run(job, event.task, event.run)
        if task.done is not None or (event.result is None and event.run not in task.committed):
            self._break(
                Rule.PUBLISHED_ONCE, job, f"run {event.run} completed task {event.task}, and that of run {task.done} counts"
            )
        task.done, task.in_progress, task.lost = event.run, False, 0

    def task_failed(self, job: JobSeen, event: events.TaskFailed) -> None:
        task = self._task_of_current_run(job, event.task, event.run)
        task.in_progress, task.lost = False, 0

    def task_lease_expired(self, job: JobSeen, event: events.TaskLeaseExpired) -> None:
        task = self._task_of_current_run(job, event.task, event.run)
        task.in_progress, task.lost = False, task.lost + 1

    def task_interrupted(self, job: JobSeen, event: events.TaskInterrupted) -> None:
        task = self._task_of_current_run(job, event.task, event.run)
        task.in_progress, task.lost = False, 0

    def _task_of_current_run(self, job: JobSeen, number: int, run: int) -> TaskSeen:
        task = job.tasks[number]
        if run != task.run or not task.in_progress:
            self._break(
                Rule.OVERTAKEN, job, f"run {run} of task {number} wrote {self._fact.event.verb()}, and is not the current one"
            )
        return task


def _accepted(number: int, event: events.Accepted, at: float) -> JobSeen:
    phase = Phase.QUEUED if event.semaphore is None else Phase.PENDING
    if event.run_at is not None and event.run_at > event.timestamp:
        phase = Phase.SCHEDULED
    submission = event.submission
    tasks = {plan.id: TaskSeen(plan) for plan in submission.tasks}
    return JobSeen(number, submission.client, submission.content_id, at, phase, event.priority, event.run_at, event.rerun_of, tasks)


_HANDLERS: dict[type[DomainEvent], Callable[[LogCheck, JobSeen, Any], None]] = {
    event_type: getattr(LogCheck, event_type.verb()) for event_type in events.EVENTS if event_type is not events.Accepted
}
