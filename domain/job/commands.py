"""Commands to a job from its client, the controller, the scheduler and the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from domain.job.aggregate import Job, Retries
from domain.job.values import DEFAULT_PRIORITY, JobState, Output, Result, Semaphore, Submission
from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret


@dataclass(frozen=True)
class JobCommand(Command[Job]):
    """`key` is the job's number."""

    key: int

    def kind(self) -> type[Job]:
        return Job


@dataclass(frozen=True)
class AcceptJob(JobCommand):
    """Accept a job under a new number."""

    submission: Submission
    priority: int = DEFAULT_PRIORITY
    run_at: datetime | None = None
    semaphore: Semaphore | None = None
    rerun_of: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    transaction_id: str = ""
    sealed: Sequence[EncryptedSecret] = field(default=(), kw_only=True)

    @property
    def creates(self) -> bool:
        return True

    def decide(self, root: Job | None, *, at: datetime) -> Job:
        if root is not None:  # a number is drawn once, so this is a repeat of the same command
            return root
        return Job.accept(
            self.key,
            at,
            self.submission,
            priority=self.priority,
            run_at=self.run_at,
            semaphore=self.semaphore,
            rerun_of=self.rerun_of,
            headers=dict(self.headers),
            transaction_id=self.transaction_id,
        )


@dataclass(frozen=True)
class UpdateJob(JobCommand):
    """`changes` may hold `queue_state` (a JobState), `run_at`, `priority` and `semaphore` (None removes it)."""

    changes: Mapping[str, object]
    sealed: Sequence[EncryptedSecret] = field(default=(), kw_only=True)

    def act(self, root: Job, *, at: datetime) -> None:
        match self.changes.get("priority"):
            case int(priority):
                root.prioritise(at, priority)
        if "semaphore" in self.changes:
            semaphore = self.changes["semaphore"]
            assert semaphore is None or isinstance(semaphore, Semaphore), "a semaphore"
            root.set_semaphore(at, semaphore)
        match self.changes.get("run_at"):
            case datetime() as run_at:
                root.reschedule(at, run_at)
        match self.changes.get("queue_state"):
            case JobState.PAUSED:
                root.pause(at)
            case JobState.BROKEN:
                root.break_off(at)
            case JobState.QUEUED:
                root.resume(at)


@dataclass(frozen=True)
class BreakJob(JobCommand):
    """Cancel a job. `rerun_as` is the job that repeats it."""

    rerun_as: int | None = None

    def act(self, root: Job, *, at: datetime) -> None:
        root.break_off(at, rerun_as=self.rerun_as)


@dataclass(frozen=True)
class EndJob(JobCommand):
    """Cancel a job that is no longer needed, unless it has ended."""

    def act(self, root: Job, *, at: datetime) -> None:
        if not root.ended:
            root.break_off(at)


@dataclass(frozen=True)
class QueueJob(JobCommand):
    """Queue a job whose time has come and whose semaphore is open. `run_at` and `semaphore` are the values that were checked."""

    run_at: datetime | None
    semaphore: Semaphore | None

    def act(self, root: Job, *, at: datetime) -> None:
        root.queue(at, run_at=self.run_at, semaphore=self.semaphore)


@dataclass(frozen=True)
class StartJob(JobCommand):
    """Start a job in a slot that the controller has chosen. `priority` is the one that the slot was chosen for. `workers`, by
    their queues, start the first task in the same append."""

    slot: int
    low_slot: int | None
    priority: int
    workers: Mapping[str, str] = field(default_factory=dict)

    def act(self, root: Job, *, at: datetime) -> None:
        root.start(at, priority=self.priority, slot=self.slot, low_slot=self.low_slot, workers=self.workers)


@dataclass(frozen=True)
class _TaskCommand(JobCommand):
    """A command about a run of a task. Raises `Fenced` if the run is not the current one."""

    task: int
    run: int


@dataclass(frozen=True)
class StartTask(_TaskCommand):
    worker: str

    def act(self, root: Job, *, at: datetime) -> None:
        root.start_task(at, self.task, run=self.run, worker=self.worker)


@dataclass(frozen=True)
class CommitOutputs(_TaskCommand):
    """Record that the step has ended, and that these files of this run are published."""

    outputs: tuple[Output, ...]
    result: Result

    def act(self, root: Job, *, at: datetime) -> None:
        root.commit_outputs(at, self.task, run=self.run, outputs=self.outputs, result=self.result)


@dataclass(frozen=True)
class CompleteTask(_TaskCommand):
    """Complete a task. `result` is None for a task with outputs: `CommitOutputs` had it, and the files have been published.
    `workers`, by their queues, start the next task in the same append."""

    result: Result | None = None
    workers: Mapping[str, str] = field(default_factory=dict)

    def act(self, root: Job, *, at: datetime) -> None:
        root.complete_task(at, self.task, run=self.run, result=self.result, workers=self.workers)


@dataclass(frozen=True)
class FailTask(_TaskCommand):
    """Record a failed run. `final` says that another try would fail too, as reported by the step. `cause` is its word for the
    owner of the job."""

    error: str
    retries: Retries
    final: bool = False
    cause: str = ""

    def act(self, root: Job, *, at: datetime) -> None:
        root.fail_task(at, self.task, run=self.run, error=self.error, retries=self.retries, final=self.final, cause=self.cause)


@dataclass(frozen=True)
class ExpireLease(_TaskCommand):
    """Record that the run's worker has not renewed its lease."""

    retries: Retries

    def act(self, root: Job, *, at: datetime) -> None:
        root.expire_lease(at, self.task, run=self.run, retries=self.retries)


@dataclass(frozen=True)
class InterruptTask(_TaskCommand):
    """Record that the worker stops and returns the task."""

    def act(self, root: Job, *, at: datetime) -> None:
        root.interrupt_task(at, self.task, run=self.run)
